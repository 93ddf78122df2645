"""Passes that do less work for the same numbers."""
