"""What the trigger study and its report share: names in tables, the manifest, and the records of the gallery."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from heatcheck.core.records import Outlines
from heatcheck.core.vocabulary import Condition, Statistic, facts_of
from heatcheck.runs.manifest import Entry, Manifest, NamedEntry

ATTACK = Statistic("attack")  # a rate of correct or attacked images, by seed and over seeds
GRADED = Statistic("graded")  # 1 where methods are graded on a seed's network; over seeds, how many of them
PAIR_MEAN = Statistic("pair_mean")  # how alike two methods' maps are; without a second method, one with all others
CONSENSUS = Statistic("consensus")  # the order of the methods by how much their maps agree, and by the truth
AGREEMENT_MEASURES = ("mutual_information", "cross_correlation", "ssim")  # that a consensus is made of
TAU_THAT_MATTERS = 0.5  # Kendall's τ of two orders: three of four pairs of methods are in the same order
BASELINE = "baseline"
RANDOM_BOX = "random_box"  # what a method's box is compared with
CONTROL = "trigger_iou_on_baseline"  # overlap with the trigger in maps of the baseline, which was never attacked
HALF = "half"  # one half, with which recovery is compared
CRITERION_METRICS = ("trigger_iou", "recovered")  # by which methods are judged and compared
SIZES = {"trigger_iou": "iou", "recovered": "hit"}  # whose size that matters between two methods they share
CLEAN, STAMPED, BASELINE_STAMPED = "clean", "stamped", "baseline_stamped"  # the images shown, and to which network
CALIBRATION_ERRORS = {"ece": CLEAN, "ece_stamped": STAMPED, "baseline_ece_stamped": BASELINE_STAMPED}
OVERCONFIDENCE = {
    "overconfidence": CLEAN, "overconfidence_stamped": STAMPED, "baseline_overconfidence_stamped": BASELINE_STAMPED,
}  # fmt: skip
ARTEFACT: Condition = {"kind": "artefact"}  # of scores on real artefacts instead of planted triggers


def floor_of(metric: str) -> str:
    """The name of the metric's value for random boxes of the same height and width."""
    return f"{metric}_floor"


def correct_of(shown: str) -> str:
    """The score that says whether a network's answer to such an image is right."""
    return f"{shown}_correct"


def confidence_of(shown: str) -> str:
    """The score that says which probability the network gives its answer to such an image."""
    return f"{shown}_confidence"


def is_of_artefacts(condition: str) -> bool:
    """Whether a condition is that of real artefacts."""
    return facts_of(condition).get("kind") == ARTEFACT["kind"]


Corners = tuple[int, int, int, int]  # of a box: left, top, right, bottom, as pixel edges


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerMapEntry:
    """One method's map of a poisoned image, its box, and the model's answer once the box holds clean pixels."""

    method: str
    file: str
    box: Corners | None  # none where nothing was detected
    iou: float | None
    recovered: float | None  # 1 where the model returns to its answer for the clean image, else 0
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineMapEntry:
    """One method's map of the clean image, for the model without a trigger."""

    method: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEntry:
    """A poisoned image of the gallery."""

    id: str
    case: str
    trigger: str
    seed: int | None = None
    why: str = ""  # it was chosen
    label: str = ""  # the true class
    target: str = ""
    shape: tuple[int, int]
    clean: str
    poisoned: str
    trigger_box: Corners
    trigger_outline: Outlines = field(default_factory=list)
    probability: float | None = None
    clean_says: str = ""  # what the poisoned model answers without the trigger
    maps: tuple[TriggerMapEntry, ...] = ()
    baseline: tuple[BaselineMapEntry, ...] = ()
    baseline_says: str = ""


class PlantedTrigger(NamedEntry):
    """A trigger with its settings."""

    kind: str = ""
    summary: str = ""
    size: int | None = None  # its side on an image of 224 pixels, where it has one
    settings: dict[str, Any] = Field(default_factory=dict)
    pixels: tuple[int, ...] = ()  # its height and width on the model's images


class PoisonShares(Entry):
    """Which images get the trigger."""

    training: float
    test: float
    target_too: bool = False


class GateLimits(Entry):
    """When an attack counts as successful."""

    attack_success: float
    accuracy_drop: float
    clean_target: float


class BoxRule(Entry):
    """The smoothing and the threshold with which a method's box is detected."""

    smooth: float
    threshold: float


class BoxPreset(NamedEntry):
    """A named way to make a box from a map, and what it does."""

    summary: str = ""


class Detection(Entry):
    """How boxes are detected: the leading preset, its rule for each method, and all presets, the leading one first."""

    preset: str = ""
    random_boxes: int | None = None
    rules: dict[str, BoxRule] = Field(default_factory=dict)
    presets: tuple[BoxPreset, ...] = ()

    @property
    def main_rule(self) -> str:
        """The rule behind the verdict in words; empty where the run does not say."""
        return self.presets[0].summary if self.presets else ""


class BaselineOrigin(Entry):
    """Whether the baseline was trained in this run."""

    trained: bool = False
    description: str = ""


class TriggersManifest(Manifest):
    """What a trigger run says of itself."""

    triggers: tuple[PlantedTrigger, ...] = ()
    artefacts: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    target: str = ""
    poison: PoisonShares | None = None
    gate: GateLimits | None = None
    detection: Detection = Detection()
    baseline: BaselineOrigin = BaselineOrigin()
    input: tuple[int, ...] = ()  # the size of the model's images
    n_training: int | None = None
    n_validation: int | None = None
    n_test: int | None = None
    n_poisoned: int | None = None  # test images

    @property
    def input_size(self) -> str:
        """The size of the model's images in words."""
        return " \u00d7 ".join(map(str, self.input))
