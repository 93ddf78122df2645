"""From a map on the image's grid to a region or to its peaks."""
