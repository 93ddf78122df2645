"""The trigger study's page."""
