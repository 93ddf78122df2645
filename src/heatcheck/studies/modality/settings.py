"""What a modality run estimates, and under which of its settings methods are compared."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.errors import RunFolderError
from heatcheck.core.vocabulary import Condition
from heatcheck.estimating.settings import EstimateSettings
from heatcheck.judging.sizes import stored_sizes
from heatcheck.stats.shapley import Coalitions, coalitions
from heatcheck.studies.modality.vocabulary import (
    EVERY_FOLD,
    Fill,
    Importance,
    Measure,
    ModalityManifest,
    Weights,
)


@dataclass(frozen=True, slots=True)
class ModalitySettings(EstimateSettings):
    """What is estimated, and how."""

    modalities: tuple[str, ...]
    classes: tuple[str, ...]
    methods: tuple[str, ...]
    folds: tuple[int, ...]
    fills: tuple[Fill, ...]  # the first one is primary
    measure: Measure  # primary, as are the next two
    weights: Weights
    importance: Importance
    known: tuple[str, ...]  # modalities whose importance is known by construction
    model: str
    coalitions: Coalitions

    @classmethod
    def of_run(cls, manifest: ModalityManifest) -> "ModalitySettings":
        """The settings of a finished run."""
        seed, spec = manifest.seed or 0, manifest.spec
        models = (*manifest.models, *([manifest.model] if manifest.model else []))
        if not models or not {"permutations", "bootstrap_draws"} <= set(spec):
            raise RunFolderError("run.json names no model or lacks its spec; remove the folder and run the study again")
        return cls(
            modalities=manifest.modalities,
            classes=manifest.classes,
            methods=tuple(method.name for method in manifest.methods),
            folds=manifest.fold_numbers,
            fills=manifest.fills,
            measure=manifest.primary.measure,
            weights=manifest.primary.weights,
            importance=manifest.primary.importance,
            known=manifest.known,
            model=models[0].name,
            coalitions=coalitions(len(manifest.modalities), spec["permutations"], seed),
            draws=spec["bootstrap_draws"],
            seed=seed,
            sizes=stored_sizes(manifest.sizes, "run.json"),
        )

    def primary(self, metric: str) -> Condition:
        """The condition of a metric under which methods are compared, without the fold."""
        return {"importance": self.importance, "weights": self.weights} if metric == "msfi" else {}

    def generator(self, *purpose: str) -> np.random.Generator:
        """The generator of one estimate: adding another estimate does not change it.

        A single fold and all folds together are the same cases and get the same draws.
        """
        if len(self.folds) == 1:
            only = str(self.folds[0])
            purpose = tuple(only if word == EVERY_FOLD else word.replace(f'"{EVERY_FOLD}"', only) for word in purpose)
        return EstimateSettings.generator(self, *purpose)  # a class with slots has no super() here
