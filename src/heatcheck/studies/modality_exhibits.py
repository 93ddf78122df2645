"""The cases of the gallery, explained once more for their pictures, and their maps as NIfTI files."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from heatcheck.running.progress import Watcher
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality_cases import ModalCase
from heatcheck.studies.modality_explaining import on_image
from heatcheck.studies.modality_gallery import Exhibit, make_modality_gallery, telling_cases
from heatcheck.studies.modality_nifti import NiftiMaps
from heatcheck.studies.modality_stage import Judging

if TYPE_CHECKING:
    from heatcheck.studies.modality import ModalityPlan


def illustrate_modality(
    plan: "ModalityPlan", folder: RunFolder, judging: Callable[[int], Judging], watcher: Watcher
) -> None:
    """Pictures of telling cases, and their maps as NIfTI where that is wished."""
    cases = telling_cases(folder, plan.rule, plan.envelope.gallery)
    where = {key.case: (tested, key) for tested in map(plan.tested, plan.folds) for key in tested.keys}
    export = NiftiMaps(folder.path, plan.modalities) if plan.body.nifti == "gallery" else None

    def exhibit(case: str) -> Exhibit:
        tested, key = where[case]
        judges = judging(tested.fold)
        shown = _exhibit(judges, tested.fold, plan.seen.case(tested.source.load(key)))
        if export is not None:
            for method, values in shown.maps.items():
                export(shown.case.case, method, values)
        return shown

    # one network after the other: each is loaded once
    ordered = sorted(cases, key=lambda case: where[case][0].fold)
    make_modality_gallery(folder, plan.rule, ordered, exhibit, watcher)


def _exhibit(judging: Judging, fold: int, case: ModalCase) -> Exhibit:
    """The case with what its network says and every method's map."""
    explainer = judging.explainer
    answered = explainer.answers([case.case])
    maps = {
        made.method: on_image(explainer.classifier, case.case, made.values[0], case.head)
        for made in explainer.maps(answered)
        if not made.missing
    }
    (said,) = answered.said
    probability = float(answered.probabilities[0, said])
    return Exhibit(case, fold, explainer.classifier.outputs[said], probability, maps)
