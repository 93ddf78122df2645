"""Pictures of some cases: all modalities and every method's map of each, slice by slice, and NIfTI files."""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
from jaxtyping import Float, Shaped, UInt8

from heatcheck.core.orientation import Display, radiological
from heatcheck.core.records import Case, Map, Outlines
from heatcheck.maps.files import share_nifti_bytes, write_atomically
from heatcheck.running.gallery import DrawnCase, grey, outlines, store_gallery
from heatcheck.running.progress import Watcher
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.cases import Masks, ModalCase
from heatcheck.studies.modality.estimating.score_tables import of_metric, read_scores
from heatcheck.studies.modality.explaining import ModalExplainer, ModalMap, on_image
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.stage import FoldEvaluation
from heatcheck.studies.modality.vocabulary import FLOORS, SHARED_MAP, ModalityEntry, ModalityMapsEntry

if TYPE_CHECKING:
    from heatcheck.studies.modality.plan import ModalityPlan

PICTURE_SIDE, SLICE_SIDE = 224, 128  # pixels at most, of a picture and of one slice of many
MOST_SLICES = 16
SHOWN = ("msfi", "mi_correlation", "lesion_share")  # the scores beside a map
Stack = Shaped[np.ndarray, "slice row column"]


@dataclass(frozen=True)
class ModalCaseWithMaps:
    """A case with its prediction and maps, on the image's grid."""

    case: ModalCase
    fold: int
    predicted: str  # class
    probability: float
    maps: Mapping[str, ModalMap]  # by method, post-processed; one channel where one map is for all modalities


def typical_cases(folder: RunFolder, settings: ModalitySettings, most: int) -> list[str]:
    """Cases at even steps from the best to the worst mean MSFI over the methods, the classes in turn."""
    scores = read_scores(folder.path, ["msfi"], settings.model)
    rows = of_metric(scores[~scores["method"].isin(FLOORS)], "msfi", settings)
    by_case = rows.groupby(["finding", "case"])["value"].mean().reset_index()
    chosen: list[list[str]] = []
    classes = [name for name in settings.classes if name in set(by_case["finding"])]
    for number, name in enumerate(classes):
        ordered = by_case[by_case["finding"] == name].sort_values(["value", "case"], ascending=[False, True])
        share = most // len(classes) + (number < most % len(classes))
        chosen.append([str(ordered["case"].iloc[index]) for index in evenly(len(ordered), share)])
    rounds = max(map(len, chosen), default=0)
    return [cases[turn] for turn in range(rounds) for cases in chosen if turn < len(cases)]


def evenly(length: int, wanted: int) -> list[int]:
    """At most `wanted` different indices at even steps from the first to the last."""
    if wanted >= length:
        return list(range(length))
    return [0] if wanted == 1 else [round(step * (length - 1) / (wanted - 1)) for step in range(wanted)]


def make_modality_gallery(
    folder: RunFolder,
    settings: ModalitySettings,
    cases: Sequence[str],
    with_maps: Callable[[str], ModalCaseWithMaps],
    watcher: Watcher,
) -> None:
    """Draw the cases and store pictures and index in the run's folder."""
    scores = _scores_shown(folder, settings, cases)
    drawn = (
        DrawnCase(_draw(folder, f"{number:03d}", with_maps(case), settings.modalities, scores))
        for number, case in enumerate(cases)
    )
    store_gallery(folder, drawn, len(cases), watcher)


ShownScores = Mapping[tuple[str, str, str], float]  # by case, method and metric


def _scores_shown(folder: RunFolder, settings: ModalitySettings, cases: Sequence[str]) -> ShownScores:
    """The scores that are shown with the maps."""
    scores = read_scores(folder.path, list(SHOWN), settings.model)
    shown: dict[tuple[str, str, str], float] = {}
    for metric in SHOWN:
        rows = of_metric(scores[scores["case"].isin(cases)], metric, settings)
        values = rows["value"].to_numpy(float)
        for case, method, value in zip(rows["case"], rows["method"], values, strict=True):
            shown[case, method, metric] = float(value)
    return shown


