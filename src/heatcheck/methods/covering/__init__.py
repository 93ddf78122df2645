"""Partly covered copies of an image: what is covered, and how the model scores them."""
