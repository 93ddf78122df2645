"""The settings of an alignment study, and its networks: a control per base, finding and seed, and two per method.

Each is a cell of the grid that knows nothing of the others, so that any of them can be made first, or again.
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
    """What is estimated, and how."""

    bases: tuple[Base, ...]
    findings: tuple[str, ...]
    methods: tuple[str, ...]  # through which networks are fine-tuned
    judged: tuple[str, ...]  # which only look at those networks
    through: str  # the method whose networks the judged ones look at
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]  # of maps
    human: Human
    blame_metric: str = "mass"

    @property
    def fine_tuned(self) -> tuple[Base, ...]:
        """The bases from which networks are made."""
        return tuple(base for base in self.bases if base.fine_tuned)


@dataclass(frozen=True, slots=True)
class NetworkCell:
    """One network: how it came about, and the findings it is asked about."""

    base: str
    arm: Arm
    findings: tuple[str, ...]
    seed: int = 0  # counted from 1; a base has none
    method: str = ""  # through which it was aligned or misaligned

    @property
    def key(self) -> str:
        """What the table of predictions calls it."""
        return network_key(self.base, self.arm, self.seed, self.method)

    @property
    def label(self) -> str:
        """What whoever watches is told."""
        return self.key if self.arm == "base" else f"{self.key} · {self.about}"

    @property
    def about(self) -> str:
        """The finding, or how many at once."""
        return self.findings[0] if len(self.findings) == 1 else f"{len(self.findings)} findings"

    @property
    def file(self) -> str:
        """A name for its files."""
        about = self.findings[0] if len(self.findings) == 1 else "all"
        return file_name(*self.base.split("/"), about, self.method, self.arm, f"seed{self.seed}")

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
    """The parts in one name for a file; where letters must be left out of it, a digest keeps it apart from others."""
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", part) for part in parts if part]
    if [part.replace(" ", "_") for part in parts if part] != plain:
        plain.append(hashlib.sha256("/".join(parts).encode()).hexdigest()[:8])
    return "-".join(plain)


def cells_of(settings: AlignmentSettings, *, several: bool) -> Iterator[NetworkCell]:
    """Every network, base by base; a base's own comes first, then its controls."""
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
    """The methods whose maps are made on a network, each with the method that it was aligned through if another's."""
    if cell.arm in ("base", "control"):
        return dict.fromkeys((*settings.methods, *settings.judged), "")
    own = {cell.method: ""}
    return {**own, **dict.fromkeys(settings.judged, cell.method)} if cell.method == settings.through else own


@dataclass(frozen=True)
class Parts:
    """The rows of the fine-tuning images that a network learns from, and those that choose its checkpoint."""

    learned: Rows
    choosing: Rows


def parts_of(images: Images, findings: Sequence[str], share: float, seed: int) -> Parts:
    """The two parts: no patient is in both, and each has its share of the patients with an outlined finding.

    They are the same for every arm, method and base, so that these can be compared.
    """
    outlined = {images.keys[row].patient for finding in findings for row in images.positives(finding)}
    patients = sorted({key.patient for key in images.keys})
    name = "+".join(findings)
    choosing: set[str] = set()
    for kind, some in (
        ("outlined", [patient for patient in patients if patient in outlined]),
        ("others", [patient for patient in patients if patient not in outlined]),
    ):
        drawn = generator_for(seed, name, kind, "selection").permutation(some).tolist()
        most = max(0, len(drawn) - 1) if kind == "outlined" else len(drawn)
        least = 1 if kind == "outlined" else 0
        choosing |= set(drawn[: min(most, max(least, round(share * len(drawn))))])
    chosen = np.array([key.patient in choosing for key in images.keys], bool)
    return Parts(np.flatnonzero(~chosen), np.flatnonzero(chosen))


def seed_of(run_seed: int, cell: NetworkCell) -> int:
    """The seed of a fine-tuning: the same for all arms, so that they see the same images in the same order."""
    return seed_for(run_seed, cell.seed, "network")
