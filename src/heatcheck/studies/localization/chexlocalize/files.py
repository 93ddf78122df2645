"""The files that the CheXlocalize scripts write, with their names, columns and order, from a run that kept its regions.

The scripts' words stay as they are in names of files and columns: "pred" is the saliency map, "hb" the human benchmark.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import InputError
from heatcheck.core.findings import LOCALIZED
from heatcheck.core.records import Mask
from heatcheck.regions.shape import shape_of
from heatcheck.sources.files.annotations import Annotations
from heatcheck.sources.files.rle import encode
from heatcheck.stats.resampling.reference_bootstrap import average_decrease, decreases, replicates, summaries
from heatcheck.studies.localization.chexlocalize.regressions import (
    ShapeTables,
    feature_regressions,
    probability_regressions,
)
from heatcheck.studies.localization.from_files.inputs import ScoreInputs
from heatcheck.studies.localization.from_files.settings import Slice

# the order of the columns of the scripts' replicates, which is that of the labels and not of the other tables
REPLICATES = (
    "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Lesion", "Airspace Opacity", "Edema", "Consolidation",
    "Atelectasis", "Pneumothorax", "Pleural Effusion", "Support Devices",
)  # fmt: skip


@dataclass(frozen=True)
class SizedMarks:
    """The inputs with the size of every image, which comes from the maps where the truth does not hold it."""

    inputs: ScoreInputs
    sizes: Mapping[str, tuple[int, int]]

    @property
    def images(self) -> tuple[str, ...]:
        """The images that the truth names and whose size is known."""
        return tuple(image for image in self.inputs.truth.images if self.size(image))

    def size(self, image: str) -> tuple[int, int] | None:
        """Rows and columns of the image; None where neither truth nor maps hold them."""
        return self.inputs.truth.size(image) or self.sizes.get(image)

    def truth(self, image: str, finding: str) -> Mask:
        """The marked pixels."""
        return self.mask(self.inputs.truth, image, finding)

    def mask(self, annotations: Annotations, image: str, finding: str) -> Mask:
        """The pixels that are marked in a file."""
        size = self.size(image)
        if size is None:
            raise InputError(f"{annotations.path}: the size of {image} is not known; store it with the truth")
        return annotations.mask(image, finding, size)


@dataclass(frozen=True)
class ReferenceScores:
    """One rater's marks against the truth: pixel counts, and hits, by image and finding."""

    images: tuple[str, ...]  # of the truth
    pixels: pd.DataFrame  # index (image, finding): region, inside, truth, all
    hits: pd.DataFrame | None  # a row per image of the truth, a column per finding

    def ious(self, kind: Slice) -> pd.DataFrame:
        """The overlap; on true positives undefined where either is empty, on the full slice where both are."""
        images = self.images if kind == "true-positive" else tuple(sorted({*self.images, *self._scored}))
        counts = self.pixels.reindex(pd.MultiIndex.from_product([images, LOCALIZED]), fill_value=0)
        union = counts["region"] + counts["truth"] - counts["inside"]
        either = (counts["region"] == 0) | (counts["truth"] == 0)
        undefined = either if kind == "true-positive" else union == 0
        return _wide((counts["inside"] / union.where(union > 0)).mask(undefined))

    @cached_property
    def _scored(self) -> tuple[str, ...]:
        return tuple(self.pixels.index.get_level_values(0).unique())

    def rates(self) -> pd.DataFrame:
        """Precision, recall and specificity from pixels summed over the images of the truth."""
        counts = self.pixels[self.pixels.index.isin(self.images, level=0)].groupby(level=1).sum()
        counts = counts.reindex(list(LOCALIZED), fill_value=0)
        outside = counts["all"] - counts["truth"]
        wrong = counts["region"] - counts["inside"]
        return pd.DataFrame(
            {
                "pathology": list(LOCALIZED),
                "precision": _share(counts["inside"], counts["region"]),
                "recall/sensitivity": _share(counts["inside"], counts["truth"]),
                "specificity": _share(outside - wrong, outside),
            }
        )


def _share(part: pd.Series, total: pd.Series) -> np.ndarray:
    return (part / total.where(total > 0)).to_numpy(float)


def _wide(values: pd.Series) -> pd.DataFrame:
    """The values with a row per image and a column per finding."""
    table = values.unstack()  # noqa: PD010 - it refuses a pair that comes twice
    return table.reindex(columns=list(LOCALIZED)).sort_index()


