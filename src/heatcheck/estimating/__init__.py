"""Scores become tables and estimates that several studies share."""
