"""Keeps the best network of a fit: the one with the lowest validation loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from heatcheck.models import NetworkClassifier, Preprocessing, save_classifier
from heatcheck.runs.tables import replaced
from heatcheck.training import Check
from heatcheck.training.selection import best_checks


@dataclass(frozen=True)
class BestNetwork:
    """Keeps the weights of the check with the lowest validation loss."""

    path: Path
    model: str
    contract: Preprocessing
    by: tuple[str, ...] = ()

    def judged(self, answers: Tensor, labels: Tensor) -> Mapping[str, float]:  # noqa: ARG002 - the loss says enough
        """Nothing: the loss ranks."""
        return {}

    def keep(self, history: Sequence[Check], module: nn.Module) -> None:
        """Store the newest weights if they are the best."""
        if best_checks(history, self.by, 1)[:1] == [history[-1]]:
            with replaced(self.path) as temporary:
                save_classifier(NetworkClassifier(self.model, module, self.contract), temporary)
