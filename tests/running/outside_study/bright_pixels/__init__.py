"""A study that heatcheck knows nothing of: how much of each image is bright?"""
