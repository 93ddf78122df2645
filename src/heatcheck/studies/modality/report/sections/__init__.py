"""The sections of the modality study's page."""
