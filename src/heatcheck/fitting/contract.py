"""What the networks of a training expect of images and classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatcheck.core.contracts import Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.fitting.examples import intensity
from heatcheck.fitting.spec import PixelsPart, TrainingPlan
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.contract import read_contract
from heatcheck.running.progress import Watcher
from heatcheck.runs.tables import replaced


def contract_of(plan: TrainingPlan, out: Path, watcher: Watcher) -> Preprocessing:
    """How images are prepared: said by the spec, or measured on the training images once and then remembered."""
    file = out / "contract.json"
    if file.exists():
        return read_contract(file.read_text(), file.name)
    channels, scale = _pixels(plan, watcher)
    contract = Preprocessing(outputs=plan.outputs, size=plan.body.size, channels=channels, **scale)
    with replaced(file) as temporary:
        temporary.write_text(contract.model_dump_json() + "\n")
    return contract


def _pixels(plan: TrainingPlan, watcher: Watcher) -> tuple[int, dict[str, Any]]:
    """Channels, and what the contract says of scaling."""
    said = plan.body.pixels
    if said.mean is not None or said.scaling == "nonzero":
        return channels_of(said, plan.training), said.scale()
    mean, std = intensity(plan.training, plan.training.index(), plan.seed, watcher)
    if said.channels and len(mean) not in (1, said.channels):
        raise InputError(
            f"the training images have {len(mean)} channels, `pixels.channels` is {said.channels}; only grey images "
            "can fill other channels than their own"
        )
    return said.channels or len(mean), {"mean": tuple(mean), "std": tuple(std)}


def channels_of(said: PixelsPart, source: Source) -> int:
    """The channels that the spec names or counts values for, else those of the first image that can be read."""
    if said.said_channels:
        return said.said_channels
    for key in source.index():
        try:
            return len(source.load(key).image)
        except InputError:
            raise
        except Exception:  # noqa: BLE001, S112 - counted when its turn in the training comes
            continue
    raise InputError("none of the training images can be read; check the training source")


def require_classes(given: NetworkClassifier, classes: Sequence[str], remedy: str, where: str) -> None:
    """Refuse a given network that does not tell the classes of the data apart; `remedy` says what to do."""
    wanted = given.preprocessing
    if set(wanted.outputs) != set(classes):
        raise SpecError(
            f"{where}: the model tells {', '.join(wanted.outputs)}, the data have {', '.join(classes)}; they must agree"
        )
    if wanted.activation != "softmax":
        raise SpecError(
            f"{where}: the outputs of model {given.name} do not exclude each other (activation {wanted.activation}); "
            f"{remedy}"
        )
