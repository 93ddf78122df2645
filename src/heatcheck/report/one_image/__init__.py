"""Explanations of single images, outside a study's report."""
