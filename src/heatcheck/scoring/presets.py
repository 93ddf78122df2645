"""Two ways to score the same maps: without the flaws of the benchmark, and exactly as the benchmark does.

Each rule in which they differ is a named switch, with a sentence on why it matters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from heatcheck.core.registry import Registry

PresetName = Literal["recommended", "chexlocalize"]


@dataclass(frozen=True, slots=True)
class Switch:
    """One rule: what each preset does, in words for a table, and why it matters."""

    name: str
    label: str
    recommended: str
    chexlocalize: str
    why: str
    alone: str = ""  # what this rule alone does, if that is less than the preset does
    files_only: bool = False  # only for maps that were made elsewhere
    scored_twice: bool = False  # a run holds the results of both presets

    def used(self, preset: PresetName, switches: Mapping[str, PresetName]) -> str:
        """What a run does: its tables follow the recommended preset, except for its switches."""
        if switches.get(self.name) == "chexlocalize":
            return self.alone or self.chexlocalize
        return self.value(switches.get(self.name, "recommended" if self.scored_twice else preset))

    def value(self, preset: PresetName) -> str:
        """What the preset does."""
        return self.recommended if preset == "recommended" else self.chexlocalize


SWITCHES: Registry[Switch] = Registry("switch")
for _switch in (
    Switch(
        "empty_region",
        "A map that marks nothing on a positive case",
        "scores 0",
        "is left out",
        "Leaving it out rewards a method for failing: the fewer cases it dares to mark, the better it looks.",
        scored_twice=True,
    ),
    Switch(
        "empty_map",
        "A map with the same value everywhere",
        "is a failure: 0 in overlap, hit, mass and rank",
        "is scored at its first pixel, its overlap is left out",
        "Such a map points nowhere: as a tie it would hit as often as outlines are large, and leaving it out rewards a "
        "method for failing.",
        alone="is scored like any other: its pixels share the hit, mass and rank may be undefined",
        scored_twice=True,
    ),
    Switch(
        "ties",
        "Several pixels share the highest value",
        "they share the hit",
        "the first one counts",
        "The first of many equal pixels lies at the top left, so maps with plateaus are judged by a corner.",
        scored_twice=True,
    ),
    Switch(
        "human_points",
        "A reader's points",
        "the share inside counts, no point is undefined",
        "any point inside is a hit, no point is a miss",
        "A reader who marks many places would hit by numbers alone; one who was not asked would count as wrong.",
        scored_twice=True,
    ),
    Switch(
        "probability_order",
        "A list of probabilities without names",
        "refused",
        "taken in the benchmark's order",
        "The benchmark's order is not that of the data set's own columns: a silent mix-up gives wrong results.",
        files_only=True,
    ),
    Switch(
        "resampling",
        "What is drawn again for intervals",
        "patients with the finding, studentised",
        "images, percentiles of 1000 draws",
        "Two images of one patient are not independent: drawing images makes intervals too narrow.",
        alone="images, studentised",
        scored_twice=True,
    ),
    Switch(
        "pooled_fits",
        "Regressions over all findings",
        "each finding has its own level",
        "findings are mixed",
        "Findings differ in difficulty: mixed together, a slope may have the opposite sign of every single one.",
        alone="findings are mixed, with patients as clusters",
        scored_twice=True,
    ),
    Switch(
        "hits_model",
        "Regressions of hits",
        "logistic, with patients as clusters (GEE)",
        "a straight line (OLS)",
        "A hit is yes or no: a straight line predicts impossible values, and repeated patients count as new ones.",
        alone="a straight line, with patients as clusters",
        scored_twice=True,
    ),
    Switch(
        "cutoff_tuning",
        "Tuning the probability cutoff",
        "as it is applied: kept from the cutoff upwards, not rounded",
        "kept above the cutoff, rounded to 3 decimals, Lung Lesion from 0.1",
        "A rule that is tuned in one form and applied in another is not the rule that was tuned.",
    ),
    Switch(
        "tuning_on_scored_data",
        "Thresholds tuned on patients who are scored",
        "refused",
        "allowed with a warning",
        "A threshold that has seen the answers looks better than it will be on new patients.",
    ),
    Switch(
        "human_common_cases",
        "Comparison with the readers",
        "on the cases that method, readers and truth have in common",
        "each on its own cases",
        "When each side leaves out other cases, the difference is also one of cases.",
        scored_twice=True,
    ),
    Switch(
        "smoothing",
        "Smoothing before the region is cut out",
        "of the map",
        "of the grey value of its colours",
        "The grey value of a colour scale is low for hot and for cold pixels alike, so both are kept.",
        files_only=True,
    ),
    Switch(
        "placement",
        "Where the map of a coarse layer lies",
        "each cell at the centre of what it looks at",
        "as if the cells tiled the image",
        "Cells of strided, padded layers look further left and up than tiles: plain resizing moves their maps.",
        scored_twice=True,
    ),
    Switch(
        "contradiction",
        "An outline of a finding whose label says that it is absent",
        "fails the image, which is named with the reason",
        "is scored; the label is ignored",
        "Either the label or the outline is wrong: until one of them is corrected, the image's score means nothing.",
    ),
    Switch(
        "missing_map",
        "Truth without a map",
        "an error that names it",
        "counts as an empty region",
        "A lost file would otherwise pass for a method that found nothing.",
        files_only=True,
    ),
):
    SWITCHES.add(_switch.name, _switch)


@dataclass(frozen=True, slots=True)
class Rules:
    """The switches as values for the code."""

    empty_region: Literal["zero", "left_out"]
    empty_map: Literal["failure", "scored"]
    ties: Literal["share", "first"]
    human_points: Literal["share", "any"]
    probability_order: Literal["refuse", "reference"]
    resampling: Literal["patients", "images"]
    pooled_fits: Literal["fixed_effects", "none"]
    hits_model: Literal["gee", "ols"]
    cutoff_tuning: Literal["as_applied", "reference"]
    tuning_on_scored_data: Literal["refuse", "warn"]
    human_common_cases: bool
    smoothing: Literal["map", "colours"]
    placement: Literal["centres", "plain"]
    contradiction: Literal["fail", "ignore"]
    missing_map: Literal["error", "empty"]


RECOMMENDED = Rules(
    empty_region="zero",
    empty_map="failure",
    ties="share",
    human_points="share",
    probability_order="refuse",
    resampling="patients",
    pooled_fits="fixed_effects",
    hits_model="gee",
    cutoff_tuning="as_applied",
    tuning_on_scored_data="refuse",
    human_common_cases=True,
    smoothing="map",
    placement="centres",
    contradiction="fail",
    missing_map="error",
)
CHEXLOCALIZE = Rules(
    empty_region="left_out",
    empty_map="scored",
    ties="first",
    human_points="any",
    probability_order="reference",
    resampling="images",
    pooled_fits="none",
    hits_model="ols",
    cutoff_tuning="reference",
    tuning_on_scored_data="warn",
    human_common_cases=False,
    smoothing="colours",
    placement="plain",
    contradiction="ignore",
    missing_map="empty",
)
PRESETS: dict[PresetName, Rules] = {"recommended": RECOMMENDED, "chexlocalize": CHEXLOCALIZE}


def rules_with(preset: PresetName, switches: Mapping[str, PresetName]) -> Rules:
    """The rules of the preset, except for the switches, each of which names the preset it follows."""
    for name in switches:
        SWITCHES[name]  # raises with a suggestion
    chosen = {name: getattr(PRESETS[to], name) for name, to in switches.items()}
    return replace(PRESETS[preset], **chosen)


def switch_facts(preset: PresetName, switches: Mapping[str, PresetName]) -> list[dict[str, str]]:
    """Every switch for the report: what this run does, what each preset does, and why it matters.

    A run scores its maps under both presets, and its tables follow the recommended one; maps are made and tuned under
    the preset of the spec.
    """
    return [
        {
            "name": switch.name,
            "label": switch.label,
            "used": switch.used(preset, switches),
            "recommended": switch.recommended,
            "chexlocalize": switch.chexlocalize,
            "why": switch.why,
        }
        for switch in SWITCHES.values()
    ]
