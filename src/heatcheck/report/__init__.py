"""A run folder becomes one HTML file that reads offline; no stage, no torch."""
