"""The contract of the networks of a training: channels, size, scaling and outputs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heatcheck.core.atomic_files import replaced
from heatcheck.core.contracts import Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.explaining.first_look.look import Sample, first_look
from heatcheck.fitting.examples import intensity, sampled
from heatcheck.fitting.spec import PixelsPart, TrainingPlan
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.contract import read_contract
from heatcheck.running.progress import Watcher


def contract_of(plan: TrainingPlan, out: Path, watcher: Watcher, workers: int = 1) -> Preprocessing:
    """How images are prepared: as the spec says, or as measured once on the training images and stored."""
    file = out / "contract.json"
    if file.exists():
        return read_contract(file.read_text(), file.name)
    channels, scale = _pixels(plan, watcher, workers)
    contract = Preprocessing(outputs=plan.outputs, size=plan.body.size, channels=channels, **scale)
    with replaced(file) as temporary:
        temporary.write_text(contract.model_dump_json() + "\n")
    return contract


def require_fitting_pixels(plan: TrainingPlan) -> None:
    """Refuse a mean and std in the spec that cannot be those of the training images."""
    body = plan.body
    if body.pixels.mean is not None:
        channels = channels_for(body.pixels, plan.training)
        contract = Preprocessing(outputs=plan.outputs, size=body.size, channels=channels, **body.pixels.scale())
        first_look(Sample(plan.training, plan.training.index(), plan.outputs), contract, body.model)


def _pixels(plan: TrainingPlan, watcher: Watcher, workers: int) -> tuple[int, dict[str, Any]]:
    """The number of channels, and the scaling in the contract."""
    pixels = plan.body.pixels
    if pixels.mean is not None or pixels.scaling == "nonzero":
        return channels_for(pixels, plan.training), pixels.scale()
    keys = sampled(plan.training.index(), pixels.sample, plan.seed)
    mean, std = intensity(plan.training, keys, watcher, workers)
    if pixels.channels and len(mean) not in (1, pixels.channels):
        raise InputError(
            f"the training images have {len(mean)} channels, `pixels.channels` is {pixels.channels}; only grey images "
            "can be repeated over channels, so make the numbers equal"
        )
    return pixels.channels or len(mean), {"mean": tuple(mean), "std": tuple(std)}


def channels_for(pixels: PixelsPart, source: Source) -> int:
    """The channels that the spec names or has values for, otherwise those of the first readable image."""
    if pixels.named_channels:
        return pixels.named_channels
    for key in source.index():
        try:
            return len(source.load(key).image)
        except InputError:
            raise
        except Exception:  # noqa: BLE001, S112 - counted during the training
            continue
    raise InputError("none of the training images can be read; check the training source")


def require_classes(given: NetworkClassifier, classes: Sequence[str], remedy: str, where: str) -> None:
    """Refuse a given network whose outputs are not the classes of the data; `remedy` says what to do."""
    wanted = given.preprocessing
    if set(wanted.outputs) != set(classes):
        raise SpecError(
            f"{where}: the model's outputs are {', '.join(wanted.outputs)}, the classes of the data "
            f"{', '.join(classes)}; make them equal"
        )
    if wanted.activation != "softmax":
        raise SpecError(
            f"{where}: the outputs of model {given.name} do not exclude each other (activation {wanted.activation}); "
            f"{remedy}"
        )
