"""Draws a head with a tumour in four modalities."""
