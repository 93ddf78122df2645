"""From a map on the image's grid to a region, a box or its peaks."""
