"""The sections of the trigger study's page."""
