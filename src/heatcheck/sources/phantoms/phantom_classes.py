"""Built-in chest radiographs of four classes, one per film."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from heatcheck.core.records import Case, CaseKey, Mask, TruthKind
from heatcheck.core.seeds import generator_for
from heatcheck.sources.phantoms.chest.anatomy import draw_anatomy
from heatcheck.sources.phantoms.chest.canvas import Canvas
from heatcheck.sources.phantoms.chest.classes import CLASSES
from heatcheck.sources.phantoms.chest.film import draw_exposure, draw_pose, expose, new_scene
from heatcheck.sources.phantoms.chest.findings import ChestScene
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

_NAMES = tuple(CLASSES)


class PhantomClassesSettings(SourceSettings):
    """The settings of the phantom with four classes in a spec."""

    cases_per_class: int = Field(25, ge=1)
    first: int = Field(0, ge=0)  # number of the first person; other numbers are other people
    size: int = Field(128, ge=32)  # image height in pixels
    shape: Literal["film", "square"] = "square"
    seed: int = 20


@dataclass(frozen=True)
class PhantomClasses:
    """Frontal chest films of invented people, one each; the classes alternate, so that any range is balanced.

    The films have no laterality letters, which would act as triggers.
    """

    settings: PhantomClassesSettings = PhantomClassesSettings()

    @property
    def findings(self) -> tuple[str, ...]:
        """The four classes."""
        return _NAMES

    @property
    def truth_kind(self) -> TruthKind:
        """Masks, which are exact."""
        return "masks"

    def index(self) -> Sequence[CaseKey]:
        """One film per person."""
        labels = {name: {other: float(other == name) for other in _NAMES} for name in _NAMES}
        first = self.settings.first
        cases = [f"phantom{number:06d}" for number in range(first, first + len(_NAMES) * self.settings.cases_per_class)]
        return [CaseKey(case, case, labels[_class_of(case)]) for case in sorted(cases)]

    def load(self, key: CaseKey) -> Case:
        """The film with the mask of the abnormality."""
        scene, truth = self._draw(key)
        exposure = draw_exposure(self._generator(key, "exposure"))
        return Case(key, expose(scene, exposure, self._generator(key, "film"))[None], truth)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The exact mask under the name of the class; empty for a normal film."""
        return self._draw(key)[1]

    def stamp(self) -> str:
        """The settings, on which everything depends."""
        return self.settings.model_dump_json()

    def _generator(self, key: CaseKey, purpose: str) -> np.random.Generator:
        return generator_for(self.settings.seed, "classes", key.case, purpose)

    def _draw(self, key: CaseKey) -> tuple[ChestScene, dict[str, Mask]]:
        size, name = self.settings.size, _class_of(key.case)
        ratio = self._generator(key, "format").uniform(0.84, 1.16) if self.settings.shape == "film" else 1
        canvas = Canvas((size, round(size * ratio)), draw_pose(self._generator(key, "pose")))
        scene = new_scene(canvas, draw_anatomy(self._generator(key, "anatomy")))
        mask = CLASSES[name](scene, self._generator(key, name))
        return scene, {name: mask} if mask.any() else {}


def _class_of(case: str) -> str:
    """The class of a person, which does not depend on labels that a study may have changed."""
    return _NAMES[int(case.removeprefix("phantom")) % len(_NAMES)]


SOURCES.add(
    "phantom_classes",
    SourceFacts(
        name="phantom_classes",
        settings=PhantomClassesSettings,
        open=PhantomClasses,
        summary="Synthetic chest radiographs of four classes, one per film, with exact masks of the abnormalities",
        needs="nothing, it is built in",
        remark="These images are drawn: they show what a method can do, not how well it works on patients.",
        drawn=True,
    ),
)
