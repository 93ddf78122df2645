"""The modality study's page."""
