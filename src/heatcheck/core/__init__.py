"""The vocabulary every stage shares; imports nothing else of heatcheck."""
