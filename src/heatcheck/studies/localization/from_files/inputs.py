"""The files given to `score` and `tune`: maps, truth, readers and labels, checked against each other first."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from heatcheck.core.errors import InputError
from heatcheck.core.findings import CHEXPERT, LOCALIZED, known
from heatcheck.core.records import CaseKey
from heatcheck.core.registry import suggest
from heatcheck.scoring.presets import PresetName, Rules, rules_with
from heatcheck.sources.files.annotations import Annotations, read_annotations, read_points
from heatcheck.sources.files.label_rows import read_label_rows
from heatcheck.sources.files.map_files import MapFile, find_maps, read_map, stray_files
from heatcheck.sources.files.marks import Polygon
from heatcheck.sources.files.reading import without_ending
from heatcheck.studies.localization.subgroups.groups import Groups, Subgroup, subgroups_of
from heatcheck.studies.localization.vocabulary import BOXES

MapsByImage = Mapping[str, Mapping[str, MapFile]]
_LOOKED_AT = 8  # maps that say whether a method's grid is the image's
Points = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]


@dataclass(frozen=True, slots=True)
class ScoreFiles:
    """The files of one call."""

    maps: Mapping[str, Path]  # by the name of the method that made them
    truth: Path
    human: Path | None = None
    human_points: Path | None = None
    labels: Path | None = None
    preset: PresetName = "recommended"
    allow_missing: bool = False
    switches: Mapping[str, PresetName] = field(default_factory=dict)  # single rules set to either preset's
    subgroups: tuple[Subgroup, ...] | None = None  # columns of the labels by which results are divided


@dataclass(frozen=True)
class ScoreInputs:
    """Everything that is scored, indexed by image id; nothing is matched by position."""

    given: ScoreFiles
    maps: Mapping[str, MapsByImage]  # by method
    truth: Annotations
    human: Annotations | None
    points: Points | None
    labelled: Mapping[str, CaseKey]  # from a table of labels, by image
    findings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def rules(self) -> Rules:
        """The preset's rules, except for the switches."""
        return rules_with(self.given.preset, self.given.switches)

    @property
    def scoring_rules(self) -> Rules:
        """The rules of the run's own scores: the recommended ones, except for the switches."""
        return rules_with("recommended", self.given.switches)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """Every image that has a truth or a map, sorted."""
        return tuple(sorted({*self.truth.images, *(image for maps in self.maps.values() for image in maps)}))

    def keys(self) -> list[CaseKey]:
        """Every image with its patient and its labels."""
        facts = {image: key.facts for image, key in self.labelled.items()}
        return [CaseKey(image, self.patient(image), self._labels(image), facts.get(image, {})) for image in self.images]

    def divided(self, keys: Sequence[CaseKey]) -> tuple[Groups, ...]:
        """The groups of every column that results are divided by."""
        return subgroups_of(self.given.subgroups or (), keys, "--subgroup")

    def patient(self, image: str) -> str:
        """The patient in the table of labels, or else the id up to the first underscore."""
        labelled = self.labelled.get(image)
        return (labelled.patient if labelled else "") or image.split("_", 1)[0]

    def _labels(self, image: str) -> dict[str, float]:
        """The labels of the table; without one a finding is present where the truth marks it, and absent elsewhere.

        A list of boxes names only some of the images with a finding: there, what is not marked is unknown.
        """
        labelled = self.labelled.get(image)
        unmarked = math.nan if self.truth.kind == BOXES else 0.0
        labels: Mapping[str, float] = labelled.labels if labelled else dict.fromkeys(self.findings, unmarked)
        marked = (f for f in self.findings if not self.truth.is_empty(image, f))
        return {f: known(labels.get(f, math.nan)) for f in self.findings} | dict.fromkeys(marked, 1.0)

    @cached_property
    def contradictions(self) -> dict[str, str]:
        """What is wrong with each image on which a finding is marked that the table of labels says is absent."""
        names = self.given.labels.name if self.given.labels else "", self.given.truth.name
        return {
            image: f"{names[0]} says that {image} has no {finding}, but {names[1]} marks it; correct one of them"
            for image in self.truth.images
            for finding in reversed(self.findings)  # so that the first one is named
            if image in self.labelled
            and self.labelled[image].labels.get(finding) == 0
            and not self.truth.is_empty(image, finding)
        }

    @cached_property
    def on_image_grid(self) -> frozenset[str]:
        """The methods whose `.npy` maps have the size of their images."""
        return frozenset(method for method in self.maps if grids_are_images(self, method))

    def failing(self, image: str) -> str:
        """Why the image cannot be scored under these rules; empty if it can."""
        return self.contradictions.get(image, "") if self.rules.contradiction == "fail" else ""

    def missing(self) -> Iterator[tuple[str, str, str]]:
        """Every method, image and finding that has a truth and no map."""
        for method, maps in self.maps.items():
            for image in self.truth.images:
                for finding in self.findings:
                    if not self.truth.is_empty(image, finding) and finding not in maps.get(image, {}):
                        yield method, image, finding


