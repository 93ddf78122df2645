"""The localization study's page."""
