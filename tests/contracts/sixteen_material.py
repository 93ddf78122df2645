"""Networks and images of four modalities, small enough for a test."""

from dataclasses import replace

import torch
from torch import nn

from heatcheck.methods.published import MODALITY_STUDY
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.registry import NetworkShape
from heatcheck.models.untrained import untrained

VOLUMES, SLICES = ("vgg3d", (16,) * 3), ("densenet121", (64, 64))
QUICK_SLICES = ("densenet_compact", (32, 32))  # of the same family, where its size is not the point
CHEAP = {  # each sample is a pass
    "smooth_grad": {"samples": 2},
    "integrated_gradients": {"steps": 3},
    "gradient_shap": {"samples": 2},
    "shapley_value_sampling": {"permutations": 1},
    "lime": {"samples": 24},
    "kernel_shap": {"samples": 12},
}
FEW = 5  # supervoxels


def network(name: str, size: tuple[int, ...]) -> NetworkClassifier:
    """An untrained network of four channels and two classes, whose normalisation is not without effect."""
    module = untrained(name, NetworkShape(4, 2, size)).eval()
    generator = torch.Generator().manual_seed(8)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d | nn.BatchNorm3d):
            part.running_mean = 0.1 * torch.randn(part.num_features, generator=generator)
            part.running_var = 0.5 + torch.rand(part.num_features, generator=generator)
        if isinstance(part, nn.ReLU):
            part.inplace = False  # Captum's hooks do not stand it
    head = [part for part in module.modules() if isinstance(part, nn.Linear)][-1]
    head.weight.data[1].abs_()  # so that something speaks for one class at least, and Grad-CAM is not empty
    contract = Preprocessing(
        outputs=("LGG", "HGG"), size=size, channels=4, mean=(0.0,), std=(1.0,), activation="softmax"
    )
    return NetworkClassifier(name, module, contract)


def heads(size: tuple[int, ...], count: int = 2) -> torch.Tensor:
    """Noisy balls in empty space, as scaled by their own non-zero voxels."""
    places = torch.meshgrid(*[torch.linspace(-1, 1, side) for side in size], indexing="ij")
    inside = sum(place**2 for place in places) < 0.8
    images = torch.randn(count, 4, *size, generator=torch.Generator().manual_seed(9))
    return torch.where(inside, images, 0.0)


def published(name: str, images: torch.Tensor):
    """The published method with fewer samples, windows and segments, and with donors where it wants them."""
    found = next(each for each in MODALITY_STUDY if each.method == name)
    settings = {**found.settings, **CHEAP.get(name, {})}
    if name == "occlusion":
        settings |= dict.fromkeys(("window", "stride"), images.shape[-1] // 2)
    if "segments" in settings:
        settings["segments"] = {**settings["segments"], "count": FEW, "sigma": 1.0}
    method = replace(found, settings=settings).build()
    return replace(method, donors=tuple(images.roll(1, 0)[:, None])) if name == "feature_permutation" else method
