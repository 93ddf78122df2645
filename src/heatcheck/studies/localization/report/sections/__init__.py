"""The sections of the localization study's page."""
