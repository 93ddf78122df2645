import math

import pytest

from heatcheck.core.findings import canonical, known, spellings
from heatcheck.core.records import UNCERTAIN


def test_opacity_has_one_name_and_two_spellings():
    assert canonical("Lung Opacity") == canonical("Airspace Opacity") == "Airspace Opacity"
    assert spellings("Airspace Opacity") == ("Airspace Opacity", "Lung Opacity")
    assert spellings("Edema") == ("Edema",)


@pytest.mark.parametrize(("label", "said"), [(1.0, 1.0), (0.0, 0.0), (UNCERTAIN, math.nan), (math.nan, math.nan)])
def test_uncertain_counts_as_unknown(label, said):
    assert known(label) == pytest.approx(said, nan_ok=True)
