"""Intervals and tests from resampling patients and seeds, or from flipping signs."""
