"""Scores and predictions of an alignment run → estimates: means, the common scale, and prediction."""
