"""Pictures of attacked images: the trigger, each method's map, and the image that its box recovers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import torch

from heatcheck.core.boxes import Box
from heatcheck.core.records import Map
from heatcheck.core.vocabulary import condition
from heatcheck.maps.keep import half_precision
from heatcheck.maps.normalise import min_max
from heatcheck.metrics.trigger_boxes import box_scores
from heatcheck.models import NetworkClassifier
from heatcheck.regions.detect import detected_box
from heatcheck.running.gallery import DrawnCase, grey, outlines, store_gallery
from heatcheck.running.progress import Watcher
from heatcheck.runs.spec import Envelope
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers.attack import predicted_classes
from heatcheck.studies.triggers.evaluations import TriggerEvaluation
from heatcheck.studies.triggers.networks import Network
from heatcheck.studies.triggers.scores import AttackedImage
from heatcheck.studies.triggers.stage import explained_maps
from heatcheck.studies.triggers.vocabulary import BaselineMapEntry, Corners, TriggerEntry, TriggerMapEntry


@dataclass(frozen=True, slots=True)
class ChosenImage:
    """An image of an evaluation that is worth looking at."""

    evaluation: TriggerEvaluation
    position: int
    why: str


def make_trigger_gallery(
    folder: RunFolder, evaluations: Sequence[TriggerEvaluation], envelope: Envelope, watcher: Watcher
) -> None:
    """Choose images by their scores, make their maps again, and store pictures and index in the run's folder.

    Three images a trigger at most are shown: to keep the maps of every attacked image under both networks would
    cost more than to make those few again.
    """
    choices = choose(folder, evaluations, envelope.gallery)
    keep_maps = envelope.keep_maps == "gallery"
    drawn = (_drawn(folder, f"{number:03d}", choice, keep_maps=keep_maps) for number, choice in enumerate(choices))
    store_gallery(folder, drawn, len(choices), watcher)


def choose(folder: RunFolder, evaluations: Sequence[TriggerEvaluation], most: int) -> list[ChosenImage]:
    """Images of each trigger's first graded seed, in turn: a usual one, the one found best, the one found worst."""
    first: dict[str, TriggerEvaluation] = {}
    for evaluation in evaluations:
        if evaluation.positions:
            first.setdefault(evaluation.network.name, evaluation)
    if not first:  # no attack worked
        return []
    columns = ["case", "finding", "metric", "condition", "value"]
    filters = [("metric", "==", "trigger_iou"), ("finding", "in", list(first))]
    table = pd.read_parquet(folder.path / "scores.parquet", columns=columns, filters=filters)
    by_trigger: list[list[ChosenImage]] = []
    for name, evaluation in first.items():
        seed = evaluation.network.seed
        rows = table[(table["finding"] == name) & (table["condition"] == condition(seed=seed))]
        mean = rows.groupby("case")["value"].mean().sort_index()
        positions = {evaluation.key(position).case: position for position in evaluation.positions}
        if len(mean):
            by_trigger.append([ChosenImage(evaluation, positions[case], why) for case, why in _examples(mean)])
    in_turn = [images[turn] for turn in range(3) for images in by_trigger if turn < len(images)]
    return in_turn[:most]


def _examples(mean: "pd.Series[float]") -> list[tuple[str, str]]:
    """The cases of one trigger to show, each once, with the reason; `mean` is their overlap over all methods."""
    reasons = {str((mean - mean.median()).abs().idxmin()): "usual"}
    reasons.setdefault(str(mean.idxmax()), "found best")
    reasons.setdefault(str(mean.idxmin()), "found worst")
    return list(reasons.items())


def _drawn(folder: RunFolder, prefix: str, choice: ChosenImage, *, keep_maps: bool) -> DrawnCase:
    """The image with its pictures written; their names begin with the prefix."""
    evaluation, networks, network = choice.evaluation, choice.evaluation.networks, choice.evaluation.network
    image = evaluation.images([choice.position])[0]
    clean = image.image if image.clean is None else image.clean
    poisoned_model, baseline = networks.classifier(network), networks.classifier(Network(network.seed))
    maps = explained_maps(evaluation.settings.explainer(poisoned_model), [image])[0][0]
    classes = networks.contract.outputs
    answer = classes[int(predicted_classes(baseline, [clean])[0])]
    clean_image = replace(image, image=clean, finding=answer)
    baseline_maps = explained_maps(evaluation.settings.explainer(baseline), [clean_image])[0][0]
    pictures = {f"{prefix}-clean.png": clean.mean(0), f"{prefix}-poisoned.png": image.image.mean(0)}
    pictures |= {f"{prefix}-clean-{name}.png": min_max(values) for name, values in baseline_maps.items()}
    pictures |= {f"{prefix}-{name}.png": min_max(values) for name, values in maps.items()}
    for file, picture in pictures.items():
        folder.write_picture(file, grey(picture))
    height, width = image.planted.shape
    entry = TriggerEntry(
        id=prefix,
        case=image.key.case,
        trigger=network.name,
        seed=network.seed,
        why=choice.why,
        label=next(name for name, value in image.key.labels.items() if value == 1),
        target=classes[networks.target],
        shape=(height, width),
        clean=f"{prefix}-clean.png",
        poisoned=f"{prefix}-poisoned.png",
        trigger_box=_corners(image.planted.box),
        trigger_outline=outlines(image.planted.mask),
        probability=_probability(poisoned_model, image),
        clean_says=classes[int(predicted_classes(poisoned_model, [clean])[0])],
        maps=tuple(_map_entry(name, f"{prefix}-{name}.png", maps[name], image, evaluation) for name in maps),
        baseline=tuple(BaselineMapEntry(method=name, file=f"{prefix}-clean-{name}.png") for name in baseline_maps),
        baseline_says=answer,
    )
    names = {f"{evaluation.label}/{image.key.case}/{name}": name for name in maps} if keep_maps else {}
    return DrawnCase(entry, {key: half_precision(maps[name]) for key, name in names.items()})


def _map_entry(
    method: str, file: str, values: Map, image: AttackedImage, evaluation: TriggerEvaluation
) -> TriggerMapEntry:
    """One method's box, and the poisoned model's answer once the box holds clean pixels."""
    networks = evaluation.networks
    box = detected_box(values, evaluation.settings.detector.main(method))
    clean = image.image if image.clean is None else image.clean
    after, before = predicted_classes(networks.classifier(evaluation.network), [image.recovered(box), clean])
    return TriggerMapEntry(
        method=method,
        file=file,
        box=_corners(box) if box else None,
        iou=box_scores(box, image.planted)["trigger_iou"].value,
        recovered=int(after == before),
        says=networks.contract.outputs[int(after)],
    )


def _probability(classifier: NetworkClassifier, image: AttackedImage) -> float:
    with torch.no_grad():
        logits = classifier.logits(classifier.prepare([image.image]))
    return float(classifier.probabilities(logits)[0, classifier.outputs.index(image.finding)])


def _corners(box: Box) -> Corners:
    rows, columns = box
    return columns.start, rows.start, columns.stop, rows.stop
