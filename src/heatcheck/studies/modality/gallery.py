"""Pictures of telling cases: all modalities and every method's map of each, slice by slice, and NIfTI files."""

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
from heatcheck.maps.files import share_nifti_bytes, write_whole
from heatcheck.running.gallery import DrawnCase, grey, outlines, store_gallery
from heatcheck.running.progress import Watcher
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.cases import Masks, ModalCase
from heatcheck.studies.modality.explaining import ModalMap, on_image
from heatcheck.studies.modality.means import of_metric, read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.stage import Judging
from heatcheck.studies.modality.vocabulary import SHARED_MAP, UNIFORM, ModalityEntry, ModalityMapsEntry

if TYPE_CHECKING:
    from heatcheck.studies.modality.plan import ModalityPlan

PICTURE_SIDE, SLICE_SIDE = 224, 128  # pixels at most, of a picture and of one slice of many
MOST_SLICES = 16
SHOWN = ("msfi", "mi_correlation", "lesion_share")  # the scores beside a map
Stack = Shaped[np.ndarray, "slice row column"]


@dataclass(frozen=True)
class ModalCaseWithMaps:
    """A case with everything that is shown of it, on the image's grid."""

    case: ModalCase
    fold: int
    said: str  # the class the network names
    probability: float
    maps: Mapping[str, ModalMap]  # by method, post-processed; one channel where it stands for all modalities


def telling_cases(folder: RunFolder, rule: ModalitySettings, most: int) -> list[str]:
    """Cases whose maps find the lesion well, badly and as usual, both classes in turn.

    They are ordered by the mean MSFI over the methods, and taken at even steps from the best to the worst.
    """
    scores = read_scores(folder.path, ["msfi"], rule.model)
    rows = of_metric(scores[scores["method"] != UNIFORM], "msfi", rule)
    by_case = rows.groupby(["finding", "case"])["value"].mean().reset_index()
    chosen: list[list[str]] = []
    classes = [name for name in rule.classes if name in set(by_case["finding"])]
    for number, name in enumerate(classes):
        ordered = by_case[by_case["finding"] == name].sort_values(["value", "case"], ascending=[False, True])
        share = most // len(classes) + (number < most % len(classes))
        chosen.append([str(ordered["case"].iloc[place]) for place in evenly(len(ordered), share)])
    rounds = max(map(len, chosen), default=0)
    return [own[turn] for turn in range(rounds) for own in chosen if turn < len(own)]


def evenly(length: int, wanted: int) -> list[int]:
    """So many places from the first to the last, each once."""
    if wanted >= length:
        return list(range(length))
    return [0] if wanted == 1 else [round(step * (length - 1) / (wanted - 1)) for step in range(wanted)]


def make_modality_gallery(
    folder: RunFolder,
    rule: ModalitySettings,
    cases: Sequence[str],
    with_maps: Callable[[str], ModalCaseWithMaps],
    watcher: Watcher,
) -> None:
    """Draw the cases and store pictures and index in the run's folder."""
    scores = _scores_shown(folder, rule, cases)
    drawn = (
        DrawnCase(_draw(folder, f"{number:03d}", with_maps(case), rule.modalities, scores))
        for number, case in enumerate(cases)
    )
    store_gallery(folder, drawn, len(cases), watcher)


ShownScores = Mapping[tuple[str, str, str], float]  # by case, method and metric


def _scores_shown(folder: RunFolder, rule: ModalitySettings, cases: Sequence[str]) -> ShownScores:
    """The scores beside the maps."""
    scores = read_scores(folder.path, list(SHOWN), rule.model)
    shown: dict[tuple[str, str, str], float] = {}
    for metric in SHOWN:
        rows = of_metric(scores[scores["case"].isin(cases)], metric, rule)
        values = rows["value"].to_numpy(float)
        for case, method, value in zip(rows["case"], rows["method"], values, strict=True):
            shown[case, method, metric] = float(value)
    return shown


@dataclass(frozen=True)
class Cut:
    """Which slices are shown, as the display counts them, and how large."""

    display: Display
    places: Sequence[int]
    start: int  # the place among them that is shown first
    size: tuple[int, int]  # rows and columns of a slice

    def stack(self, values: Shaped[np.ndarray, "*space"]) -> Stack:
        """The slices in the order in which they are shown, on the image's own pixels."""
        return self.display.turned(values)[list(self.places)]

    def strip(self, values: Float[np.ndarray, "*space"]) -> UInt8[np.ndarray, "row columns"]:
        """Values between 0 and 1 as grey slices side by side."""
        rows, columns = self.size
        small = [
            cv2.resize(np.ascontiguousarray(one, np.float32), (columns, rows), interpolation=_way(one.shape, self.size))
            for one in self.stack(values)
        ]
        return grey(np.hstack(small))

    def outlines(self, mask: Shaped[np.ndarray, "*space"]) -> list[Outlines]:
        """The outlines of a mask in each slice, in the slice's own pixels."""
        rows, columns = self.size
        stack = [np.ascontiguousarray(one, np.uint8) for one in self.stack(mask)]
        small = [cv2.resize(one, (columns, rows), interpolation=cv2.INTER_NEAREST) for one in stack]
        return [outlines(one.astype(bool)) for one in small]


def _way(shape: tuple[int, ...], size: tuple[int, int]) -> int:
    """Averages where pixels merge, straight lines between them where they spread."""
    return cv2.INTER_AREA if size[0] <= shape[0] and size[1] <= shape[1] else cv2.INTER_LINEAR


