"""The alignment study's page."""