def saliency_scores(regions: pd.DataFrame, marks: SizedMarks) -> ReferenceScores:
    """The scores of the maps, from the run's table of regions; a missing map is an empty region."""
    images = marks.images
    indexed = regions.set_index(["case", "finding"])
    pixels = pd.DataFrame(
        {
            "region": indexed["pixels"],
            "inside": indexed["inside"],
            "truth": indexed["truth"],
            "all": indexed["height"] * indexed["width"],
        }
    )
    hits = indexed["peak_inside"].where(indexed["truth"] > 0).astype(float)
    hits = hits.reindex(pd.MultiIndex.from_product([images, LOCALIZED], names=["case", "finding"]))
    return ReferenceScores(images, _with_missing(pixels, marks), _wide(hits))


def _with_missing(pixels: pd.DataFrame, marks: SizedMarks) -> pd.DataFrame:
    """The counts with a row for every image and finding of the truth; a missing map is an empty region."""
    lacking = [pair for pair in _pairs(marks.images) if pair not in pixels.index]
    rows = [_counts(np.zeros(truth.shape, bool), truth) for truth in (marks.truth(*pair) for pair in lacking)]
    if not rows:
        return pixels
    return pd.concat([pixels, pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(lacking))])


def _pairs(images: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return ((image, finding) for image in images for finding in LOCALIZED)


def _counts(region: Mask, truth: Mask) -> dict[str, int]:
    return {
        "region": int(region.sum()),
        "inside": int((region & truth).sum()),
        "truth": int(truth.sum()),
        "all": truth.size,
    }


def human_scores(marks: SizedMarks) -> ReferenceScores:
    """The scores of the readers; an image that their file lacks is an empty region, and a missing point is a miss."""
    rows, hits = [], []
    inputs, images = marks.inputs, marks.images
    for image, finding in _pairs(images):
        truth = marks.truth(image, finding)
        region = marks.mask(inputs.human, image, finding) if inputs.human else np.zeros(truth.shape, bool)
        rows.append(_counts(region, truth))
        drawn = (inputs.points or {}).get(image, {}).get(finding, ())
        hits.append(float(any(_inside(point, truth) for point in drawn)) if truth.any() else np.nan)
    index = pd.MultiIndex.from_tuples(list(_pairs(images)), names=["case", "finding"])
    points = _wide(pd.Series(hits, index)) if inputs.points is not None else None
    return ReferenceScores(images, pd.DataFrame(rows, index=index), points)


def _inside(point: Sequence[float], truth: Mask) -> bool:
    column, row = (int(coordinate) for coordinate in point)
    return 0 <= row < truth.shape[0] and 0 <= column < truth.shape[1] and bool(truth[row, column])


@dataclass(frozen=True)
class ReferenceWriter:
    """Writes the scripts' files into a folder."""

    folder: Path
    marks: SizedMarks
    regions: pd.DataFrame
    kind: Slice
    label: str  # of the regions: otsu, thr, smooth50, prob

    def write(self) -> None:
        """Everything the inputs allow."""
        inputs = self.marks.inputs
        saliency = saliency_scores(self.regions, self.marks)
        marked = inputs.human is not None or inputs.points is not None
        human = human_scores(self.marks) if marked else None
        self._segmentations(saliency)
        self._scores("", saliency, human_regions=True)
        if human:
            self._scores("humanbenchmark_", human, human_regions=inputs.human is not None)
            self._decreases(saliency, human)
        self._regressions(saliency, human)

    def _segmentations(self, saliency: ReferenceScores) -> None:
        stored: dict[str, dict[str, object]] = {}
        columns = (self.regions[name].tolist() for name in ("case", "finding", "height", "width", "counts"))
        for image, finding, height, width, counts in zip(*columns, strict=True):
            stored.setdefault(image, {})[finding] = {"size": [height, width], "counts": counts}
        self._json("pred_segmentations.json", stored)
        pixels = saliency.pixels.reset_index(names=["image", "finding"])
        for name, column in (("gt", "truth"), (f"pred_{self.label}", "region")):
            counts = pixels[pixels[column] > 0].groupby("finding").size().reindex(list(LOCALIZED), fill_value=0)
            self._csv(f"n_segs_{name}.csv", pd.DataFrame({0: counts.rename_axis(None)}), index=True)
        for name, annotations in (("gt", self.marks.inputs.truth), ("hb", self.marks.inputs.human)):
            if annotations is not None:
                self._json(f"{name}_segmentations.json", _encoded(annotations, self.marks))

    def _scores(self, rater: str, scores: ReferenceScores, *, human_regions: bool) -> None:
        tables = {"iou": scores.ious(self.kind) if human_regions else None, "hitmiss": scores.hits}
        for metric, table in tables.items():
            if table is None:
                continue
            self._csv(f"{metric}_{rater}results_per_cxr.csv", _with_ids(table))
            drawn = _drawn(table)
            self._csv(f"{metric}_{rater}bootstrap_results_per_cxr.csv", drawn[list(REPLICATES)])
            bounds = [(row.lower, row.mean, row.upper) for row in summaries(drawn.to_numpy())]
            summary = pd.DataFrame(bounds, columns=["lower", "mean", "upper"])
            summary.insert(0, "name", list(drawn.columns))
            self._csv(f"{metric}_{rater}summary_results.csv", summary)
        if human_regions:
            rates = f"{'hb' if rater else 'pred'}_precision_recall_specificity.csv"
            self._csv(rates, scores.rates(), index=True)

    def _decreases(self, saliency: ReferenceScores, human: ReferenceScores) -> None:
        pairs = {
            "miou": (saliency.ious(self.kind), human.ious(self.kind) if self.marks.inputs.human is not None else None),
            "hitrate": (saliency.hits, human.hits),
        }
        for name, (ours, theirs) in pairs.items():
            if ours is None or theirs is None:
                continue
            one, other = _drawn(theirs).to_numpy(), _drawn(ours).to_numpy()
            rows = decreases(one, other)
            table = _decrease_table(dict(zip(LOCALIZED, rows, strict=True)))
            table = table.sort_values("pct_diff", ascending=False, kind="stable")
            average = _decrease_table({"Average": average_decrease(rows, one, other)})
            self._csv(f"{name}_pct_decrease.csv", pd.concat([table, average]), index=True)

    def _regressions(self, saliency: ReferenceScores, human: ReferenceScores | None) -> None:
        shapes = _shapes(self.marks)
        files = {
            "num_instances": shapes.instances,
            "area_ratio": shapes.size,
            "elongation": shapes.elongation,
            "rec_area_ratio": 1 - shapes.irrectangularity,
        }
        for name, table in files.items():
            self._csv(f"{name}.csv", _with_ids(table))
        scores = {"iou": saliency.ious(self.kind), "hitmiss": saliency.hits}
        readers = {} if human is None else {"hitmiss": human.hits}
        if human is not None and self.marks.inputs.human is not None:
            readers["iou"] = human.ious(self.kind)
        probabilities = _wide(self.regions.set_index(["case", "finding"])["probability"])
        for metric, scored in scores.items():
            if scored is None:
                continue
            if self.kind == "true-positive":
                self._csv(f"regression_features_pred_{metric}.csv", feature_regressions(scored, shapes))
                if (their := readers.get(metric)) is not None:
                    gap = their - scored
                    self._csv(f"regression_features_{metric}_diff.csv", feature_regressions(gap, shapes))
            if probabilities.notna().any(axis=None) and (metric == "hitmiss" or self.kind == "full"):
                self._csv(f"regression_modelprob_{metric}.csv", probability_regressions(scored, probabilities))

    def _csv(self, name: str, table: pd.DataFrame, *, index: bool = False) -> None:
        with replaced(self.folder / name) as temporary:
            table.to_csv(temporary, index=index)

    def _json(self, name: str, content: Mapping[str, object]) -> None:
        with replaced(self.folder / name) as temporary:
            temporary.write_text(json.dumps(content))


def _drawn(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(replicates(table.to_numpy(float)), columns=table.columns)


def _with_ids(table: pd.DataFrame) -> pd.DataFrame:
    """The table as the scripts write it: the image's id in the last column."""
    return table.assign(img_id=table.index)


def _decrease_table(rows: Mapping[str, object]) -> pd.DataFrame:
    names = {"human": "hb", "saliency": "pred", "percent": "pct_diff", "lower": "pct_diff_lower",
             "upper": "pct_diff_upper"}  # fmt: skip
    return pd.DataFrame(
        [[getattr(row, ours) for ours in names] for row in rows.values()],
        index=list(rows),
        columns=list(names.values()),
    )


def _encoded(annotations: Annotations, marks: SizedMarks) -> dict[str, dict[str, object]]:
    """Every mask of a file as run lengths, empty ones too."""
    encoded: dict[str, dict[str, object]] = {}
    for image in annotations.images:
        shape = annotations.size(image) or marks.size(image)
        if shape is None:
            continue
        encoded[image] = {
            finding: {"size": list(shape), "counts": encode(annotations.mask(image, finding, shape))}
            for finding in REPLICATES
        }
    return encoded


def _shapes(marks: SizedMarks) -> ShapeTables:
    """The truth's geometry: instances and size are 0 where nothing is marked, the others undefined."""
    rows = []
    for image, finding in _pairs(marks.images):
        shape = shape_of(marks.truth(image, finding))
        drawn = marks.inputs.truth.instances(image, finding)
        instances = shape.components if drawn is None else drawn
        rows.append((instances if shape.components else 0, shape.size, shape.elongation, shape.irrectangularity))
    index = pd.MultiIndex.from_tuples(list(_pairs(marks.images)))
    columns = pd.DataFrame(rows, index=index)
    return ShapeTables(*(_wide(columns[column]) for column in columns))
