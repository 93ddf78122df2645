"""Built-in brain MRI in four modalities, some of which show the grade of a tumour by its form and its texture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from heatcheck.core.records import Case, CaseKey, Mask, TruthKind
from heatcheck.core.seeds import generator_for
from heatcheck.sources.phantoms.brain.anatomy import Build, draw_build
from heatcheck.sources.phantoms.brain.contrast import (
    MODALITIES,
    Head,
    Look,
    draw_scanner,
    healthy,
    measured,
    with_tumour,
)
from heatcheck.sources.phantoms.brain.space import HeadPosition, HeadVoxels, slice_heights
from heatcheck.sources.phantoms.brain.tumour import Form, Texture, Tumour, draw_tumour
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

CLASSES = ("LGG", "HGG")
LOWEST, HIGHEST = 4.0, 36.0  # range of heights of single slices in millimetres


class PhantomBrainSettings(SourceSettings):
    """The settings of the brain phantom in a spec."""

    cases: int = Field(100, ge=1)
    first: int = Field(0, ge=0)  # number of the first person; other numbers are other people
    size: int = Field(96, ge=16)  # pixels along rows and columns
    slices: int | None = Field(None, ge=2)  # a volume with this many slices; by default a single slice
    shape: bool = True  # the form shows the grade; otherwise every modality shows either form by chance
    texture: bool = False  # the texture shows the grade; otherwise no tumour has a texture
    t1c: float = Field(1.0, ge=0, le=1)  # share of cases in which T1C shows the form and texture of the grade
    flair: float = Field(0.7, ge=0, le=1)  # the same for FLAIR; otherwise it shows those of the other grade
    irregular: float = Field(0.5, ge=0, le=1)  # share of HGG
    tumour_only: float = Field(0.0, ge=0, le=1)  # share of cases in which everything but the tumour is 0
    noise: float = Field(0.02, ge=0, le=0.2)  # standard deviation as a share of the brightest tissue
    seed: int = 20


@dataclass(frozen=True)
class HeadScene:
    """One person in the scanner."""

    build: Build
    tumour: Tumour
    grid: HeadVoxels
    position: HeadPosition


@dataclass(frozen=True)
class PhantomBrain:
    """Heads of invented people with one tumour each; what T1 and T2 show of its grade is drawn by chance."""

    settings: PhantomBrainSettings = PhantomBrainSettings()

    @property
    def findings(self) -> tuple[str, ...]:
        """The two grades."""
        return CLASSES

    @property
    def modalities(self) -> tuple[str, ...]:
        """The channels of an image."""
        return MODALITIES

    @property
    def truth_kind(self) -> TruthKind:
        """Masks, which are exact."""
        return "masks"

    def index(self) -> Sequence[CaseKey]:
        """One image per person."""
        first = self.settings.first
        cases = sorted(f"phantom{number:06d}" for number in range(first, first + self.settings.cases))
        return [CaseKey(case, case, {name: float(name == self._grade(case)) for name in CLASSES}) for case in cases]

    def load(self, key: CaseKey) -> Case:
        """The image with the mask of the tumour in each modality."""
        scene = self._scene(key.case)
        head, masks = self._draw(key.case, scene)
        scanner = draw_scanner(self._generator(key.case, "scanner"), self.settings.noise)
        image = measured(head, scene.position, scanner, self._generator(key.case, "noise"))
        if self._generator(key.case, "bare").random() < self.settings.tumour_only:
            image *= np.stack([masks[name] for name in MODALITIES])
        if self.settings.slices is None:
            return Case(key, image[:, 0], _single(masks))
        return Case(key, image, masks, affine=scene.grid.affine())

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The masks by modality."""
        masks = self._draw(key.case, self._scene(key.case))[1]
        return masks if self.settings.slices else _single(masks)

    def stamp(self) -> str:
        """The settings, on which everything depends."""
        return self.settings.model_dump_json()

    def looks(self, case: str) -> tuple[Look, ...]:
        """Form and texture of the tumour in each modality: those of the grade it looks like there.

        Form and texture agree within a modality, as far as both show a grade.
        """
        high = self._looks_high(case)
        shaped = high if self.settings.shape else self._generator(case, "chance").random(len(MODALITIES)) < 0.5
        forms: list[Form] = ["irregular" if each else "round" for each in shaped]
        textures: list[Texture] = ["coarse" if each else "fine" for each in high]
        return tuple(
            Look(form, texture if self.settings.texture else None)
            for form, texture in zip(forms, textures, strict=True)
        )

    def _looks_high(self, case: str) -> list[bool]:
        """Whether the tumour looks like HGG in each modality."""
        chance = self._generator(case, "forms").random(len(MODALITIES))
        share = {"T1": 0.5, "T1C": self.settings.t1c, "T2": 0.5, "FLAIR": self.settings.flair}
        is_high = self._grade(case) == "HGG"
        return [(draw < share[name]) == is_high for name, draw in zip(MODALITIES, chance.tolist(), strict=True)]

    def _grade(self, case: str) -> str:
        """The grade of a case; HGG is spread evenly over the numbers."""
        number, share = int(case.removeprefix("phantom")), self.settings.irregular
        return CLASSES[int(np.floor((number + 1) * share) - np.floor(number * share))]

    def _generator(self, case: str, purpose: str) -> np.random.Generator:
        return generator_for(self.settings.seed, "brain", case, purpose)

    def _draw(self, case: str, scene: HeadScene) -> tuple[Head, dict[str, Mask]]:
        head = healthy(scene.build, scene.tumour, scene.position, scene.grid.pixel)
        return head, with_tumour(head, scene.tumour, self.looks(case), scene.position, scene.grid.pixel)

    def _scene(self, case: str) -> HeadScene:
        build = draw_build(self._generator(case, "build"))
        height = self._generator(case, "height").uniform(LOWEST, HIGHEST)
        volume = self.settings.slices
        tumour = draw_tumour(self._generator(case, "tumour"), build.half, None if volume else height)
        grid = HeadVoxels(self.settings.size, slice_heights(volume) if volume else (height,))
        return HeadScene(build, tumour, grid, grid.positions(build.pose))


def _single(masks: dict[str, Mask]) -> dict[str, Mask]:
    return {name: mask[0] for name, mask in masks.items()}


SOURCES.add(
    "phantom_brain",
    SourceFacts(
        name="phantom_brain",
        settings=PhantomBrainSettings,
        open=PhantomBrain,
        summary="Drawn brain MRI (T1, T1C, T2, FLAIR) with a low- or high-grade tumour and an exact mask per modality",
        needs="nothing, it is built in",
        remark="These images are drawn: they show what a method can do, not how well it works on patients.",
        drawn=True,
    ),
)
