"""Pictures for the report: cases chosen by their scores and shapes, drawn with every method's map."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heatcheck.core.records import Case, Map, Mask, Reading
from heatcheck.core.vocabulary import PLAIN
from heatcheck.explaining.batch import Explained, Explainer
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.kept_maps import KeptMaps
from heatcheck.explaining.study_models import CaseExplainer
from heatcheck.maps.keep import half_precision
from heatcheck.maps.prepare import prepare
from heatcheck.methods import METHODS
from heatcheck.metrics import METRICS
from heatcheck.metrics.undefined import is_empty
from heatcheck.regions.points import peaks
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.regions.shape import shape_of
from heatcheck.running.cases import results_in_order
from heatcheck.running.gallery import IMAGE_SIDE, MAP_SIDE, DrawnCase, film, outlines, store_gallery, write_grey
from heatcheck.running.progress import Watcher
from heatcheck.running.slices import View, view_of
from heatcheck.runs.store import RunFolder
from heatcheck.studies.localization.vocabulary import LocalizationEntry, MethodMapEntry, Point, ReaderEntry


@dataclass(frozen=True, slots=True)
class CaseWithMaps:
    """One case with the maps of one finding by method, and the model's probability of it."""

    case: Case
    maps: Mapping[str, Map]
    probability: float


def kept_case(kept: KeptMaps, explainer: CaseExplainer, case: Case, finding: str) -> CaseWithMaps:
    """The case with the maps that were kept when it was scored, or explained again where none were."""
    column = explainer.findings.index(finding)
    explained = kept.explained(case, column, explainer.classifier.placement(case.image))
    if explained is None:
        return explained_case(explainer, case, finding)
    floors = _floors(explainer, case)
    maps = {name: (floors if name in floors.grids else explained).map_of(name, column) for name in explainer.methods}
    defined = {name: values for name, values in maps.items() if values is not None}
    return CaseWithMaps(case, defined, explained.probabilities[column])


def _floors(explainer: CaseExplainer, case: Case) -> Explained:
    """The maps of the floors on all findings; of an ensemble no member is read for them."""
    floors = {name: method for name, method in explainer.methods.items() if METHODS[name].is_floor}
    if isinstance(explainer, EnsembleExplainer):
        parts = explainer.channels, explainer.seed, explainer.extra_inputs
        return Explainer(explainer.classifier, explainer.findings, floors, *parts)([case])[0][0]
    return replace(explainer, methods=floors)([case])[0][0]


def explained_case(explainer: CaseExplainer, case: Case, finding: str) -> CaseWithMaps:
    """The case explained again, with the maps that could be made, in the study's order.

    Methods that use the model explain that finding alone. Floors cost nothing, and their random maps depend on the
    position of a finding among all, so they explain all findings.
    """
    among_all = _floors(explainer, case)
    others = {name: method for name, method in explainer.methods.items() if name not in among_all.grids}
    alone = replace(explainer, methods=others, findings=(finding,))([case])[0][0]
    maps = {
        name: among_all.map_of(name, explainer.findings.index(finding))
        if name in among_all.grids
        else alone.map_of(name, 0)
        for name in explainer.methods
    }
    defined = {name: values for name, values in maps.items() if values is not None}
    return CaseWithMaps(case, defined, alone.probabilities[0])


MOST_OTHERS = 4  # further findings of a case
LOW_OVERLAP = 0.2  # IoU below which an overlap may be called low
_ORDER = ["iou", "case", "finding"]
SHAPES = {  # reasons that lie in the truth's outline: the column that ranks them, and whether the lowest comes first
    "many instances": ("instances", False),
    "single instance": ("instances", True),
    "large": ("size", False),
    "small": ("size", True),
    "elongated": ("elongation", False),
    "irregular outline": ("irrectangularity", False),
}


@dataclass(frozen=True, slots=True)
class ChosenFinding:
    """A case and finding to show, and the reason."""

    case: str
    finding: str
    why: str
    method: str = ""  # whose map is the reason; none where the truth is


@dataclass(frozen=True)
class GalleryRule:
    """Where the gallery's cases come from, and how they are drawn."""

    case: Callable[[str, str], CaseWithMaps]  # of a case and a finding
    methods: tuple[str, ...]
    model: str  # whose scores choose
    region: Callable[[str, str], RegionRule]  # of a finding and a method
    most: int
    keep_maps: bool
    workers: int = 1  # how many are drawn at a time; a model's maps one by one
    remark: Callable[[Sequence[str]], str] = lambda _: ""  # what is said of the chosen cases before they are drawn


