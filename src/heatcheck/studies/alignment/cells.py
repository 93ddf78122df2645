"""The settings of an alignment study, and its networks: a control per base, finding and seed, and two per method.

Each network is a cell of a grid. Cells do not depend on each other, so they can be made in any order, and again.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.core.vocabulary import Condition, condition
from heatcheck.estimating.settings import EstimateSettings
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.vocabulary import DIRECTIONS, FINETUNE, Arm, Base, Human, network_key

Rows = Int[np.ndarray, " images"]


@dataclass(frozen=True, slots=True)
class AlignmentSettings(EstimateSettings):
    """What is estimated."""

    bases: tuple[Base, ...]
    findings: tuple[str, ...]
    methods: tuple[str, ...]  # through which networks are fine-tuned
    judged: tuple[str, ...]  # methods that are only scored, on networks fine-tuned through another
    through: str  # that other method
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]  # of maps
    human: Human
    blame_metric: str = "mass"

    @property
    def fine_tuned(self) -> tuple[Base, ...]:
        """The bases from which networks are fine-tuned."""
        return tuple(base for base in self.bases if base.fine_tuned)


@dataclass(frozen=True, slots=True)
class NetworkCell:
    """One network: its base, how it is fine-tuned, and the findings it is evaluated on."""

    base: str
    arm: Arm
    findings: tuple[str, ...]
    seed: int = 0  # counted from 1; a base has none
    method: str = ""  # through which it was aligned or misaligned

    @property
    def key(self) -> str:
        """Its name in the table of predictions."""
        return network_key(self.base, self.arm, self.seed, self.method)

    @property
    def label(self) -> str:
        """Its name in the progress output and among failures, with its finding or how many it has."""
        findings = self.findings[0] if len(self.findings) == 1 else f"{len(self.findings)} findings"
        return self.key if self.arm == "base" else f"{self.key} · {findings}"

    @property
    def file(self) -> str:
        """The name of its files, without the suffix."""
        findings = self.findings[0] if len(self.findings) == 1 else "all"
        return file_name(*self.base.split("/"), findings, self.method, self.arm, f"seed{self.seed}")

    def condition(self, through: str = "", *, learned: bool = False) -> str:
        """The condition of its scores, `learned` on images that it learned from.

        `through` is the method that it was aligned through, where another method's maps are scored.
        """
        facts: Condition = {"arm": self.arm}
        if self.arm != "base":
            facts["seed"] = self.seed
        if through:
            facts["through"] = through
        if learned:
            facts["split"] = FINETUNE
        return condition(**facts)


def file_name(*parts: str) -> str:
    """The parts joined into a file name; where characters must be replaced, a digest keeps it unique."""
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", part) for part in parts if part]
    if [part.replace(" ", "_") for part in parts if part] != plain:
        plain.append(hashlib.sha256("/".join(parts).encode()).hexdigest()[:8])
    return "-".join(plain)


def cells_of(settings: AlignmentSettings, *, several: bool) -> Iterator[NetworkCell]:
    """Every network, base by base, the base itself first."""
    subjects = [settings.findings] if several else [(finding,) for finding in settings.findings]
    for base in settings.bases:
        yield NetworkCell(base.key, "base", settings.findings)
        for findings in subjects if base.fine_tuned else ():
            for seed in settings.seeds:
                yield NetworkCell(base.key, "control", findings, seed)
                for method in settings.methods:
                    for arm in DIRECTIONS:
                        yield NetworkCell(base.key, arm, findings, seed, method)


def methods_on(cell: NetworkCell, settings: AlignmentSettings) -> dict[str, str]:
    """The methods whose maps are scored on a network, each with the method it was aligned through, if another."""
    if cell.arm in ("base", "control"):
        return dict.fromkeys((*settings.methods, *settings.judged), "")
    judged = settings.judged if cell.method == settings.through else ()
    return {cell.method: "", **dict.fromkeys(judged, cell.method)}


@dataclass(frozen=True)
class Parts:
    """The rows of the fine-tuning images that a network learns from, and those that choose its checkpoint."""

    learned: Rows
    choosing: Rows


def parts_of(images: Images, findings: Sequence[str], share: float, seed: int) -> Parts:
    """The two parts: no patient is in both, and both have patients with an outlined finding.

    They are the same for every arm, method and base, so that these can be compared.
    """
    outlined = {images.keys[row].patient for finding in findings for row in images.positives(finding)}
    patients = sorted({key.patient for key in images.keys})
    name = "+".join(findings)
    choosing: set[str] = set()
    for kind, group in (
        ("outlined", [patient for patient in patients if patient in outlined]),
        ("others", [patient for patient in patients if patient not in outlined]),
    ):
        drawn = generator_for(seed, name, kind, "selection").permutation(group).tolist()
        needed = 1 if kind == "outlined" else 0  # in each part, as far as there are two
        most = max(0, len(drawn) - needed)
        choosing |= set(drawn[: min(most, max(needed, round(share * len(drawn))))])
    is_choosing = np.array([key.patient in choosing for key in images.keys], bool)
    return Parts(np.flatnonzero(~is_choosing), np.flatnonzero(is_choosing))


def seed_of(run_seed: int, cell: NetworkCell) -> int:
    """The seed of a fine-tuning: the same for all arms, so that they see the same images in the same order."""
    return seed_for(run_seed, cell.seed, "network")
