"""Reading image, mask, map and annotation files."""
