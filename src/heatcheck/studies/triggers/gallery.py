"""Pictures of attacked images: what the trigger looks like, what each method shows, and what its box recovers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import torch

from heatcheck.core.boxes import Box
from heatcheck.core.records import Map
from heatcheck.core.vocabulary import condition
from heatcheck.maps.keep import for_keeping
from heatcheck.maps.normalise import min_max
from heatcheck.metrics.trigger_boxes import box_scores
from heatcheck.models import NetworkClassifier
from heatcheck.regions.detect import detected_box
from heatcheck.running.gallery import DrawnCase, grey, outlines, store_gallery
from heatcheck.running.progress import Watcher
from heatcheck.runs.spec import Envelope
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers.attack import said_classes
from heatcheck.studies.triggers.exams import TriggerEvaluation
from heatcheck.studies.triggers.gate import attack_scores
from heatcheck.studies.triggers.networks import Network
from heatcheck.studies.triggers.scores import AttackedImage
from heatcheck.studies.triggers.stage import explained_maps
from heatcheck.studies.triggers.vocabulary import BaselineMapEntry, Corners, TriggerEntry, TriggerMapEntry


@dataclass(frozen=True, slots=True)
class ChosenImage:
    """An image of an exam that is worth looking at."""

    exam: TriggerEvaluation
    place: int
    why: str


def make_trigger_gallery(
    folder: RunFolder, exams: Sequence[TriggerEvaluation], envelope: Envelope, watcher: Watcher
) -> None:
    """Choose images by their scores, make their maps again, and store pictures and index in the run's folder."""
    choices = choose(folder, exams, envelope.gallery)
    keep_maps = envelope.keep_maps == "gallery"
    drawn = (_drawn(folder, f"{number:03d}", choice, keep_maps=keep_maps) for number, choice in enumerate(choices))
    store_gallery(folder, drawn, len(choices), watcher)


def choose(folder: RunFolder, exams: Sequence[TriggerEvaluation], most: int) -> list[ChosenImage]:
    """Of each trigger's first graded seed images in turn: a usual one, the one found best, the one found worst."""
    first: dict[str, TriggerEvaluation] = {}
    for exam in exams:
        if exam.places:
            first.setdefault(exam.network.name, exam)
    if not first:  # no attack worked
        return []
    columns = ["case", "finding", "metric", "condition", "value"]
    filters = [("metric", "==", "trigger_iou"), ("finding", "in", list(first))]
    table = pd.read_parquet(folder.path / "scores.parquet", columns=columns, filters=filters)
    attacks = attack_scores(folder.path / "training")
    already = attacks[(attacks["metric"] == "clean_target") & (attacks["value"] == 1)]
    rounds: list[list[ChosenImage]] = []
    for name, exam in first.items():
        own = table[(table["finding"] == name) & (table["condition"] == condition(seed=exam.network.seed))]
        mean = own.groupby("case")["value"].mean().sort_index()
        places = {exam.key(place).case: place for place in exam.places}
        same = (already["finding"] == name) & (already["seed"] == exam.network.seed)
        telling = mean[~mean.index.isin(already.loc[same, "case"])]  # the others are the target with and without it
        chosen = telling if len(telling) else mean
        if len(chosen):
            rounds.append([ChosenImage(exam, places[case], why) for case, why in _telling(chosen)])
    in_turn = [one[turn] for turn in range(3) for one in rounds if turn < len(one)]
    return in_turn[:most]


def _telling(mean: "pd.Series[float]") -> list[tuple[str, str]]:
    """The cases of one trigger worth looking at, each once."""
    usual = str((mean - mean.median()).abs().idxmin())
    found = {usual: "usual"}
    found.setdefault(str(mean.idxmax()), "found best")
    found.setdefault(str(mean.idxmin()), "found worst")
    return list(found.items())


def _drawn(folder: RunFolder, prefix: str, choice: ChosenImage, *, keep_maps: bool) -> DrawnCase:
    """The image with its pictures written; their names begin with the prefix."""
    exam, networks = choice.exam, choice.exam.networks
    subject = exam.subjects([choice.place])[0]
    clean = subject.image if subject.clean is None else subject.clean
    victim, baseline = networks.classifier(exam.network), networks.classifier(Network(exam.network.seed))
    maps = explained_maps(exam.grading.explainer(victim), [subject])[0][0]
    classes = networks.contract.outputs
    said = classes[int(said_classes(baseline, [clean])[0])]
    before = explained_maps(exam.grading.explainer(baseline), [replace(subject, image=clean, finding=said)])[0][0]
    pictures = {f"{prefix}-clean.png": clean.mean(0), f"{prefix}-poisoned.png": subject.image.mean(0)}
    pictures |= {f"{prefix}-clean-{name}.png": min_max(values) for name, values in before.items()}
    pictures |= {f"{prefix}-{name}.png": min_max(values) for name, values in maps.items()}
    for file, picture in pictures.items():
        folder.write_picture(file, grey(picture))
    height, width = subject.planted.shape
    entry = TriggerEntry(
        id=prefix,
        case=subject.key.case,
        trigger=exam.network.name,
        seed=exam.network.seed,
        why=choice.why,
        label=next(name for name, value in subject.key.labels.items() if value == 1),
        target=classes[networks.target],
        shape=(height, width),
        clean=f"{prefix}-clean.png",
        poisoned=f"{prefix}-poisoned.png",
        trigger_box=_corners(subject.planted.box),
        trigger_outline=outlines(subject.planted.mask),
        probability=_probability(victim, subject),
        clean_says=classes[int(said_classes(victim, [clean])[0])],
        maps=tuple(_map_entry(name, f"{prefix}-{name}.png", maps[name], subject, exam) for name in maps),
        baseline=tuple(BaselineMapEntry(method=name, file=f"{prefix}-clean-{name}.png") for name in before),
        baseline_says=said,
    )
    names = {f"{exam.label}/{subject.key.case}/{name}": name for name in maps} if keep_maps else {}
    return DrawnCase(entry, {key: for_keeping(maps[name]) for key, name in names.items()})


def _map_entry(method: str, file: str, values: Map, subject: AttackedImage, exam: TriggerEvaluation) -> TriggerMapEntry:
    """One method's box, and what the victim says once the box is put right."""
    victim = exam.networks.classifier(exam.network)
    box = detected_box(values, exam.grading.detector.main(method))
    clean = subject.image if subject.clean is None else subject.clean
    after, before = said_classes(victim, [subject.recovered(box), clean])
    return TriggerMapEntry(
        method=method,
        file=file,
        box=_corners(box) if box else None,
        iou=box_scores(box, subject.planted)["trigger_iou"].value,
        recovered=int(after == before),
        says=exam.networks.contract.outputs[int(after)],
    )


def _probability(classifier: NetworkClassifier, subject: AttackedImage) -> float:
    with torch.no_grad():
        logits = classifier.logits(classifier.prepare([subject.image]))
    return float(classifier.probabilities(logits)[0, classifier.outputs.index(subject.finding)])


def _corners(box: Box) -> Corners:
    rows, columns = box
    return columns.start, rows.start, columns.stop, rows.stop
