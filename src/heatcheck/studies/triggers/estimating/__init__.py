"""Scores of a trigger run → estimates: comparisons of methods, calibration of networks, and the order by agreement."""
