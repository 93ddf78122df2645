"""Train a classifier from a spec: source → examples → fit → weights with their contract."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from heatcheck.core.contracts import Source
from heatcheck.core.errors import RunFolderError, SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.seeds import seed_for
from heatcheck.metrics.classification import auroc
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing, save_classifier
from heatcheck.runs.spec import Spec
from heatcheck.runs.store import locked
from heatcheck.studies.progress import Watcher
from heatcheck.studies.sources import open_source
from heatcheck.training import Epoch, FitSettings, fit


class FitPart(BaseModel):
    """How long and how fast to learn."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epochs: int = Field(12, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.01, ge=0)


class TrainingBody(BaseModel):
    """What a training spec says beyond the common part."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: str
    findings: tuple[str, ...] | Literal["all"] = "all"
    size: tuple[int, ...] = (160, 160)
    training: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any]
    fit: FitPart = FitPart()


@dataclass(frozen=True, slots=True)
class TestResult:
    """How well one finding is told on unseen cases."""

    finding: str
    auroc: float
    positives: int
    cases: int


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training leaves behind."""

    weights: Path
    results: tuple[TestResult, ...]

    @property
    def macro_auroc(self) -> float:
        """The mean over the findings that have an AUROC."""
        return float(np.nanmean([result.auroc for result in self.results]))


class CaseExamples(Dataset[tuple[Tensor, Tensor]]):
    """The cases of a source on the model's grid, with their labels."""

    def __init__(self, source: Source, classifier: NetworkClassifier) -> None:
        self.source, self.classifier = source, classifier
        self.keys = list(source.index())

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        key = self.keys[index]
        return self.classifier.prepare([self.source.load(key).image])[0], self.labels(key)

    def labels(self, key: CaseKey) -> Tensor:
        """The case's labels in the order of the outputs."""
        return torch.tensor([key.labels[finding] for finding in self.classifier.outputs], dtype=torch.float32)


class StoredExamples(Dataset[tuple[Tensor, Tensor]]):
    """Examples kept on disk after their first preparation, read back through a memory map."""

    def __init__(self, examples: CaseExamples, path: Path, watcher: Watcher, workers: int) -> None:
        self.labels = torch.stack([examples.labels(key) for key in examples.keys])
        if not path.exists():
            _prepare_all(examples, path, watcher, workers)
        self.images = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self.images[index].astype(np.float32)), self.labels[index]


def _prepare_all(examples: CaseExamples, path: Path, watcher: Watcher, workers: int) -> None:
    shape = (len(examples), *examples[0][0].shape)
    temporary = path.with_suffix(".tmp.npy")
    images = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
    watcher.start(f"preparing {path.stem}", len(examples))
    for start, (batch, _) in zip(
        range(0, len(examples), 16), DataLoader(examples, 16, num_workers=workers), strict=True
    ):
        images[start : start + len(batch)] = batch.numpy()
        watcher.advance(len(batch))
    images.flush()
    temporary.rename(path)


def train(spec: Spec, out: Path, watcher: Watcher, workers: int = 2, device: str = "cpu") -> Trained:
    """The trained classifier as a file in `out`, and how well it does on its test source."""
    body = spec.checked_body(TrainingBody)
    sources = [open_source(part, spec.folder, spec.name) for part in (body.training, body.validation, body.test)]
    classifier = _untrained(body, spec.envelope.seed, sources[0])
    _claim(out, {"seed": spec.envelope.seed, **body.model_dump(mode="json")})
    with locked(out), _repeatable(spec.envelope.threads):
        training, validation = (
            StoredExamples(CaseExamples(source, classifier), out / f"{name}.npy", watcher, workers)
            for source, name in zip(sources[:2], ("training", "validation"), strict=True)
        )
        settings = FitSettings(seed=spec.envelope.seed, device=device, **body.fit.model_dump())
        history = _fitted(classifier, (training, validation), settings, out / "state.ckpt", watcher)
        save_classifier(classifier, out / "weights.safetensors")
        results = evaluate(classifier, sources[2], watcher)
        record = {"history": [asdict(epoch) for epoch in history], "test": [asdict(result) for result in results]}
        (out / "training.json").write_text(json.dumps(record, indent=1) + "\n")
    return Trained(out / "weights.safetensors", results)


@contextmanager
def _repeatable(threads: int | None) -> Iterator[None]:
    """Torch set so that the same seed gives the same weights; its settings are restored."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads or before[0])
    torch.use_deterministic_algorithms(True, warn_only=True)  # some GPU kernels have no such form
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])


def _fitted(
    classifier: NetworkClassifier,
    data: tuple[StoredExamples, StoredExamples],
    settings: FitSettings,
    state: Path,
    watcher: Watcher,
) -> list[Epoch]:
    """The history of the fit, watched step by step."""
    steps = settings.epochs * (len(data[0]) // settings.batch_size)
    watcher.start("training", steps, _steps_done(state, steps, settings.epochs))
    return fit(
        classifier.module, data, settings, state, lambda _step, _steps, loss: watcher.advance(1, f"loss {loss:.3f}")
    )


def _steps_done(state: Path, steps: int, epochs: int) -> int:
    if not state.exists():
        return 0
    done = len(torch.load(state, map_location="cpu", weights_only=True)["history"])
    return steps * done // epochs


def _claim(out: Path, identity: dict[str, Any]) -> None:
    """Take the folder for this training, or continue there if it holds the same one."""
    description = out / "training-spec.json"
    text = json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if description.exists():
        if description.read_text() != text:
            raise RunFolderError(f"{out} holds another training; choose another --out")
        return
    if out.exists() and (not out.is_dir() or any(path.name != ".lock" for path in out.iterdir())):
        raise RunFolderError(f"{out} is not an empty folder; choose another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        description.write_text(text)
    except OSError as error:
        raise RunFolderError(f"{out} cannot be written ({error.strerror}); choose another --out") from error


def _untrained(body: TrainingBody, seed: int, source: Source) -> NetworkClassifier:
    outputs = source.findings if body.findings == "all" else body.findings
    missing = [finding for finding in outputs if finding not in source.findings]
    if missing:
        raise SpecError(f"findings {missing} are not in the training source, which has {list(source.findings)}")
    first = [source.load(key).image for key in source.index()[:100]]
    channels = first[0].shape[0]
    pixels = np.concatenate([image.reshape(channels, -1) for image in first], axis=1)
    contract = Preprocessing(
        outputs=outputs,
        size=body.size,
        channels=channels,
        mean=tuple(round(float(value), 4) for value in pixels.mean(1)),
        std=tuple(round(float(value), 4) for value in pixels.std(1)),
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed_for(seed, "initial weights"))
        module = MODELS[body.model].build(channels, len(outputs), body.size)
    # the CPU's convolutions are faster with channels last
    module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return NetworkClassifier(body.model, module, contract)


@torch.no_grad()
def evaluate(classifier: NetworkClassifier, source: Source, watcher: Watcher) -> tuple[TestResult, ...]:
    """The AUROC of each finding on a source."""
    keys = source.index()
    watcher.start("testing", len(keys))
    rows = []
    for key in keys:
        logits = classifier.logits(classifier.prepare([source.load(key).image]))
        rows.append(classifier.probabilities(logits)[0].cpu().numpy())
        watcher.advance()
    probabilities = np.stack(rows)
    labels = np.array([[key.labels[finding] for finding in classifier.outputs] for key in keys])
    return tuple(
        TestResult(finding, auroc(labels[:, i], probabilities[:, i]).value, int(np.nansum(labels[:, i])), len(keys))
        for i, finding in enumerate(classifier.outputs)
    )
