"""Wherever a spec or a contract takes a list of names, one name may stand alone."""

import pytest

from heatcheck.fitting.spec import TrainingBody
from heatcheck.models import Preprocessing
from heatcheck.sources import SOURCES
from heatcheck.studies.alignment.spec import AlignmentBody
from heatcheck.studies.localization.spec import LocalizationBody
from heatcheck.studies.modality.spec import ModalityBody
from heatcheck.studies.triggers.spec import TriggersBody

DATA = {"name": "folder"}
LOCALIZATION = {"source": DATA, "model": "a", "methods": ["gradient"]}
MODALITY = {"source": DATA, "model": "a", "methods": ["gradient"]}
TRIGGERS = {"model": "a", "methods": ["gradient"], "artefacts": DATA}
ALIGNMENT = {"finetune": DATA, "evaluation": DATA, "models": ["a"], "methods": ["gradient"]}
TRAINING = {"model": "a", "training": DATA, "validation": DATA, "test": DATA}
CONTRACT = {"outputs": ["a"], "size": [8, 8]}


@pytest.mark.parametrize(
    ("kind", "rest", "key", "alone"),
    [
        (LocalizationBody, LOCALIZATION, "methods", "grad_cam"),
        (LocalizationBody, LOCALIZATION, "methods", {"name": "occlusion", "window": 8}),
        (LocalizationBody, LOCALIZATION, "findings", "Edema"),
        (LocalizationBody, LOCALIZATION, "metrics", "iou"),
        (LocalizationBody, LOCALIZATION, "subgroups", "sex"),
        (LocalizationBody, {**LOCALIZATION, "model": None}, "models", "densenet121"),
        (TriggersBody, TRIGGERS, "methods", "grad_cam"),
        (TriggersBody, {**TRIGGERS, "training": DATA, "validation": DATA, "test": DATA}, "triggers", "static-20"),
        (AlignmentBody, ALIGNMENT, "methods", "gradient"),
        (AlignmentBody, ALIGNMENT, "judged", "random"),
        (AlignmentBody, ALIGNMENT, "models", "densenet121"),
        (AlignmentBody, ALIGNMENT, "findings", "Edema"),
        (ModalityBody, MODALITY, "methods", "gradient"),
        (ModalityBody, MODALITY, "fills", "tissue"),
        (TrainingBody, TRAINING, "findings", "Edema"),
        (TrainingBody, TRAINING, "uncertainty", "zeros"),
        (SOURCES["folder"].settings, {"images": "films"}, "facts", "sex"),
        (Preprocessing, CONTRACT, "outputs", "Edema"),
        (Preprocessing, CONTRACT, "mean", 0.4),
    ],
)
def test_one_name_may_stand_where_a_list_may(kind, rest, key, alone):
    of_one, of_list = (getattr(kind.model_validate({**rest, key: value}), key) for value in (alone, [alone]))
    assert of_one == of_list
    assert len(of_one) == 1


def test_all_findings_remain_a_word():
    assert LocalizationBody.model_validate({**LOCALIZATION, "findings": "all"}).findings == "all"
    assert LocalizationBody.model_validate({**LOCALIZATION, "findings": ["all"]}).findings == ("all",)