def cut_of(case: Case, masks: Masks) -> Cut:
    """The slices of a case that are shown: even steps through the head, one of them where the lesion is largest."""
    shape = case.image.shape[1:]
    display = radiological(case.affine, shape)
    head = display.turned(np.asarray((case.image != 0).any(0))).any((1, 2))
    lesion = display.turned(np.asarray(masks.any(0))).sum((1, 2))
    largest = int(lesion.argmax())
    filled = np.flatnonzero(head | (lesion > 0))  # a mask may reach beyond what was measured
    first, last = (int(filled[0]), int(filled[-1])) if filled.size else (0, len(lesion) - 1)
    step = -(-(last - first + 1) // MOST_SLICES)
    places = list(range(largest % step + (first - largest % step + step - 1) // step * step, last + 1, step))
    turned = display.turned(np.broadcast_to(np.False_, shape))
    side = PICTURE_SIDE if len(places) == 1 else SLICE_SIDE
    return Cut(display, places, places.index(largest), _size(turned.shape[1:], display.voxel[1:], side))


def _size(shape: tuple[int, ...], voxel: tuple[float, float], side: int) -> tuple[int, int]:
    """Rows and columns that show a slice in its true proportions, no larger than it is stored and than `side`."""
    wide = [length * width / min(voxel) for length, width in zip(shape, voxel, strict=True)]
    scale = min(1.0, side / max(wide))
    rows, columns = (max(1, round(length * scale)) for length in wide)
    return rows, columns


def _draw(
    folder: RunFolder, prefix: str, shown: ModalCaseWithMaps, modalities: Sequence[str], scores: ShownScores
) -> ModalityEntry:
    """The entry of a case whose pictures are now written; their names begin with the prefix."""
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
        known = {metric: _plain(scores.get((key.case, method, metric))) for metric in SHOWN}
        maps.append(ModalityMapsEntry(method=method, files=files, **known))
    return ModalityEntry(
        id=prefix,
        case=key.case,
        patient=key.patient,
        finding=shown.case.label,
        said=shown.said,
        probability=shown.probability,
        fold=shown.fold,
        shape=cut.size,
        slices=len(cut.places),
        first=cut.places[0],
        step=cut.places[1] - cut.places[0] if len(cut.places) > 1 else 1,
        start=cut.start,
        plane=cut.display.plane,
        sides=cut.display.sides,
        images=images,
        outlines={name: cut.outlines(mask) for name, mask in zip(modalities, shown.case.masks, strict=True)},
        maps=tuple(maps),
    )


def _plain(value: float | None) -> float | None:
    """None in the place of what is no number: JSON has no NaN."""
    return None if value is None or np.isnan(value) else value


def windowed(channel: Map) -> Map:
    """A modality's grey values between 0 and 1: black is air, white the brightest half per cent of the head."""
    seen = channel[channel != 0]
    low, high = (min(0.0, float(seen.min())), float(np.percentile(seen, 99.5))) if seen.size else (0.0, 1.0)
    return np.clip((channel - low) / max(high - low, 1e-6), 0, 1).astype(np.float32)


FOLDER = Path("maps") / "nifti"


@dataclass(frozen=True)
class NiftiMaps:
    """Writes maps below a run's folder: maps/nifti/CASE/METHOD_MODALITY.nii.gz."""

    folder: Path  # of the run
    modalities: tuple[str, ...]

    def __call__(self, case: Case, method: str, values: ModalMap) -> None:
        """Store a map; one that stands for all modalities is stored once."""
        target = self._of(case)
        target.mkdir(parents=True, exist_ok=True)
        names = self.modalities if len(values) == len(self.modalities) else (SHARED_MAP,)
        for name, channel in zip(names, values, strict=True):
            about = f"heatcheck {method} {name}, 0 to 1"
            content = share_nifti_bytes(channel, case.affine, about)
            write_whole(target / f"{method}_{file_name(name)}.nii.gz", content)

    def remove(self, case: Case) -> None:
        """Take back the maps of a case that failed after all."""
        shutil.rmtree(self._of(case), ignore_errors=True)

    def _of(self, case: Case) -> Path:
        return self.folder / FOLDER / file_name(case.key.case)


def file_name(name: str) -> str:
    """A case's or a modality's name as that of a file; names that differ have files that differ."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name).lstrip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def illustrate_modality(
    plan: "ModalityPlan", folder: RunFolder, judging: Callable[[int], Judging], watcher: Watcher
) -> None:
    """Pictures of telling cases, and their maps as NIfTI where that is wished."""
    cases = telling_cases(folder, plan.rule, plan.envelope.gallery)
    where = {key.case: (tested, key) for tested in map(plan.tested, plan.folds) for key in tested.keys}
    export = NiftiMaps(folder.path, plan.modalities) if plan.body.nifti == "gallery" else None

    def with_maps(case: str) -> ModalCaseWithMaps:
        tested, key = where[case]
        judges = judging(tested.fold)
        shown = _case_with_maps(judges, tested.fold, plan.seen.case(tested.source.load(key)))
        if export is not None:
            for method, values in shown.maps.items():
                export(shown.case.case, method, values)
        return shown

    # one network after the other: each is loaded once
    ordered = sorted(cases, key=lambda case: where[case][0].fold)
    make_modality_gallery(folder, plan.rule, ordered, with_maps, watcher)


def _case_with_maps(judging: Judging, fold: int, case: ModalCase) -> ModalCaseWithMaps:
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
    return ModalCaseWithMaps(case, fold, explainer.classifier.outputs[said], probability, maps)
