"""Built-in chest radiographs: drawn, so that the position of every finding is known exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from heatcheck.core.records import UNCERTAIN, Case, CaseKey, Mask, TruthKind
from heatcheck.core.registry import suggest
from heatcheck.core.seeds import generator_for
from heatcheck.sources.phantoms.chest.anatomy import draw_anatomy
from heatcheck.sources.phantoms.chest.canvas import Canvas
from heatcheck.sources.phantoms.chest.film import add_marker, draw_exposure, draw_pose, expose, new_scene
from heatcheck.sources.phantoms.chest.findings import FINDINGS, OPACITIES, ChestScene, enlarge
from heatcheck.sources.phantoms.simulated_readers import READERS, read_case
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings


class Confounder(BaseModel):
    """A laterality marker that depends on one label instead of being random."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    finding: str
    strength: float = Field(0.95, ge=0.5, le=1.0)  # share of cases in which marker and label agree


Share = Annotated[float, Field(ge=0, le=1)]


class PhantomChestSettings(SourceSettings):
    """The settings of the chest phantom in a spec."""

    patients: int = Field(100, ge=1)
    first: int = Field(0, ge=0)  # number of the first patient; other numbers are other people
    size: int = Field(320, ge=32)  # image height in pixels
    shape: Literal["film", "square"] = "film"
    second_view: float = Field(0.35, ge=0, le=1)  # share of patients with two views
    readers: int = Field(2, ge=0, le=len(READERS))
    seed: int = 20
    uncertain: float = Field(0.0, ge=0, le=1)  # share of labels that are uncertain; the films stay the same
    # of findings among the 92 % of patients who may have any; findings that are not named keep their own
    prevalence: dict[str, Share] = Field(default_factory=dict)
    confounder: Confounder | None = None


@dataclass(frozen=True)
class PhantomChest:
    """Frontal chest films of invented patients."""

    settings: PhantomChestSettings = PhantomChestSettings()

    def __post_init__(self) -> None:
        planted = self.settings.confounder
        if planted and planted.finding not in FINDINGS:
            raise ValueError(f"confounder finding {planted.finding!r} is unknown; {suggest(planted.finding, FINDINGS)}")
        for name in self.settings.prevalence:
            if name not in FINDINGS:
                raise ValueError(f"prevalence names the finding {name!r}, which is unknown; {suggest(name, FINDINGS)}")

    @property
    def findings(self) -> tuple[str, ...]:
        """The ten findings."""
        return tuple(FINDINGS)

    @property
    def truth_kind(self) -> TruthKind:
        """Masks, which are exact."""
        return "masks"

    def index(self) -> Sequence[CaseKey]:
        """Every view of every patient."""
        keys = []
        for number in range(self.settings.first, self.settings.first + self.settings.patients):
            patient = f"phantom{number:06d}"
            labels = self._written_labels(patient)
            two = generator_for(self.settings.seed, patient, "views").random() < self.settings.second_view
            keys += [self._key(patient, view, labels) for view in range(1, 3 if two else 2)]
        return sorted(keys, key=lambda key: key.case)  # with a seventh digit, text order differs from number order

    def _key(self, patient: str, view: int, labels: Mapping[str, float]) -> CaseKey:
        """A film with its facts: sex and age change nothing in the picture, the marker is on it."""
        key = CaseKey(f"{patient}_view{view}", patient, labels)
        chance = self._generator(patient, "facts").random(2)
        facts = {"sex": "F" if chance[0] < 0.5 else "M", "age": str(round(20 + 72 * chance[1]))}
        return replace(key, facts={**facts, "marker": self._marker(key) or "none"})

    def load(self, key: CaseKey) -> Case:
        """The film with truth and the marks of simulated readers."""
        scene, truth = self._draw(key)
        exposure = draw_exposure(self._generator(key.case, "exposure"))
        film = expose(scene, exposure, self._generator(key.case, "film"))
        corner = self._marker(key)
        if corner:
            add_marker(film, corner)
        readings = tuple(
            read_case(truth, habits, self.settings.seed, key.case) for habits in READERS[: self.settings.readers]
        )
        return Case(key, film[None], truth, readings)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The exact masks of the findings in this view."""
        return self._draw(key)[1]

    def stamp(self) -> str:
        """The settings, on which everything depends."""
        return self.settings.model_dump_json()

    def marker_mask(self, key: CaseKey) -> Mask:
        """The pixels of the laterality marker; empty if the film has none."""
        film = np.zeros(self._shape(key.patient), np.float32)
        corner = self._marker(key)
        return add_marker(film, corner) if corner else film.astype(bool)

    def _generator(self, *parts: str) -> np.random.Generator:
        return generator_for(self.settings.seed, *parts)

    def _drawn(self, patient: str) -> frozenset[str]:
        """The findings drawn for a patient."""
        chance = self._generator(patient, "findings").random(len(FINDINGS) + 1)
        if chance[-1] < 0.08:
            return frozenset()
        shares = {name: finding.prevalence for name, finding in FINDINGS.items()} | self.settings.prevalence
        return frozenset(name for name, draw in zip(FINDINGS, chance, strict=False) if draw < shares[name])

    def _labels(self, patient: str) -> frozenset[str]:
        drawn = self._drawn(patient)
        return drawn | {"Airspace Opacity"} if drawn & set(OPACITIES) else drawn

    def _written_labels(self, patient: str) -> dict[str, float]:
        """The labels of a patient in the index: the truth, or uncertain."""
        present = self._labels(patient)
        unsure = self._generator(patient, "uncertain").random(len(FINDINGS)) < self.settings.uncertain
        return {
            name: UNCERTAIN if hidden else float(name in present) for name, hidden in zip(FINDINGS, unsure, strict=True)
        }

    def _shape(self, patient: str) -> tuple[int, int]:
        size = self.settings.size
        if self.settings.shape == "square":
            return size, size
        return size, round(size * self._generator(patient, "format").uniform(0.84, 1.16))

    def _draw(self, key: CaseKey) -> tuple[ChestScene, dict[str, Mask]]:
        drawn = self._drawn(key.patient)
        anatomy = enlarge(
            draw_anatomy(self._generator(key.patient, "anatomy")), drawn, self._generator(key.patient, "growth")
        )
        scene = new_scene(Canvas(self._shape(key.patient), draw_pose(self._generator(key.case, "pose"))), anatomy)
        masks = {
            name: finding.draw(scene, self._generator(key.patient, name))
            for name, finding in FINDINGS.items()
            if name in drawn
        }
        opacities = [masks[name] for name in ("Airspace Opacity", *OPACITIES) if name in masks]
        if opacities:
            masks["Airspace Opacity"] = np.logical_or.reduce(opacities)
        return scene, {name: masks[name] for name in FINDINGS if name in masks}

    def _marker(self, key: CaseKey) -> str:
        """The letter on the film, or "": random, or as the confounder determines."""
        side, chance = self._generator(key.case, "marker").random(2)
        planted = self.settings.confounder
        if planted is None:
            return "" if chance < 0.4 else "R" if side < 0.5 else "L"
        present = planted.finding in self._labels(key.patient)
        agrees = chance < planted.strength
        return "L" if present == agrees else ""


SOURCES.add(
    "phantom_chest",
    SourceFacts(
        name="phantom_chest",
        settings=PhantomChestSettings,
        open=PhantomChest,
        summary="Synthetic chest radiographs with ten findings, exact masks and two simulated readers",
        needs="nothing, it is built in",
        remark="These images are drawn and their readers simulated: human readers in this report are simulated ones.",
        drawn=True,
    ),
)
