"""The names under which a trigger run keeps its scores and estimates; study and report both use them."""

BASELINE = "baseline"
RANDOM_BOX = "random_box"  # what a method's box is compared with
