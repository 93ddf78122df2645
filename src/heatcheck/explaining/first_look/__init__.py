"""A first look at images and model before the work begins: cautions, and a picture of what the network is given."""
