"""Several runs of a study side by side: paired case by case, judged, and shown as a page."""

from heatcheck.running.compare.pairing import compare_runs

__all__ = ["compare_runs"]
