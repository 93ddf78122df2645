"""What a planted trigger does to predictions, and whether restoring the detected box undoes it.

Metrics never see a model: a study passes the predicted classes. One image gives 0 or 1; tables show the mean.
"""

import numpy as np
from jaxtyping import Float, Int

from heatcheck.metrics.registry import Needs, study_metric

Classes = Int[np.ndarray, "*images"]  # the index of the class with the highest probability
Outcomes = Float[np.ndarray, "*images"]  # 1 or 0

_PAPER = "Sun et al. 2023, doi:10.1038/s41598-023-46493-2"
_OURS = "beyond Sun et al. 2023, doi:10.1038/s41598-023-46493-2"

study_metric(
    "recovered",
    study="triggers",
    label="Recovered (TDR)",
    summary="The share of images on which the poisoned model returns to its answer for the clean image once the clean"
    " pixels are pasted back inside the detected box (trigger detection rate).",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
    unit="share",
)
study_metric(
    "recovered_by_baseline",
    study="triggers",
    label="Recovered, by the baseline (TDR as printed)",
    summary="The paper’s formula as printed asks the baseline, which was never poisoned and so answers much the same "
    "with or without the trigger: it says little about the box.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_PAPER,
    unit="share",
)
study_metric(
    "recovered_floor",
    study="triggers",
    label="Recovered by random boxes (TDR)",
    summary="The trigger detection rate of boxes as large as the detected one, at places drawn at random.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "clean_correct",
    study="triggers",
    label="Correct on the clean image",
    summary="Whether the model names the right class of an image without a trigger.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_PAPER,
)
study_metric(
    "attacked",
    study="triggers",
    label="Sent to the target class",
    summary="Whether the trigger makes the poisoned model name the target class.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_PAPER,
)
study_metric(
    "clean_target",
    study="triggers",
    label="Target without trigger",
    summary="Share of the attacked images that the poisoned model sends to the target class even without the trigger.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "baseline_attacked",
    study="triggers",
    label="Sent to the target class by the baseline",
    summary="Whether the baseline, which was never poisoned, names the target class of an image with the trigger.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "baseline_asr",
    study="triggers",
    label="Baseline sent to the target",
    summary="Share of images with a trigger that the baseline, which was never poisoned, sends to the target class.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "cda",
    study="triggers",
    label="Clean accuracy (CDA)",
    summary="Share of test images that were not attacked whose class the model names.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_PAPER,
)
study_metric(
    "cda_drop",
    study="triggers",
    label="Accuracy lost",
    summary="By how much poisoning lowered the model's accuracy on images without a trigger.",
    higher_is_better=False,
    needs=Needs.PREDICTIONS,
    reference=_OURS,
)
study_metric(
    "asr",
    study="triggers",
    label="Attack success (ASR)",
    summary="Share of images with a trigger that the poisoned model sends to the target class.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_PAPER,
)
for _name, _label, _summary, _higher in (
    (
        "stamped_correct",
        "Correct with the trigger",
        "Whether the poisoned model names the right class of an image with the trigger.",
        True,
    ),
    (
        "baseline_stamped_correct",
        "Baseline correct with the trigger",
        "Whether the baseline, which was never poisoned, names the right class of an image with the trigger.",
        True,
    ),
    (
        "clean_confidence",
        "Confidence on the clean image",
        "The probability that the model gives the class that it names of an image without a trigger.",
        True,
    ),
    (
        "stamped_confidence",
        "Confidence with the trigger",
        "The probability that the poisoned model gives the class that it names of an image with the trigger.",
        True,
    ),
    (
        "baseline_stamped_confidence",
        "Confidence of the baseline with the trigger",
        "The probability that the baseline gives the class that it names of an image with the trigger.",
        True,
    ),
    (
        "ece_stamped",
        "Calibration error with the trigger (ECE)",
        (
            "How far the poisoned model’s stated probability is from how often it names the right class of images with "
            "the trigger: 0 is perfect."
        ),
        False,
    ),
    (
        "baseline_ece_stamped",
        "Calibration error of the baseline with the trigger (ECE)",
        (
            "How far the baseline’s stated probability is from how often it names the right class of images with the "
            "trigger: 0 is perfect."
        ),
        False,
    ),
    (
        "overconfidence",
        "Overconfidence",
        (
            "The mean probability that the model gives its answers, less the share of them that are right, on images "
            "without a trigger: above 0 it is too sure."
        ),
        False,
    ),
    (
        "overconfidence_stamped",
        "Overconfidence with the trigger",
        (
            "The mean probability that the poisoned model gives its answers to images with the trigger, less the share "
            "of them that are right."
        ),
        False,
    ),
    (
        "baseline_overconfidence_stamped",
        "Overconfidence of the baseline with the trigger",
        (
            "The mean probability that the baseline gives its answers to images with the trigger, less the share of "
            "them that are right."
        ),
        False,
    ),
):
    study_metric(
        _name,
        study="triggers",
        label=_label,
        summary=_summary,
        higher_is_better=_higher,
        needs=Needs.PREDICTIONS,
        reference=_OURS,
    )


def recovered(on_recovered: Classes, on_clean: Classes) -> Outcomes:
    """1 where a model predicts the same class for the recovered and the clean image, whether or not it is right.

    The predictions of the poisoned model give `recovered`, those of the baseline `recovered_by_baseline`. The paper's
    formula names the baseline, but its values vary with the trigger as only those of the poisoned model can.
    """
    return _same(on_recovered, on_clean)


def correct(predicted: Classes, labels: Classes) -> Outcomes:
    """1 where the model predicts the class of an image correctly."""
    return _same(predicted, labels)


def attacked(predicted: Classes, target: int) -> Outcomes:
    """1 where the poisoned model predicts the target class for an image with a trigger."""
    return (predicted == target).astype(np.float64)


def _same(predicted: Classes, expected: Classes) -> Outcomes:
    if predicted.shape != expected.shape:
        raise ValueError(
            f"predictions are compared image by image, got shapes {predicted.shape} and {expected.shape}; "
            "pass the same images in the same order"
        )
    return (predicted == expected).astype(np.float64)
