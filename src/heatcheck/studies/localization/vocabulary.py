"""What the localization study writes and its report reads: names of estimates, the manifest, gallery records."""

from dataclasses import dataclass

from heatcheck.core.records import Outlines
from heatcheck.core.vocabulary import Statistic
from heatcheck.runs.manifest import Manifest, NamedEntry, SourceEntry

# statistics that only this study makes
COUNT = Statistic("count")  # of images, patients or outlines
METHOD_PAIR = Statistic("method_pair")  # one method less another, on the findings that all methods have
PLACEMENT = Statistic("placement")  # a method's mean less that of its maps as plain resizing places them
TEMPERATURE = Statistic("temperature")  # by which logits are divided
OPERATING_POINT = Statistic("operating_point")  # from which probability on the model says yes
WARNING = Statistic("warning")  # AUROC of a feature for "this answer is wrong", less 0.5
BEYOND_PROBABILITY = Statistic("beyond_probability")  # that AUROC less the probability's
THRESHOLD_CURVE = Statistic("threshold_curve")  # mean overlap at each threshold, on validation data
CUTOFF_CURVE = Statistic("cutoff_curve")  # the same at each probability cutoff
SMOOTHING_CURVE = Statistic("smoothing_curve")  # the same with each smoothing, and Otsu's threshold
TUNED_SMOOTHING = Statistic("tuned_smoothing")  # of a method's maps, for all findings

# values of conditions
TUNED = "tuned"  # a threshold or cutoff that validation data chose
SCALED = "scaled"  # a probability after temperature scaling
ON_VALIDATION, ON_FOLDS = "validation", "folds"  # what a temperature was fitted on
BEST_MODEL, BEST_PAIR = "architecture", "pair"  # what was selected: the model of one method, or model and method
NOT_STATED = "not stated"  # the group of cases of which a fact is not known
MAP_FEATURES = ("agreement", "concentration")  # what is known of a map without the truth
PROBABILITY = "probability"  # the feature of a regression on the model's confidence

OBSERVED = "observed"  # the metric of a reliability curve
TESTED = ("iou", "hit")  # the two metrics of the verdict; the first chooses the model that the page is about
ADDED = ("precision", "recall", "specificity", "auroc", "ece")  # estimated in addition to the means of scores
SHOWN_CUTOFFS = (0.3, 0.5)  # a temperature never moves a probability across 0.5: only the other can change
FEATURES = ("instances", "size", "elongation", "irrectangularity")
PAPER_PRESET = "chexlocalize"  # the rules of the paper's scripts
PAPER_DATA = "chexlocalize"  # the data set of the paper's numbers, as a source's `published_as`

STORED_MAPS = "maps"  # the source of a run that scores maps from files
BOXES = "boxes"  # a kind of truth, beside outlines and masks


class Counts:
    """The names of what is counted."""

    IMAGES, EXAMINATIONS, PATIENTS, POSITIVES = "images", "examinations", "patients", "positives"
    ANNOTATED, WITHOUT_FINDING = "annotated", "without_finding"
    SEGMENTATIONS, SEGMENTATIONS_BY_READER = "segmentations", "segmentations_by_reader"
    READERS = "readers"
    EMPTY_MAPS = "empty_maps"  # of a method, among all its maps (the estimate's cases)
    FAILED_MAPS = "failed_maps"  # the same among its maps of outlined findings: these score 0


class Calls:
    """The model's answers, by what is true, and what an operating point was taken from."""

    FOUND, MISSED = "true positive", "false negative"
    FALSE_ALARM, CLEARED = "false positive", "true negative"
    POSITIVE, NEGATIVE = "positive", "negative"
    ON_SPEC, ON_VALIDATION, ON_RUN = "spec", "validation", "run"


class SwitchEntry(NamedEntry):
    """A rule in which the presets differ: what the run did, what each preset does, and why it matters."""

    used: str = ""
    recommended: str = ""
    chexlocalize: str = ""
    why: str = ""


class ValidationEntry(SourceEntry):
    """The data that thresholds were tuned and the model was chosen on."""

    n_cases: int | None = None
    n_failed: int | None = None

    @property
    def words(self) -> str:
        """The data in words, with the number of cases where it is known."""
        name = self.description or self.name
        return f"{name}, {self.n_cases:,} cases" if name and self.n_cases else name


class LocalizationManifest(Manifest):
    """What run.json says of a localization run."""

    switches: tuple[SwitchEntry, ...] = ()
    truth_kind: str = ""  # outlines, masks or boxes
    slice: str = ""  # of maps from files: overlap on images with the finding, or on all
    validation: ValidationEntry = ValidationEntry()
    validation_cases_hash: str = ""
    validation_data_hash: str = ""

    @property
    def asked_for_paper(self) -> bool:
        """Whether the run was asked for the paper's rules; verdict and plots follow the recommended ones even then."""
        return self.preset == PAPER_PRESET

    @property
    def scores_files(self) -> bool:
        """Whether the maps were made elsewhere."""
        return self.source.name == STORED_MAPS


Point = list[float]  # [x, y], as in an outline


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodMapEntry:
    """One method's map of a case, with its region, its hottest point and its scores."""

    method: str
    file: str
    iou: float | None
    hit: float | None
    peak: Point | None  # none where it lies in another slice
    peak_slice: int | None = None  # that other slice, counted from 1
    region: Outlines


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderEntry:
    """One reader's marks on a case of the gallery."""

    reader: str
    contours: Outlines
    points: list[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalizationEntry:
    """A case and finding of the gallery, with slice, plane and sides of the patient where they are known."""

    id: str
    case: str
    patient: str
    finding: str
    why: str = ""  # the reason for its choice
    method: str = ""  # whose map is the reason; empty where the truth is
    image: str
    shape: tuple[int, int]
    label: float | None
    probability: float | None = None
    truth: Outlines
    readers: tuple[ReaderEntry, ...] = ()
    maps: tuple[MethodMapEntry, ...] = ()
    rectangle: list[Point] | None = None  # fitted to the truth; its corners
    slice: int | None = None  # of a volume, counted from 1
    slices: int | None = None
    plane: str | None = None
    sides: str | None = None
