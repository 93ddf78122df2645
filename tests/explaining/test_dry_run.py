import pytest
from torch import nn

from heatcheck.explaining.dry_run import try_out
from heatcheck.methods import METHODS
from heatcheck.models import NetworkClassifier, Preprocessing


class Asked:
    """A network with a method to be tried out."""

    findings = ("a",)
    seed = 0

    def __init__(self, classifier, *names):
        self.classifier = classifier
        self.methods = {name: METHODS[name].settings() for name in names}


@pytest.mark.parametrize("scaling", ["fixed", "nonzero"])
def test_methods_are_tried_out_on_a_black_image_however_images_are_scaled(scaling):
    contract = Preprocessing(outputs=("a",), size=(8, 8), channels=2, scaling=scaling)
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1))
    try_out(Asked(NetworkClassifier("net", network.eval(), contract), "gradient", "grad_cam"))