def make_gallery(folder: RunFolder, rule: GalleryRule, watcher: Watcher) -> None:
    """Choose the cases, and store pictures and index in the run folder."""
    choices = choose(folder, rule.model, rule.methods, rule.most)
    if remark := rule.remark([choice.case for choice in choices]):
        watcher.say(remark)

    def drawn(numbered: tuple[int, ChosenFinding]) -> DrawnCase:
        number, choice = numbered
        shown = rule.case(choice.case, choice.finding)
        entry = draw(folder, f"{number:03d}", choice, shown, rule)
        name = f"{choice.case}/{choice.finding}"
        maps = shown.maps.items() if rule.keep_maps else ()
        return DrawnCase(entry, {f"{name}/{method}": half_precision(values) for method, values in maps})

    store_gallery(folder, results_in_order(drawn, list(enumerate(choices)), rule.workers), len(choices), watcher)


def choose(folder: RunFolder, model: str, methods: Sequence[str], most: int) -> list[ChosenFinding]:
    """Pairs of case and finding for the method with the best overlap, spread over reasons and findings.

    At most `most` cases are chosen; the other findings of each follow, without a reason of their own.
    Scores are those of one model. Pairs are also chosen by the number, size and shape of their outlines, where the run
    has these.
    """
    table = pd.read_parquet(
        folder.path / "scores.parquet",
        columns=["case", "finding", "method", "metric", "value"],
        filters=[("metric", "in", ["iou", "hit"]), ("condition", "==", PLAIN), ("model", "==", model)],
    )
    floors = [name for name in methods if name in METHODS and METHODS[name].is_floor]
    candidates = [name for name in methods if name not in floors] or list(methods)
    wide = table[table["method"].isin(candidates)].pivot_table(
        index=["method", "case", "finding"], columns="metric", values="value"
    )
    if not {"iou", "hit"} <= set(wide.columns):
        return []
    wide = wide.dropna()
    if wide.empty:
        return []
    best = str(wide["iou"].groupby("method").mean().idxmax())
    scores = wide.loc[best].reset_index()
    chosen = _spread(_by_score(scores) | _by_shape(folder, scores), most)
    named = [choice if choice.why in SHAPES else replace(choice, method=best) for choice in chosen]
    return [each for choice in named for each in (choice, *_others(choice, scores))]


def _others(choice: ChosenFinding, scores: pd.DataFrame) -> list[ChosenFinding]:
    """The other findings of the case, so that all that is outlined in it can be looked at."""
    found = scores.loc[scores["case"] == choice.case, "finding"]
    return [ChosenFinding(choice.case, name, "") for name in sorted(found) if name != choice.finding][:MOST_OTHERS]


