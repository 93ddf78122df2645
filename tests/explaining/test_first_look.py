"""What is looked at before any work."""

import numpy as np
import pytest

from heatcheck.core.errors import CaseError, ModelError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.first_look import MOST, Sample, require_fitting_images
from heatcheck.models import Preprocessing

CONTRACT = Preprocessing(outputs=("a",), size=(4, 4), channels=1, mean=(300.0,), std=(100.0,))


class Loads:
    """A source that counts what is read of it; the image of a case is its number everywhere."""

    def __init__(self, broken=()):
        self.broken, self.read = broken, []

    def load(self, key):
        self.read.append(key.case)
        if key.case in self.broken:
            raise CaseError("empty")
        return Case(key, np.full((1, 6, 5), float(key.case), np.float32), {})


def keys_of(number, patients=None):
    return [CaseKey(f"{n:03d}", f"p{n % (patients or number)}", {"a": float(n == 70)}) for n in range(number)]


def test_a_few_images_of_different_patients_are_read_and_the_rare_finding_is_among_them():
    source = Loads()
    require_fitting_images(Sample(source, keys_of(300), ["a"]), Preprocessing(outputs=("a",), size=(4, 4)), "net")
    assert len(source.read) == len(set(source.read)) == MOST[2]
    assert "070" in source.read


@pytest.mark.parametrize(("number", "patients"), [(40, 2), (5, 5), (1, 1)])
def test_few_patients_show_several_images(number, patients):
    source = Loads()
    require_fitting_images(
        Sample(source, keys_of(number, patients), ["a"]),
        CONTRACT.model_copy(update={"mean": (0.0,), "std": (1.0,)}),
        "net",
    )
    assert len(set(source.read)) == min(MOST[2], number)


def test_the_range_is_that_of_all_images_that_can_be_read():
    keys = [CaseKey(name, name, {}) for name in ("0", "900")]
    require_fitting_images(Sample(Loads(), keys, []), CONTRACT, "net")
    with pytest.raises(ModelError, match="reach from 0 to 1 here"):
        require_fitting_images(Sample(Loads(broken={"900"}), keys, []), CONTRACT, "net")


def test_images_that_cannot_be_read_are_left_to_the_run():
    source = Loads(broken={"0"})
    require_fitting_images(Sample(source, [CaseKey("0", "0", {})], []), CONTRACT, "net")
    assert source.read == ["0"]
