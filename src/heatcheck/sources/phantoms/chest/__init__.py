"""Draws a chest film with its findings."""
