"""The bases that come without weights, trained before anything is aligned; a shard is a base."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from torch.utils.data import Dataset

from heatcheck.core.contracts import Source
from heatcheck.core.records import ShardTables, Timing
from heatcheck.core.seeds import seed_for
from heatcheck.fitting.best_network import BestNetwork
from heatcheck.fitting.examples import CaseExamples, StoredExamples
from heatcheck.models import Preprocessing
from heatcheck.running.determinism import repeatable
from heatcheck.running.progress import Watcher
from heatcheck.studies.alignment_bases import Bench, PlannedBase, fresh
from heatcheck.studies.alignment_images import FOLDER, as_stored, file_of
from heatcheck.studies.alignment_spec import BasePart
from heatcheck.training import FitSettings, Job, LabelObjective, Machine, fit, quick, steps_done
from heatcheck.training.batches import Examples


class GreyCopies(Dataset[tuple[Tensor, ...]]):
    """Examples of one channel in as many as the network has."""

    def __init__(self, examples: Examples, channels: int) -> None:
        self.examples, self.channels = examples, channels

    def __len__(self) -> int:
        return len(self.examples)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        image, *more = self.examples[index]
        return (image.expand(self.channels, *image.shape[1:]), *more)


@dataclass(frozen=True)
class BasesStage:
    """Every base that is trained here."""

    part: BasePart
    bench: Bench
    sources: tuple[Source, Source]  # training and validation
    folder: Path  # of the run
    seed: int
    machine: Machine
    watcher: Watcher
    name: str = "training"
    what: str = "bases"

    @property
    def bases(self) -> Sequence[PlannedBase]:
        """Those without weights."""
        return [base for base in self.bench.bases if base.trained]

    @property
    def shards(self) -> int:
        """As many as there are such bases."""
        return len(self.bases)

    def cases_in(self, shard: int) -> int:  # noqa: ARG002 - each is one
        """One base."""
        return 1

    def work(self, shard: int) -> ShardTables:
        """Train a base; how well it does is seen when its turn to be examined comes."""
        base = self.bases[shard]
        begun = time.perf_counter()
        path = self.bench.path(base)
        path.parent.mkdir(exist_ok=True)
        training, validation = (
            self._examples(source, base.contract, name)
            for source, name in zip(self.sources, ("training", "validation"), strict=True)
        )
        fit_part = base.fit or self.part.fit
        settings = FitSettings(
            **fit_part.model_dump(exclude={"learning_rate"}),
            learning_rate=fit_part.rates[0],
            seed=seed_for(self.seed, base.key, "base"),
        )
        job = Job(
            quick(fresh(base, self.seed)),
            LabelObjective(self.part.uncertainty),
            training,
            validation,
            settings,
            path.with_suffix(".ckpt"),
            BestNetwork(path, base.settings.name, base.contract),
        )
        self.watcher.start(f"training {base.key}", job.steps, steps_done(job.state_file))
        with repeatable(None):
            fit(job, self.machine, lambda _, loss, __: self.watcher.advance(1, f"loss {loss:.3f}"))
        job.state_file.unlink(missing_ok=True)
        spent = time.perf_counter() - begun
        return ShardTables(timings=(Timing(shard, "training", "base", 1, spent, base.key),))

    def _examples(self, source: Source, contract: Preprocessing, name: str) -> Examples:
        """The examples of a split, kept on disk once for all networks that want them alike."""
        if not self.part.cache:
            return CaseExamples(source, contract, self.part.blank)
        stored = as_stored(contract, 1)
        file = self.folder / FOLDER / f"base-{name}" / file_of(contract)
        file.parent.mkdir(parents=True, exist_ok=True)
        examples = CaseExamples(source, stored, self.part.blank)
        kept = StoredExamples(examples, file, self.watcher, self.machine.workers, remedy="set `base.cache: false`")
        return GreyCopies(kept, contract.channels) if stored.channels == 1 else kept
