"""Training: a spec becomes networks, checkpoints and results."""