def read_inputs(given: ScoreFiles) -> ScoreInputs:
    """The inputs, checked; an InputError names the files that do not belong together."""
    maps = {method: find_maps(folder, method) for method, folder in given.maps.items()}
    truth = read_annotations(given.truth)
    _require_common(truth.images, maps, given)
    findings = _findings(truth, maps, given)
    human = read_annotations(given.human) if given.human else None
    points = read_points(given.human_points) if given.human_points else None
    labelled = _labelled(given.labels, given.subgroups or ()) if given.labels else {}
    inputs = ScoreInputs(given, maps, truth, human, points, labelled, findings)
    missing = list(inputs.missing())
    if missing and inputs.rules.missing_map == "error" and not given.allow_missing:
        _, image, finding = missing[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InputError(
            f"{given.maps[missing[0][0]]} has no map for {finding} on {image}{more}, which {given.truth} marks; "
            "add it, or count such cases with --allow-missing"
        )
    notes = (
        *_missing_notes(missing), *_clipped_notes(inputs), *_human_notes(inputs), *_label_notes(inputs),
        *_map_notes(inputs),
    )  # fmt: skip
    return replace(inputs, notes=notes)


def grids_are_images(inputs: ScoreInputs, method: str) -> bool:
    """Whether the method's `.npy` maps, which state no size, have that of their image wherever it is known."""
    sizes = ((inputs.truth.size(image), files) for image, files in inputs.maps[method].items())
    known = ((size, file) for size, files in sizes if size for file in files.values() if file.path.suffix == ".npy")
    looked_at = list(islice(known, _LOOKED_AT))
    return bool(looked_at) and all(read_map(file).values.shape == size for size, file in looked_at)


def _labelled(path: Path, subgroups: Sequence[Subgroup]) -> dict[str, CaseKey]:
    """The labels by image id; CheXpert's …/patient/study/view.jpg is joined by underscores."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; correct --labels")
    table = read_label_rows(path, [subgroup.column for subgroup in subgroups])
    names = ("_".join(name.split("/")[-3:]) if table.chexpert else name.split("/")[-1] for name in table.images)
    keys = table.keys([without_ending(name) for name in names], table.patients, table.findings)
    return {key.case: key for key in keys}


def _require_common(truth: Sequence[str], maps: Mapping[str, MapsByImage], given: ScoreFiles) -> None:
    for method, by_image in maps.items():
        if not set(by_image) & set(truth):
            raise InputError(
                f"{given.truth} and {given.maps[method]} have no image in common (the first are {truth[0]!r} and "
                f"{next(iter(by_image))!r}); give maps and truth of the same images"
            )


def _findings(truth: Annotations, maps: Mapping[str, MapsByImage], given: ScoreFiles) -> tuple[str, ...]:
    """The benchmark's ten findings under its preset, otherwise those of the truth."""
    known = {*truth.findings, *CHEXPERT}
    for by_image in maps.values():
        for files in by_image.values():
            for finding, file in files.items():
                if finding not in known:
                    hint = suggest(finding, sorted(known))
                    raise InputError(f"{file.path}: no finding is called {finding!r} in {given.truth}; {hint}")
    if given.preset == "recommended":
        return truth.findings
    other = sorted(set(truth.findings) - set(LOCALIZED))
    if other:
        raise InputError(
            f"{given.truth} marks {other[0]!r}, which the benchmark does not have; use --preset recommended"
        )
    return LOCALIZED


def _missing_notes(missing: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    if missing:
        _, image, finding = missing[0]
        yield f"{_many(len(missing), 'marked finding')} had no map, e.g. {finding} on {image}."


def _clipped_notes(inputs: ScoreInputs) -> Iterator[str]:
    """How many of the truth's outlines leave their image."""
    truth = inputs.truth
    beyond = [
        image
        for image in truth.images
        for finding in truth.findings_of(image)
        for outline in truth.outlines(image, finding)
        if (size := truth.size(image)) and _leaves(outline, size)
    ]
    if beyond:
        outlines = _many(len(beyond), "outline")
        yield f"{outlines} of the truth extended beyond the image, e.g. on {beyond[0]}; cut off there."


def _leaves(outline: Polygon, size: tuple[int, int]) -> bool:
    height, width = size
    return bool((outline < -1).any() or (outline > (width + 1, height + 1)).any())


def _human_notes(inputs: ScoreInputs) -> Iterator[str]:
    """How far the readers' files cover the truth's images; a file of other images is refused."""
    for path, images in ((inputs.given.human, inputs.human.images if inputs.human else ()),
                         (inputs.given.human_points, tuple(inputs.points or ()))):  # fmt: skip
        if path is None:
            continue
        common = set(images) & set(inputs.truth.images)
        if not common:
            raise InputError(
                f"{path} names none of the images of {inputs.given.truth}; give the readers' file of the same images"
            )
        if lacking := len(inputs.truth.images) - len(common):
            yield f"{path.name} lacks {_many(lacking, 'image')} of the truth."
        if extra := len(images) - len(common):
            yield f"{path.name} names {_many(extra, 'image')} that the truth does not; they were not used."


def _label_notes(inputs: ScoreInputs) -> Iterator[str]:
    path = inputs.given.labels
    if path is None:
        return
    common = set(inputs.labelled) & set(inputs.images)
    if not common:
        raise InputError(
            f"{path} names none of the images (the first are {next(iter(inputs.labelled), '')!r} and "
            f"{inputs.images[0]!r}); give the labels of the same images"
        )
    if denied := len(inputs.contradictions):
        image = next(iter(inputs.contradictions))
        ignored = inputs.rules.contradiction == "ignore"
        yield (
            f"{path.name} denies what the truth marks on {_many(denied, 'image')}, e.g. {image}; "
            f"{'the labels were ignored there' if ignored else 'left out'}."
        )
    if lacking := len(inputs.images) - len(common):
        yield f"{path.name} lacks {_many(lacking, 'image')}; their labels follow from the truth."


def _map_notes(inputs: ScoreInputs) -> Iterator[str]:
    for method, maps in inputs.maps.items():
        if stray := stray_files(inputs.given.maps[method]):
            named = f"{_many(len(stray), 'file')} not named <image>_<finding>_map.pkl, .npz or .npy"
            yield f"Skipped {named}, e.g. {stray[0].name}."
        outside = len(set(maps) - set(inputs.truth.images))
        if outside:
            whose = "" if len(inputs.maps) == 1 else f" of {method}"
            yield f"No truth for {_many(outside, 'image')} with maps{whose}: these count in the full slice only."
        unused = {finding for files in maps.values() for finding in files} - set(inputs.findings)
        if unused:
            yield f"Maps of {', '.join(sorted(unused))} were not scored: the truth does not have them."


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
