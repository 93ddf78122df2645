"""Partly covered copies of an image: what is covered, and what the model says of them."""
