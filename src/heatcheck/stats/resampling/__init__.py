"""Intervals and tests by drawing patients, seeds or signs again."""
