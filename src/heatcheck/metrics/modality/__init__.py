"""Metrics of maps of several modalities."""
