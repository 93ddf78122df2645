"""From a method's raw output to one map on the image's grid: channels, resize, normalise, smooth."""
