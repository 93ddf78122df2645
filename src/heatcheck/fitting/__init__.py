"""Training: from a spec to networks, checkpoints and results."""
