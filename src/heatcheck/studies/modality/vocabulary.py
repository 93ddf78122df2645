"""The names under which a modality run stores scores, estimates, gallery and manifest; shared by study and report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from heatcheck.core.records import Outlines
from heatcheck.core.vocabulary import Statistic
from heatcheck.runs.manifest import Entry, Manifest, MethodEntry, ModelEntry

Fill = Literal["zero", "tissue"]  # what replaces an ablated voxel: 0, or other tissue of that modality
Measure = Literal["balanced", "accuracy"]  # the performance that importances are a share of
Weights = Literal["positive", "min_max"]  # how MSFI turns importances into weights
Importance = Literal["lesion", "known"]  # the importances that MSFI weights modalities by
MaskSource = Literal["own", "shared"]  # each modality's own mask, or the union of all

VALUE = Statistic("value")  # the performance with a subset of the modalities shown
SHAPLEY = Statistic("shapley")
PLAIN_SHAPLEY = Statistic("shapley_plain")  # to networks from which no modality was hidden in training
PLAIN_DIFFERENCE = Statistic("shapley_less_plain")  # the Shapley value of a modality less that to the plain networks
KNOWN = Statistic("known")  # the accuracy on cases in which only one modality is informative
AGREEMENT = Statistic("agreement")  # of heat and importance, over the pairs of modalities that clearly differ
FOLLOWING = Statistic("following")  # how much better the heat fits its own network than other networks
CHANCE = Statistic("chance")  # the share of orders of heat that agree with the importances more than not
CHANCE_ALL = Statistic("chance_all")  # the share of those that have every clear pair right
WARNING = Statistic("warning")  # AUROC of a feature for "this answer is wrong", less 0.5
ANSWERS = Statistic("answers")  # how many are right, and how many wrong
EMPTY = Statistic("empty")  # how many maps are empty and count 0
SECONDS = Statistic("seconds")  # per map
ALPHA = Statistic("alpha")  # Krippendorff's, of the readers

EVERY_FOLD = "all"  # the fold of an estimate over all folds
ALL_MAPS, EACH_CASE = "all", "case"  # what a correlation is computed within
PLAIN = "plain"  # the stage and the files of networks from which no modality was hidden in training
SINGLE_MAPS = "maps"  # the same as over all maps, with a p-value as if every map were another patient's: the paper's
WEIGHTS: tuple[Weights, ...] = ("positive", "min_max")
RIGHT = "right"  # the metric that says whether the predicted class is correct
RATING = "rating"  # the metric of the readers' ratings
SHARED_MAP = "all"  # instead of a modality, where one map is for all modalities
UNIFORM, INTENSITY, EDGES, USUAL_PLACE = "uniform", "intensity", "edges", "usual_place"  # methods of floors' rows
MODEL_FREE = (INTENSITY, EDGES, USUAL_PLACE)  # with a map for each modality, unlike the uniform head
FLOORS = (UNIFORM, *MODEL_FREE)
PUBLISHED = "mi_correlation_published"  # ranks all modalities, also those whose importances do not clearly differ
PHI_MODALITY, PHI_LESION = "phi_modality", "phi_lesion"
PHI = {"modality": PHI_MODALITY, "lesion": PHI_LESION}  # what is ablated, and the metric of its importance
PERFORMANCE: dict[Measure, str] = {"accuracy": "accuracy", "balanced": "balanced_accuracy"}  # the metric of a measure
PROBABILITY = "probability"
MAP_FEATURES = ("agreement", "concentration")  # what is known of a map without the truth
QUALITY = ("msfi", "median_iou", "mi_correlation")  # scores of a map that are set against the next three
CORRECT, UNCERTAINTY, LESION_SIZE = "correct", "uncertainty", "lesion_size"  # of a case: features of slopes
MAP_METRICS = (
    "mi_correlation", PUBLISHED, "msfi", "lesion_share", "median_iou", "aupc", "delta_aupc", "modality_sum",
    "inside_share", *MAP_FEATURES,
)  # fmt: skip
RANKED = ("msfi", "mi_correlation", "lesion_share", "median_iou", "delta_aupc")
FLOORED = ("msfi", "lesion_share")  # metrics that every floor has a score of
COUNTED = ("lesion_share", "mi_correlation", PUBLISHED)  # metrics by which an empty map counts 0
RATINGS_FILE = "ratings.csv"  # in the folder of the run
RATING_COLUMNS = ("reader", "case", "method", "rating", "comment")


def shown_name(shown: Iterable[bool], modalities: Sequence[str]) -> str:
    """The name of a subset of the modalities in tables."""
    return "+".join(name for name, is_shown in zip(modalities, shown, strict=True) if is_shown)


class ModalityMethod(MethodEntry):
    """A method, with what it needs."""

    shares_modalities: bool = False  # it makes one map for all modalities
    access: str = ""  # to the model
    models: str = ""  # that it can explain
    speed: str = ""


class ModalityModel(ModelEntry):
    """The network, with its input."""

    input: tuple[int, ...] = ()
    channels: int = 0


class PrimarySettings(Entry):
    """The settings that the sentences of the page are based on."""

    measure: Measure = "balanced"
    filled: Fill = "zero"
    weights: Weights = "positive"
    importance: Importance = "lesion"
    masks: MaskSource = "own"
    boxes: bool = False
    dilate: int = 0


class FoldEntry(Entry):
    """One network and its cases."""

    fold: int
    training: int = 0
    validation: int = 0
    test: int = 0
    classes: dict[str, int] = Field(default_factory=dict)  # test cases
    epoch: int | None = None  # the one kept; None where the network was not trained here


class RatingsEntry(Entry):
    """How many ratings a run has."""

    readers: int = 0
    rows: int = 0
    comments: int = 0


class ModalityManifest(Manifest):
    """What run.json says of a modality run."""

    methods: tuple[ModalityMethod, ...] = ()
    model: ModalityModel | None = None
    models: tuple[ModalityModel, ...] = ()
    modalities: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    trained: bool = False  # in this run
    folds: int = Field(1, ge=1, le=10_000)
    per_fold: tuple[FoldEntry, ...] = ()
    primary: PrimarySettings = PrimarySettings()
    fills: tuple[Fill, ...] = ("zero",)  # the primary one first
    known: tuple[str, ...] = ()  # modalities whose importance is known by construction
    removal: dict[str, int] = Field(default_factory=dict)  # how voxels are removed; empty where they are not
    fit: dict[str, Any] = Field(default_factory=dict)  # how the networks were trained
    plain: str = ""  # the networks from which no modality was hidden, where the run has any
    space: int = 2  # axes of an image
    exact: bool = True  # every subset of the modalities was shown
    subsets: int = 0
    ratings: RatingsEntry | None = None

    @property
    def fold_numbers(self) -> tuple[int, ...]:
        """The numbers of the folds, from 1."""
        return tuple(range(1, self.folds + 1))

    @property
    def shared(self) -> frozenset[str]:
        """The methods that make one map for all modalities, without floors."""
        return frozenset(each.name for each in self.methods if each.kind == "method" and each.shares_modalities)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalityMapsEntry:
    """One method's maps of a case in the gallery, and their scores, None where undefined."""

    method: str
    files: dict[str, str]  # by modality; each is a strip of slices
    msfi: float | None
    mi_correlation: float | None
    lesion_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalityEntry:
    """A case of the gallery: a strip of slices for each modality, and the outlines of its lesion in each slice."""

    id: str
    case: str
    patient: str = ""
    finding: str  # the true class
    said: str = ""  # the predicted class
    probability: float | None = None
    fold: int = 0
    shape: tuple[int, int]  # of a slice
    slices: int = 1
    first: int = 0  # the number of the first slice shown
    step: int = 1  # from one slice to the next
    start: int = 0  # the index of the slice that is shown first
    plane: str = ""
    sides: str = ""
    images: dict[str, str]  # by modality
    outlines: dict[str, list[Outlines]] = field(default_factory=dict)  # by modality and slice
    maps: tuple[ModalityMapsEntry, ...] = ()
