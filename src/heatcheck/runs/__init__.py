"""A run is a folder: its description, its store and the engine that fills it. No stage, no torch."""
