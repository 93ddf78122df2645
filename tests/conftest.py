"""Small classifiers and images that many tests share."""
# ruff: noqa: E402 - torch reads the environment when it is loaded

import gc
import os
import tarfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from heatcheck.core.waiting import wait_briefly

os.environ.setdefault("OMP_NUM_THREADS", "1")
wait_briefly()

import pytest
import torch
import yaml
from hypothesis import settings
from torch import nn

from heatcheck.core.records import Case, CaseKey
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.sources.phantoms.phantom_brain import PhantomBrain
from heatcheck.sources.phantoms.phantom_chest import PhantomChest
from heatcheck.sources.phantoms.phantom_classes import PhantomClasses

torch.set_num_threads(1)
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HEATCHECK_EXAMPLES", "gate"))


SMALL = {
    "study": "localization",
    "title": "A small study",
    "seed": 3,
    "batch_size": 3,
    "shard_size": 4,
    "threads": 1,
    "gallery": 4,
    "source": {"name": "phantom_chest", "patients": 9, "first": 400, "size": 80},
    "model": "phantom_chest_densenet",
    "methods": ["grad_cam", "random", "location_prior"],
    "bootstrap_draws": 200,
}


WHOLE_NAMES = {"build_report", "run_study", "subprocess", "train"}  # what a file imports that runs whole studies


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `whole` what runs a study, a training or another process, by what its file imports."""
    for item in items:
        if not WHOLE_NAMES.isdisjoint(vars(item.module)):
            item.add_marker(pytest.mark.whole)


def pytest_collection_finish() -> None:
    """Take what is loaded out of later garbage collections, each of which would walk through a million objects."""
    gc.collect()
    gc.freeze()


def small_cnn(spatial: int, channels: int, outputs: int) -> nn.Module:
    """A few convolutions with in-place ReLUs, global pooling and a linear head."""
    conv, norm, pool = (
        (nn.Conv2d, nn.BatchNorm2d, nn.AdaptiveAvgPool2d)
        if spatial == 2
        else (nn.Conv3d, nn.BatchNorm3d, nn.AdaptiveAvgPool3d)
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(
            conv(channels, 6, 3, stride=2, padding=1),
            norm(6),
            nn.ReLU(inplace=True),
            conv(6, 8, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            pool(1),
            nn.Flatten(),
            nn.Linear(8, outputs),
        )


class SmallTransformer(nn.Module):
    """Patches and a class token through two layers of attention."""

    def __init__(self, spatial: int, channels: int, outputs: int) -> None:
        super().__init__()
        conv = nn.Conv2d if spatial == 2 else nn.Conv3d
        with torch.random.fork_rng():
            torch.manual_seed(4)
            self.patches, self.token = conv(channels, 8, 4, 4), nn.Parameter(torch.randn(1, 1, 8))
            layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(8, outputs)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.layers(torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1))[:, 0])


@pytest.fixture(scope="session")
def drawn() -> dict[tuple[object, str, str], Case]:
    """Cases of phantoms by kind, settings and name."""
    return {}


@pytest.fixture(scope="module", autouse=True)
def drawn_once(request: pytest.FixtureRequest, drawn: dict[tuple[object, str, str], Case]) -> Iterator[None]:
    """Where no source is tested, phantoms hand out what they drew before: to draw takes longer than to use it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.relative_to(Path(__file__).parent).parts[0] not in {"contracts", "sources"}:
            for phantom in (PhantomBrain, PhantomChest, PhantomClasses):
                patch.setattr(phantom, "load", _remembering(phantom.load, drawn))
        yield


def _remembering(load, drawn):
    """The same cases as copies, so that nobody can spoil them for others."""

    def remembered(self, key: CaseKey) -> Case:
        place = (type(self), self.stamp(), key.case)
        if place not in drawn:
            drawn[place] = load(self, key)
        return replace(deepcopy(drawn[place]), key=key)

    return remembered


@pytest.fixture(scope="module")
def plain_curves() -> Iterator[None]:
    """Learning curves as text: to draw one takes longer than a tiny training."""

    def written(out, *facts) -> None:
        for ending in ("svg", "png"):
            (out / f"learning-curve.{ending}").write_text(repr(facts))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heatcheck.fitting.train.draw_curve", written)
        yield


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data in CheXlocalize's formats (data/) and what the paper's scripts wrote for it (expected/)."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(Path(__file__).parent / "data" / "chexlocalize.tar.xz") as archive:
        # the archive is our own; Python before 3.11.4 has no filters
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202
    return folder


@pytest.fixture(params=[2, 3], ids=["2D", "3D"])
def spatial(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def tiny_classifier(spatial: int) -> NetworkClassifier:
    size = (24, 32) if spatial == 2 else (12, 16, 12)
    contract = Preprocessing(outputs=("a", "b", "c"), size=size, channels=2, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("tiny", small_cnn(spatial, 2, 3).eval(), contract)


@pytest.fixture
def tiny_transformer(tiny_classifier: NetworkClassifier) -> NetworkClassifier:
    contract = tiny_classifier.preprocessing
    return NetworkClassifier("tiny", SmallTransformer(len(contract.size), 2, 3).eval(), contract)


@pytest.fixture
def tiny_images(tiny_classifier: NetworkClassifier) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.rand(4, 2, *tiny_classifier.preprocessing.size, generator=generator)


@pytest.fixture(scope="session")
def small_spec() -> dict[str, object]:
    return SMALL


@pytest.fixture
def write_spec(tmp_path: Path):
    """A function that writes the small spec, with changes, and returns its path."""

    def write(**changes: object) -> Path:
        path = tmp_path / "small.yaml"
        values = {key: value for key, value in {**SMALL, **changes}.items() if value is not None}
        path.write_text(yaml.safe_dump(values))
        return path

    return write
