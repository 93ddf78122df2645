import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from heatcheck.metrics.recovery import attacked, correct, recovered
from heatcheck.metrics.registry import METRIC_FACTS


def test_recovery_worked_by_hand():
    """The second image's clean prediction was wrong already: returning to it is what recovery means."""
    on_clean, on_recovered = np.array([1, 3, 2, 2]), np.array([1, 3, 0, 0])
    np.testing.assert_array_equal(recovered(on_recovered, on_clean), [1, 1, 0, 0])
    assert recovered(on_recovered, on_clean).mean() == 0.5


def test_attack_worked_by_hand():
    predicted = np.array([0, 0, 2, 0])
    np.testing.assert_array_equal(attacked(predicted, 0), [1, 1, 0, 1])
    assert attacked(predicted, 0).mean() == 0.75


def test_accuracy_is_scikit_learns():
    generator = np.random.default_rng(4)
    predicted, labels = generator.integers(0, 4, (2, 50))
    assert correct(predicted, labels).mean() == pytest.approx(accuracy_score(labels, predicted))


@pytest.mark.parametrize("compare", [recovered, correct])
def test_predictions_of_other_images_are_refused(compare):
    with pytest.raises(ValueError, match=r"image by image, got shapes \(3,\) and \(4,\)"):
        compare(np.zeros(3, int), np.zeros(4, int))


def test_losing_accuracy_is_the_only_rate_that_should_be_low():
    names = ("recovered", "recovered_by_baseline", "recovered_floor", "clean_correct", "attacked", "cda", "asr")
    assert all(METRIC_FACTS[name].higher_is_better for name in names)
    assert not METRIC_FACTS["cda_drop"].higher_is_better