@dataclass(frozen=True)
class Cut:
    """Which slices are shown, in the order of the display, and at which size."""

    display: Display
    slices: Sequence[int]
    start: int  # the index of the slice that is shown first
    size: tuple[int, int]  # rows and columns of a slice

    def stack(self, values: Shaped[np.ndarray, "*space"]) -> Stack:
        """The slices in the order in which they are shown, on the image's own pixels."""
        return self.display.turned(values)[list(self.slices)]

    def strip(self, values: Float[np.ndarray, "*space"]) -> UInt8[np.ndarray, "row columns"]:
        """Values between 0 and 1 as grey slices side by side."""
        rows, columns = self.size
        small = [
            cv2.resize(
                np.ascontiguousarray(each, np.float32),
                (columns, rows),
                interpolation=_interpolation(each.shape, self.size),
            )
            for each in self.stack(values)
        ]
        return grey(np.hstack(small))

    def outlines(self, mask: Shaped[np.ndarray, "*space"]) -> list[Outlines]:
        """The outlines of a mask in each slice, in the slice's own pixels."""
        rows, columns = self.size
        stack = [np.ascontiguousarray(each, np.uint8) for each in self.stack(mask)]
        small = [cv2.resize(each, (columns, rows), interpolation=cv2.INTER_NEAREST) for each in stack]
        return [outlines(each.astype(bool)) for each in small]


def _interpolation(shape: tuple[int, ...], size: tuple[int, int]) -> int:
    """Area averaging to reduce a slice, linear interpolation to enlarge it."""
    return cv2.INTER_AREA if size[0] <= shape[0] and size[1] <= shape[1] else cv2.INTER_LINEAR


