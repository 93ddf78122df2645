"""What a modality run estimates, and under which of its settings methods are compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatcheck.estimating.settings import EstimateSettings
from heatcheck.metrics.modality.msfi import WeightRule
from heatcheck.stats.shapley import Coalitions, coalitions
from heatcheck.studies.modality.vocabulary import EVERY_FOLD


@dataclass(frozen=True, slots=True)
class ModalitySettings(EstimateSettings):
    """What is estimated, and how."""

    modalities: tuple[str, ...]
    classes: tuple[str, ...]
    methods: tuple[str, ...]
    shared: frozenset[str]  # methods that make one map for all modalities
    folds: tuple[int, ...]
    fills: tuple[str, ...]  # the first counts, and so of the next three
    measure: str  # balanced, or accuracy
    weights: WeightRule
    importance: str  # lesion, or known
    known: tuple[str, ...]  # modalities whose importance is known by construction
    model: str
    coalitions: Coalitions
    removal: bool = True  # voxels were taken away

    @classmethod
    def of_run(cls, manifest: Mapping[str, Any]) -> "ModalitySettings":
        """The settings of a finished run, from its description."""
        told, spec = manifest["primary"], manifest["spec"]
        methods, names = manifest["methods"], tuple(manifest["modalities"])
        return cls(
            modalities=names,
            classes=tuple(manifest["classes"]),
            methods=tuple(facts["name"] for facts in methods),
            shared=frozenset(facts["name"] for facts in methods if facts.get("shares_modalities")),
            folds=tuple(range(1, int(manifest["folds"]) + 1)),
            fills=tuple(manifest["fills"]),
            measure=told["measure"],
            weights=told["weights"],
            importance=told["importance"],
            known=tuple(manifest["known"]),
            model=manifest["model"]["name"],
            coalitions=coalitions(len(names), int(spec.get("permutations", 200)), int(manifest["seed"])),
            draws=int(spec["bootstrap_draws"]),
            seed=int(manifest["seed"]),
            removal=bool(manifest.get("removal", True)),
        )

    def primary(self, metric: str) -> dict[str, str]:
        """What the condition of a metric says where methods are compared, beside the fold."""
        return {"importance": self.importance, "weights": self.weights} if metric == "msfi" else {}

    def generator(self, *purpose: str) -> np.random.Generator:
        """The generator of one estimate: adding another estimate does not change it.

        Where there is one fold, it and all folds are the same cases and have the same draws.
        """
        if len(self.folds) == 1:
            only = str(self.folds[0])
            purpose = tuple(only if word == EVERY_FOLD else word.replace(f'"{EVERY_FOLD}"', only) for word in purpose)
        return EstimateSettings.generator(self, *purpose)  # a class with slots has no super() here
