"""Classifiers and methods become maps: batches of a study, or single images."""
