"""The checkpoints of a training: kept while it runs, listed when it is finished, and joined into an ensemble."""

import csv
import hashlib
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from heatcheck.core.atomic_files import replaced
from heatcheck.core.records import CaseKey
from heatcheck.fitting.results import Views, judged
from heatcheck.models import NetworkClassifier, Preprocessing, save_classifier
from heatcheck.models.classifier import activated, log_odds
from heatcheck.models.ensemble import BEST_FILE, FILE, EnsembleFile, MemberEntry
from heatcheck.training.selection import Candidate, Check, best_checks, file_name, members

FOLDER = "checkpoints"


@dataclass(frozen=True)
class CheckpointKeeper:
    """Evaluates the network of one run, and keeps its best checkpoints as files."""

    folder: Path
    model: str
    contract: Preprocessing
    strategy: str
    run: int
    by: tuple[str, ...]
    most: int
    keys: tuple[CaseKey, ...]  # of the validation data
    views: Views = "each"

    def judged(self, answers: Tensor, labels: Tensor) -> Mapping[str, float]:
        """The AUROC of each finding on the validation data; NaN if the network's answers are not finite."""
        if not answers.isfinite().all():
            return dict.fromkeys(self.contract.outputs, math.nan)
        probabilities = activated(log_odds(answers, self.contract), self.contract).double().numpy()
        return judged(self.keys, labels.double().numpy(), probabilities, self.contract.outputs, self.views).by_finding()

    def keep(self, history: Sequence[Check], module: nn.Module) -> None:
        """Store the newest weights if they are among the best of the run, and remove those that no longer are."""
        best = {file_name(self.strategy, self.run, check.step) for check in best_checks(history, self.by, self.most)}
        newest = file_name(self.strategy, self.run, history[-1].step)
        if newest in best:
            with replaced(self.folder / newest) as temporary:
                save_classifier(NetworkClassifier(self.model, module, self.contract), temporary)
        for check in history:
            name = file_name(self.strategy, self.run, check.step)
            if name not in best:
                (self.folder / name).unlink(missing_ok=True)


def write_table(out: Path, every: Sequence[Candidate], kept: Sequence[Candidate], findings: Sequence[str]) -> None:
    """Write checkpoints.csv: every check, its losses and AUROCs, and whether its checkpoint was kept."""
    kept_names = {candidate.name for candidate in kept}
    with replaced(out / "checkpoints.csv") as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        facts = ("strategy", "run", "step", "epoch", "training_loss", "validation_loss", "mean_auroc")
        writer.writerow(("checkpoint", "kept", *facts, *findings))
        for one in every:
            check = one.check
            numbers = (check.training_loss, check.validation_loss, check.mean_auroc)
            row = (one.name, int(one.name in kept_names), one.strategy, one.run, check.step, check.epoch + 1)
            aurocs = (check.auroc.get(finding, math.nan) for finding in findings)
            writer.writerow((*row, *("" if math.isnan(value) else f"{value:.6g}" for value in (*numbers, *aurocs))))


def write_ensemble(
    out: Path, model: str, kept: Sequence[Candidate], findings: Sequence[str], by: Sequence[str], most: int
) -> tuple[Path, Path]:
    """Write ensemble.json, the `most` best checkpoints of each finding, and best_single.json, the best one of each."""
    digests = {one.name: file_digest(out / FOLDER / one.name) for one in kept}
    listed = {
        finding: tuple(
            MemberEntry(
                checkpoint=Path(FOLDER) / one.name, sha256=digests[one.name], auroc=_number(one.check.auroc[finding])
            )
            for one in members(kept, finding, by, most)
        )
        for finding in findings
    }
    best = {finding: entries[:1] for finding, entries in listed.items()}
    for name, chosen in ((FILE, listed), (BEST_FILE, best)):
        text = EnsembleFile(model=model, findings=chosen).model_dump(mode="json")
        with replaced(out / name) as temporary:
            temporary.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    return out / FILE, out / BEST_FILE


def copy_best(out: Path, best: Candidate) -> Path:
    """Write weights.safetensors, the best single checkpoint."""
    with replaced(out / "weights.safetensors") as temporary:
        shutil.copyfile(out / FOLDER / best.name, temporary)
    return out / "weights.safetensors"


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
