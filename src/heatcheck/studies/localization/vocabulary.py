"""The names under which a localization run keeps its estimates; study and report both use them."""

TESTED = ("iou", "hit")  # the two scores the study's verdict rests on
CUTOFFS = (0.3, 0.5)  # a temperature never moves a probability across 0.5: only the other can change
FEATURES = ("instances", "size", "elongation", "irrectangularity")
REFERENCE = "chexlocalize"  # the preset whose numbers are the paper's