def cut_of(case: Case, masks: Masks) -> Cut:
    """The slices of a case that are shown: even steps through the head, including the one with the largest lesion."""
    shape = case.image.shape[1:]
    display = radiological(case.affine, shape)
    head = display.turned(np.asarray((case.image != 0).any(0))).any((1, 2))
    lesion = display.turned(np.asarray(masks.any(0))).sum((1, 2))
    largest = int(lesion.argmax())
    filled = np.flatnonzero(head | (lesion > 0))  # a mask may reach beyond what was measured
    first, last = (int(filled[0]), int(filled[-1])) if filled.size else (0, len(lesion) - 1)
    step = -(-(last - first + 1) // MOST_SLICES)
    slices = list(range(largest % step + (first - largest % step + step - 1) // step * step, last + 1, step))
    turned = display.turned(np.broadcast_to(np.False_, shape))
    side = PICTURE_SIDE if len(slices) == 1 else SLICE_SIDE
    return Cut(display, slices, slices.index(largest), _size(turned.shape[1:], display.voxel[1:], side))


def _size(shape: tuple[int, ...], voxel: tuple[float, float], side: int) -> tuple[int, int]:
    """Rows and columns that show a slice in true proportions, no larger than stored and than `side`."""
    wide = [length * width / min(voxel) for length, width in zip(shape, voxel, strict=True)]
    scale = min(1.0, side / max(wide))
    rows, columns = (max(1, round(length * scale)) for length in wide)
    return rows, columns


def _draw(
    folder: RunFolder, prefix: str, shown: ModalCaseWithMaps, modalities: Sequence[str], scores: ShownScores
) -> ModalityEntry:
    """The entry of a case, after writing its pictures, whose names begin with the prefix."""
    case, key = shown.case.case, shown.case.case.key
    cut = cut_of(case, shown.case.masks)
    images = {name: f"{prefix}-image-{name}.png" for name in modalities}
    for file, channel in zip(images.values(), case.image, strict=True):
        folder.write_picture(file, cut.strip(windowed(channel)))
    maps = []
    for method, values in shown.maps.items():
        names = modalities if len(values) == len(modalities) else (SHARED_MAP,)
        files = {name: f"{prefix}-map-{method}-{name}.png" for name in names}
        for file, channel in zip(files.values(), values, strict=True):
            folder.write_picture(file, cut.strip(channel))
        values_shown = {metric: _or_none(scores.get((key.case, method, metric))) for metric in SHOWN}
        maps.append(ModalityMapsEntry(method=method, files=files, **values_shown))
    return ModalityEntry(
        id=prefix,
        case=key.case,
        patient=key.patient,
        finding=shown.case.label,
        said=shown.predicted,
        probability=shown.probability,
        fold=shown.fold,
        shape=cut.size,
        slices=len(cut.slices),
        first=cut.slices[0],
        step=cut.slices[1] - cut.slices[0] if len(cut.slices) > 1 else 1,
        start=cut.start,
        plane=cut.display.plane,
        sides=cut.display.sides,
        images=images,
        outlines={name: cut.outlines(mask) for name, mask in zip(modalities, shown.case.masks, strict=True)},
        maps=tuple(maps),
    )


def _or_none(value: float | None) -> float | None:
    """None for NaN, which JSON does not have."""
    return None if value is None or np.isnan(value) else value


def windowed(channel: Map) -> Map:
    """A modality's grey values between 0 and 1: black is air, white the brightest half per cent of the head."""
    head = channel[channel != 0]
    low, high = (min(0.0, float(head.min())), float(np.percentile(head, 99.5))) if head.size else (0.0, 1.0)
    return np.clip((channel - low) / max(high - low, 1e-6), 0, 1).astype(np.float32)


FOLDER = Path("maps") / "nifti"


@dataclass(frozen=True)
class NiftiMaps:
    """Writes maps below a run's folder: maps/nifti/CASE/METHOD_MODALITY.nii.gz."""

    folder: Path  # of the run
    modalities: tuple[str, ...]

    def __call__(self, case: Case, method: str, values: ModalMap) -> None:
        """Store a map; one for all modalities is stored once."""
        target = self._folder(case)
        target.mkdir(parents=True, exist_ok=True)
        names = self.modalities if len(values) == len(self.modalities) else (SHARED_MAP,)
        for name, channel in zip(names, values, strict=True):
            about = f"heatcheck {method} {name}, 0 to 1"
            content = share_nifti_bytes(channel, case.affine, about)
            write_atomically(target / f"{method}_{file_name(name)}.nii.gz", content)

    def remove(self, case: Case) -> None:
        """Delete the maps of a case that failed after all."""
        shutil.rmtree(self._folder(case), ignore_errors=True)

    def _folder(self, case: Case) -> Path:
        return self.folder / FOLDER / file_name(case.key.case)


def file_name(name: str) -> str:
    """The name of a case or a modality as a file name; different names give different file names."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name).lstrip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def illustrate_modality(
    plan: "ModalityPlan", folder: RunFolder, evaluation: Callable[[int], FoldEvaluation], watcher: Watcher
) -> None:
    """Draw some cases, and store their maps as NIfTI where the spec asks for it.

    Their maps are made again: which cases are typical is known once all have been scored, and the maps of all, often a
    volume for every modality and method, would fill the disk for the few that are shown.
    """
    cases = typical_cases(folder, plan.settings, plan.envelope.gallery)
    by_name = {key.case: (tested, key) for tested in map(plan.tested, plan.folds) for key in tested.keys}
    export = NiftiMaps(folder.path, plan.modalities) if plan.body.nifti == "gallery" else None

    def with_maps(case: str) -> ModalCaseWithMaps:
        tested, key = by_name[case]
        modal = plan.case_settings.case(tested.source.load(key))
        shown = _case_with_maps(evaluation(tested.fold).explainer, tested.fold, modal)
        if export is not None:
            for method, values in shown.maps.items():
                export(shown.case.case, method, values)
        return shown

    # one network after the other: each is loaded once
    ordered = sorted(cases, key=lambda case: by_name[case][0].fold)
    make_modality_gallery(folder, plan.settings, ordered, with_maps, watcher)


def _case_with_maps(explainer: ModalExplainer, fold: int, case: ModalCase) -> ModalCaseWithMaps:
    """The case with its prediction and every method's map."""
    answers = explainer.answers([case.case])
    maps = {
        each.method: on_image(explainer.classifier, case.case, each.maps.of_case(0), case.head)
        for each in explainer.maps(answers)
        if not each.missing
    }
    (predicted,) = answers.predicted
    probability = float(answers.probabilities[0, predicted])
    return ModalCaseWithMaps(case, fold, explainer.classifier.outputs[predicted], probability, maps)
