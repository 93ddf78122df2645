"""Metrics of a network and its modalities that need no map; `stats.balanced` and `stats.shapley` compute them.

They are made from many rows of `right` in a table of scores, which says whether one case was classified correctly.
"""

from heatcheck.metrics.registry import Needs, study_metric

_JIN = "Jin et al. 2021, arXiv:2107.05047"
study_metric(
    "accuracy",
    study="modality",
    label="Accuracy",
    summary="How many of all cases the model tells right; where one class is common, always naming it looks good.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_JIN,
)
study_metric(
    "balanced_accuracy",
    study="modality",
    label="Balanced accuracy",
    summary="How many cases the model tells right, each class counting the same: with two classes, guessing gives 0.5.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference="Brodersen et al. 2010, doi:10.1109/ICPR.2010.764",
)
study_metric(
    "phi_modality",
    study="modality",
    label="Importance of whole modalities (φ)",
    summary="How much more often the model is right because it is shown this modality, averaged over what else it is "
    "shown (Shapley value).",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_JIN,
)
study_metric(
    "phi_lesion",
    study="modality",
    label="Importance of the lesion in each modality (φ)",
    summary="How much more often the model is right because it is shown the lesion in this modality, averaged over "
    "where else it is shown (Shapley value).",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_JIN,
)
study_metric(
    "known_importance",
    study="modality",
    label="Known importance",
    summary="How often the model is right where this modality alone shows the true class and the others mislead.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference=_JIN,
)
study_metric(
    "rating",
    study="modality",
    label="Reader rating",
    summary="What readers gave the map, from 0 to 100.",
    higher_is_better=True,
    needs=Needs.MODALITIES,
    reference=_JIN,
    unit="whole",
)
