"""The baseline of a trigger study: a model with weights, or the contract of one that is to be trained."""

from collections.abc import Sequence

from heatcheck.core.errors import SpecError
from heatcheck.fitting.contract import require_classes
from heatcheck.fitting.networks import open_network
from heatcheck.fitting.spec import PixelsPart
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.predicting import require_network
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Spec
from heatcheck.studies.triggers.spec import TriggersBody

FIXED = "a trigger would change all of them, so set one mean and std for all images (`scaling: fixed`)"


def given_baseline(body: TriggersBody, spec: Spec, options: RunOptions) -> NetworkClassifier | None:
    """The baseline, where the model comes with weights; None where it is to be trained."""
    settings = body.model
    if not settings.has_weights:
        MODELS[settings.name]  # raises with a suggestion
        return None
    if body.size or body.start or body.pixels != PixelsPart():
        raise SpecError(
            f"{spec.name}: the model comes with weights and is not trained here; leave out `size`, `pixels` and `start`"
        )
    model = open_network(settings, spec, options, "a trigger is planted in one network")
    require_network(settings.name, model.module, "a trigger is trained into a network")
    return model


def contract_of(
    body: TriggersBody, classes: Sequence[str], channels: int, given: NetworkClassifier | None, where: str
) -> Preprocessing:
    """The preprocessing of the networks, for images of these classes and channels.

    The classes of a given baseline must be those of the data.
    """
    if given is not None:
        contract = given.preprocessing
        if classes:
            remedy = "a baseline needs softmax: let the study train it, or correct the contract"
            require_classes(given, classes, remedy, where)
        if contract.fit == "pad":
            raise SpecError(
                f"{where}: model {given.name} pads its images, but triggers and artefacts are placed on images that "
                "fill the model's grid; set `fit: stretch` in its contract"
            )
        if contract.scaling == "nonzero":
            raise SpecError(f"{where}: model {given.name} scales each image by its own pixels; {FIXED}")
        return contract
    if body.pixels.scaling == "nonzero":
        raise SpecError(f"{where}: pixels: with `scaling: nonzero` each image is scaled by its own pixels; {FIXED}")
    if not classes:
        raise SpecError(f"{where}: `artefacts` alone need a model with weights; name `weights`")
    facts = MODELS[body.model.name]
    pixels = body.pixels
    return Preprocessing(
        outputs=tuple(classes),
        size=facts.checked_size(body.size),
        channels=pixels.channels or max(facts.channels if body.start else channels, len(pixels.mean or ())),
        **pixels.scale(),
        activation="softmax",
    )