def _by_score(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The scored pairs by reason, ranked by overlap and hit; a reason that fits no pair has none."""
    median = scores["iou"].median()
    hit, miss = scores[scores["hit"] >= 0.5], scores[scores["hit"] < 0.5]
    low = hit[hit["iou"] < min(median, LOW_OVERLAP)]
    up, down = [True, True, True], [False, True, True]
    return {
        "low overlap but hit": low.sort_values(_ORDER, ascending=up),
        "high overlap but miss": miss[miss["iou"] > median].sort_values(_ORDER, ascending=down),
        "best overlap": scores.sort_values(_ORDER, ascending=down),
        "typical": scores.assign(middle=(scores["iou"] - median).abs()).sort_values(["middle", *_ORDER[1:]]),
        "worst: low overlap and miss": miss[miss["iou"] <= median].sort_values(_ORDER, ascending=up),
    }


def _by_shape(folder: RunFolder, scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The scored pairs by reason, ranked by the shape of their outlines; empty where the run has no shapes."""
    joined = scores.merge(folder.read_table("shapes"), on=["case", "finding"])
    ranked = {}
    for why, (column, lowest) in SHAPES.items():
        known = joined.dropna(subset=[column])
        if column == "instances":  # all single outlines are equal: a usual size comes first
            known = known[known[column] == 1] if lowest else known[known[column] > 1]
        unusual = (known["size"] - known["size"].median()).abs()
        keyed = known.assign(first=known[column] * (1 if lowest else -1), second=unusual)
        ranked[why] = keyed.sort_values(["first", "second", "case", "finding"])
    return {why: table for why, table in ranked.items() if len(table)}


def _spread(ranked: Mapping[str, pd.DataFrame], most: int) -> list[ChosenFinding]:
    """Take from each reason in turn the finding that it has shown least, and no case twice."""
    queues = {why: list(table[["case", "finding"]].itertuples(index=False, name=None)) for why, table in ranked.items()}
    shown: dict[tuple[str, str], int] = {}
    used: set[str] = set()
    chosen: list[ChosenFinding] = []
    while len(chosen) < most and any(queues.values()):
        for why, queue in queues.items():
            queue[:] = [pair for pair in queue if pair[0] not in used]
            if not queue or len(chosen) >= most:
                continue
            case, finding = min(queue, key=lambda pair: shown.get((why, pair[1]), 0))
            shown[why, finding] = shown.get((why, finding), 0) + 1
            used.add(case)
            chosen.append(ChosenFinding(case, finding, why))
    return sorted(chosen, key=lambda choice: (list(ranked).index(choice.why), choice.finding, choice.case))


def draw(
    folder: RunFolder, prefix: str, choice: ChosenFinding, shown: CaseWithMaps, rule: GalleryRule
) -> LocalizationEntry:
    """Write the pictures of a case, with names that begin with the prefix, and return its entry.

    Of a volume the slice with most of the truth is drawn; scores are those of the whole volume.
    """
    case = shown.case
    truth = case.truth[choice.finding]
    view = _view(shown, truth, choice.method)
    image = f"{prefix}-image.png"
    write_grey(folder, image, film(case, view), IMAGE_SIDE)
    maps = []
    for method, values in shown.maps.items():
        file = f"{prefix}-{method}.png"
        write_grey(folder, file, view.picture(prepare(values)), MAP_SIDE)
        maps.append(map_entry(method, file, values, truth, rule.region(choice.finding, method), view))
    has_rectangle = choice.why in SHAPES and truth.ndim == 2  # in a volume no rectangle was measured
    is_volume = len(view.shape) == 3
    return LocalizationEntry(
        id=prefix,
        case=case.key.case,
        patient=case.key.patient,
        finding=choice.finding,
        why=choice.why,
        method=choice.method,
        image=image,
        shape=view.size,
        label=case.key.labels.get(choice.finding),
        probability=shown.probability,
        truth=outlines(view.mask(truth)),
        readers=tuple(_reader_entry(reading, choice.finding, view) for reading in case.readings),
        maps=tuple(maps),
        rectangle=fitted_rectangle(view.mask(truth)) if has_rectangle else None,
        slice=view.place + 1 if is_volume else None,
        slices=view.slices if is_volume else None,
        plane=view.display.plane or None,
        sides=view.display.sides or None,
    )


def _view(shown: CaseWithMaps, truth: Mask, method: str) -> View:
    """The slice with most of the truth; without truth, the one with most of the chosen method's map."""
    if truth.any() or not shown.maps:
        return view_of(shown.case, truth)
    return view_of(shown.case, prepare(shown.maps.get(method, next(iter(shown.maps.values())))))


def map_entry(method: str, file: str, values: Map, truth: Mask, rule: RegionRule, view: View) -> MethodMapEntry:
    """The map with its region, its hottest point and its scores; neither of an empty one."""
    if is_empty(values):
        return _empty_entry(method, file, truth)
    region, peak = region_of(prepare(values, rule.smooth), rule), peaks(values)
    in_slice = view.cut(peak)
    row, column = np.unravel_index(int(in_slice.argmax()), in_slice.shape)  # the first of the peaks in the slice
    is_shown = bool(in_slice.any())
    return MethodMapEntry(
        method=method,
        file=file,
        iou=METRICS["iou"].measure(region, truth).value,
        hit=METRICS["hit"].measure(peak, truth).value,
        peak=view.at(row + 0.5, column + 0.5) if is_shown else None,
        peak_slice=None if is_shown else 1 + int(view.display.turned(peak).any((1, 2)).argmax()),
        region=outlines(view.mask(region)),
    )


def _empty_entry(method: str, file: str, truth: Mask) -> MethodMapEntry:
    """A map that points nowhere: it has neither region nor hottest point, and fails where there is a truth."""
    score = 0.0 if truth.any() else math.nan
    return MethodMapEntry(method=method, file=file, iou=score, hit=score, peak=None, region=[])


def _reader_entry(reading: Reading, finding: str, view: View) -> ReaderEntry:
    mask = reading.masks.get(finding)
    spots = (view.spot(point.position) for point in reading.points.get(finding, ()))
    return ReaderEntry(
        reader=reading.reader,
        contours=outlines(view.mask(mask)) if mask is not None else [],
        points=[spot for spot in spots if spot is not None],
    )


def fitted_rectangle(mask: Mask) -> list[Point]:
    """The corners, as [x, y], of the tightest rectangle around the dominant outline."""
    return [[round(column, 2), round(row, 2)] for row, column in shape_of(mask).rectangle]
