"""What an alignment run stores, and under which names; study and report both use them."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from heatcheck.core.records import Outlines
from heatcheck.core.vocabulary import Statistic
from heatcheck.runs.manifest import Entry, Manifest, ModelEntry

ROBUSTNESS = Statistic("robustness")  # score of the aligned network minus that of the misaligned one
SCALED = Statistic("scaled")  # a mean on the common scale: 0 is a random map, 1 the human marks
REGRESSION = Statistic("regression")  # coefficients of robustness on pre-training, architecture and method
MUTUAL_INFORMATION = Statistic("mutual_information")  # of probability and label
SEPARATION = Statistic("separation")
BLAME = Statistic("blame")

Arm = Literal["base", "control", "align", "misalign"]
Direction = Literal["align", "misalign"]
ARMS: tuple[Arm, ...] = ("base", "control", "align", "misalign")
DIRECTIONS: tuple[Direction, ...] = ("align", "misalign")
FLOOR, HUMAN_ARM = "floor", "human"  # arms without a network
RANDOM = "random"
FLOORS = (RANDOM, "center_prior", "edge", "location_prior")  # maps made without a model, scored in every run
UNTRAINED = "untrained"  # the arm of networks like a base, with the weights that a training starts from
FINETUNE = "finetune"  # the split of the images that a network learned from
VALIDATION = "validation"  # the split of the training data on which a base's checkpoint was chosen
BY_IMAGE = "images"  # pooled over images: each counts the same, whatever its finding
GIVEN = "given"  # the initialisation of weights whose origin the spec does not state
Human = Literal["readers", "truth"]  # whose marks are 1 on the common scale: the readers', or the mask itself

MAIN_METRICS = ("mass", "rank")  # of the paper
RELIANCE, PLACEBO, ADDED = "reliance", "reliance_placebo", "reliance_added"
INFORMATION = "mutual_information_label"
GUESSING, GUESS = "guessing", 0.5  # what an AUROC is compared with
FILLS = ("blur", "mean", "noise")  # what replaces a region where reliance is measured
ERRORS = ("classical", "networks")  # kinds of standard errors of a regression
ONE_TRAINING = "each network was trained once: the number holds for these networks alone, and no claim is made"
CORRELATIONS = ("pearson", "spearman")
PAIRED_SCORES: dict[str, tuple[str, Direction]] = {  # the scores that are correlated: their metric and arm
    f"{metric}_{arm}": (metric, arm) for metric in MAIN_METRICS for arm in DIRECTIONS
}


@dataclass(frozen=True, slots=True)
class Base:
    """A network from which others are fine-tuned: an architecture with an initialisation."""

    key: str  # its name in the tables
    architecture: str  # its name among the models
    family: str  # DenseNet, ViT, Swin: the levels of a regression
    initialisation: str  # the origin of its first weights
    pretrained: bool  # on other data than its own training data
    fine_tuned: bool = True  # else only its AUROC is compared


class BaseEntry(ModelEntry):
    """A base as run.json describes it."""

    family: str = ""
    initialisation: str = ""
    pretrained: bool = False
    fine_tuned: bool = True
    input: tuple[int, ...] = ()
    channels: int | None = None

    @property
    def start_known(self) -> bool:
        """Whether the run states how its weights began; the spec need not state it of weights that are given."""
        return self.pretrained or self.initialisation not in {"", GIVEN}


class FitEntry(Entry):
    """How networks were fine-tuned."""

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None


class RelianceEntry(Entry):
    """How reliance was measured."""

    shifts: int = 0  # regions of the same shape elsewhere
    films: int = 0  # without the finding, on which the same regions were hidden
    fills: tuple[str, ...] = ()


class ImageCounts(Entry):
    """How many images of a finding there are; the parts of the fine-tuning images are those of the first seed."""

    finetune: int | None = None  # outlined
    selection: int | None = None  # outlined
    evaluation: int | None = None  # outlined
    evaluation_positives: int | None = None
    evaluation_negatives: int | None = None


class LearnedLabels(Entry):
    """How many images of the training data have a finding, as bases learn their labels, and how many have not."""

    training_positives: int = 0
    training_negatives: int = 0
    validation_positives: int = 0
    validation_negatives: int = 0


class AlignmentManifest(Manifest):
    """What run.json says of an alignment run."""

    models: tuple[BaseEntry, ...] = ()
    trained: tuple[str, ...] = ()  # methods through whose maps networks were fine-tuned
    judged: tuple[str, ...] = ()  # methods that are only scored, on networks aligned through another method
    through: str = ""  # that other method
    alpha: float | None = None
    fit: FitEntry = FitEntry()
    several: bool = False  # one network for all findings
    softplus: float | None = None
    blame_metric: str = "mass"
    reliance: RelianceEntry = RelianceEntry()
    human: Human = "truth"
    n_finetune: int | None = None
    n_selection: int | None = None
    n_evaluation: int | None = None
    positives: dict[str, ImageCounts] = Field(default_factory=dict)  # by finding
    learned: dict[str, LearnedLabels] = Field(default_factory=dict)  # by output of the bases that were trained here
    left_out: dict[str, str] = Field(default_factory=dict)  # bases without their weights, and the file that is lacking

    @property
    def tuned(self) -> tuple[BaseEntry, ...]:
        """The bases from which networks were fine-tuned."""
        return tuple(base for base in self.models if base.fine_tuned)

    def tuned_through(self, method: str) -> str:
        """The method through which those networks were fine-tuned on which this method's maps are scored."""
        return method if method in self.trained else self.through


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMapEntry:
    """One network's map of a case in the gallery; a number that is not known is NaN."""

    arm: Arm
    file: str
    probability: float | None
    mass: float | None
    rank: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentEntry:
    """A case of the gallery, with the maps of one model and one method."""

    id: str
    case: str
    finding: str
    model: str
    method: str
    shape: tuple[int, int]
    film: str
    outlines: Outlines = field(default_factory=list)
    maps: tuple[ArmMapEntry, ...] = ()


def network_key(base: str, arm: Arm, seed: int = 0, method: str = "") -> str:
    """The name of a network in the table of predictions; a base has no seed, and bases and controls have no method."""
    if arm == "base":
        return base
    parts = (base, arm) if arm == "control" else (base, method, arm)
    return " · ".join((*parts, f"seed {seed}"))
