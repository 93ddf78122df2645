"""Many partly covered copies of an image through the model; what the model says of them serves every target."""

from collections.abc import Callable, Iterable, Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heatcheck.core.tensors import Images, Logits, Targets

Predict = Callable[[Images], Logits]
Covers = Bool[Tensor, "masks *space"]  # True where the image is covered


@torch.no_grad()
def score_drops(
    predict: Predict, images: Images, targets: Targets, covers: Iterable[Covers], fill: Images, at_a_time: int
) -> Iterator[Float[Tensor, "masks target"]]:
    """For each image: how far each of its covers lowers the targets' scores.

    `at_a_time` copies go through the model together. It is fixed, not measured while running, because another number
    changes the last digits of the scores, and a run that was interrupted must end with the same ones.
    """
    whole = predict(images)
    for image, cover, filled, before, wanted in zip(images, covers, fill, whole, targets, strict=True):
        after = [predict(torch.where(some.unsqueeze(1), filled, image)) for some in torch.split(cover, at_a_time)]
        yield (before - torch.cat(after))[:, wanted]
