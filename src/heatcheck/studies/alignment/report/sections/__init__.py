"""The sections of the alignment study's page."""
