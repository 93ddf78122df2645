"""Rows of scores from the maps and marks of one case."""
