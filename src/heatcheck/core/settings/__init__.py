"""Settings of a spec: lists in which one item may stand alone, and every setting in words."""
