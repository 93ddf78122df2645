"""Inline SVG charts; colours come from CSS classes."""
