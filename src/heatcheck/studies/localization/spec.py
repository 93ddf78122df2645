"""What a localization spec may say, and the checks that need no model."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from heatcheck.core.contracts import Source
from heatcheck.core.errors import SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.registry import suggest
from heatcheck.explaining.methods import by_name
from heatcheck.explaining.study_models import StudyModel
from heatcheck.judging.sizes import Sizes
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.metrics import METRIC_FACTS, METRICS
from heatcheck.regions.rule import RegionRule
from heatcheck.scoring.presets import SWITCHES, PresetName, Rules, rules_with
from heatcheck.sources import SOURCES
from heatcheck.studies.localization.subgroups.groups import Subgroup, by_column
from heatcheck.studies.localization.vocabulary import BOXES

OWN_REGION = ("smooth", "colours")  # settings of a method that concern its regions


class RegionPart(BaseModel):
    """How a map becomes a region."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    threshold: Literal["otsu"] | float = "otsu"
    smooth: float = Field(0.0, ge=0, le=1)  # of the map, a fraction of the image's side
    colours: int = Field(0, ge=0)  # the benchmark's: of the map's colours, in pixels


class LocalizationBody(BaseModel):
    """The part of a localization spec beyond the common one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preset: PresetName = "recommended"
    switches: dict[str, PresetName] = Field(default_factory=dict)  # single rules set to either preset's
    source: dict[str, Any]
    validation: dict[str, Any] | None = None
    model: StudyModel | None = None
    models: tuple[StudyModel, ...] = ()
    methods: tuple[dict[str, Any], ...] = Field(min_length=1)
    findings: tuple[str, ...] | Literal["all"] = "all"
    metrics: tuple[str, ...] = ("iou", "hit", "mass", "rank", "dice", "iou_full")
    region: RegionPart = RegionPart()
    channels: str = "positive"
    instances: Literal["drawn", "components"] = "drawn"  # what the regressions count: outlines, or connected parts
    probability_cutoff: float = Field(0.0, ge=0, le=1)
    bootstrap_draws: int = Field(2000, ge=100)
    sizes: Sizes = Sizes()  # differences that matter
    operating_point: float | dict[str, float] | None = None  # from which probability on the model says yes, by finding
    subgroups: tuple[Subgroup, ...] = ()  # columns by which results are divided: names, or {name: [edges]}

    @field_validator("findings", mode="after")
    @classmethod
    def _one_name_each(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        return value if isinstance(value, str) else tuple(map(canonical, value))

    @field_validator("methods", mode="before")
    @classmethod
    def _methods_by_name(cls, value: object) -> object:
        return by_name(value)

    @field_validator("operating_point", mode="after")
    @classmethod
    def _probabilities(cls, value: float | dict[str, float] | None) -> float | dict[str, float] | None:
        points = {canonical(name): point for name, point in value.items()} if isinstance(value, dict) else value
        given = points.values() if isinstance(points, dict) else [points]
        if any(point is not None and not 0 <= point <= 1 for point in given):
            raise ValueError("an operating point is a probability from 0 to 1")
        return points

    @field_validator("subgroups", mode="before")
    @classmethod
    def _subgroups_by_column(cls, value: object) -> object:
        return by_column(value)

    @model_validator(mode="after")
    def _checked(self) -> "LocalizationBody":
        if bool(self.model) == bool(self.models):
            raise ValueError("name one `model`, or several under `models`")
        keys = [model.key for model in self.models]
        twice = next((key for number, key in enumerate(keys) if key in keys[:number]), "")
        if twice:
            raise ValueError(f"two models are called {twice!r}; give one of them a `label` of its own")
        if self.validation is not None and self.probability_cutoff:
            raise ValueError("`probability_cutoff` is tuned on the validation data; leave it out, or `validation`")
        return self

    @property
    def every_model(self) -> tuple[StudyModel, ...]:
        """The models, from `model` or `models`."""
        return self.models or ((self.model,) if self.model else ())

    @property
    def rules(self) -> Rules:
        """The rules of the study's own results: the recommended ones, except for its switches."""
        return rules_with("recommended", self.switches)

    @property
    def tuning_rules(self) -> Rules:
        """The rules by which validation data are used: the preset's, except for its switches."""
        return rules_with(self.preset, self.switches)

    @property
    def region_rule(self) -> RegionRule:
        """How a map becomes a region."""
        return RegionRule(self.region.threshold, self.region.smooth, self.region.colours)

    @property
    def own_regions(self) -> dict[str, RegionRule]:
        """The rules of the methods that smooth their maps in their own way."""
        regions = {}
        for part in self.methods:
            settings = {key: part[key] for key in OWN_REGION if key in part}
            if settings:
                region = RegionPart.model_validate({"threshold": self.region.threshold, **settings})
                regions[str(part.get("name"))] = RegionRule(region.threshold, region.smooth, region.colours)
        return regions


def require_sound(body: LocalizationBody, where: str) -> None:
    """Refuse what the schema cannot check."""
    for metric in body.metrics:
        if metric in METRIC_FACTS and metric not in METRICS:
            known = ", ".join(name for name in METRICS if not METRICS[name].is_count)
            compared = METRIC_FACTS[metric].needs.value
            raise SpecError(f"{where}: {metric} compares {compared}, not a map with outlines; choose among {known}")
        if METRICS[metric].is_count:
            raise SpecError(f"{where}: {metric} is always counted; leave it out of `metrics`")
    CHANNEL_RULES[body.channels]  # raises with a suggestion
    for name in body.switches:
        if SWITCHES[name].files_only:
            raise SpecError(f"{where}: switch {name!r} concerns maps in files; use it with `heatcheck score`")
    try:
        _ = body.region_rule, body.own_regions
    except ValueError as error:
        raise SpecError(f"{where}: region: {error}") from error


def with_box_metric(body: LocalizationBody, truth_kind: str) -> LocalizationBody:
    """The body with `box_iou` among its metrics where the truth is boxes."""
    if truth_kind != BOXES or "box_iou" in body.metrics:
        return body
    return body.model_copy(update={"metrics": (*body.metrics, "box_iou")})


def with_facts(part: dict[str, Any], body: LocalizationBody) -> dict[str, Any]:
    """A source's part of the spec, which also names the columns that are subgroups, where the source reads a table."""
    name = part.get("name")
    reads_table = isinstance(name, str) and name in SOURCES and "facts" in SOURCES[name].settings.model_fields
    if not body.subgroups or not reads_table or not isinstance(part.get("facts", []), list):
        return part
    return {**part, "facts": [*part.get("facts", []), *(subgroup.column for subgroup in body.subgroups)]}


def findings_of(body: LocalizationBody, sources: Mapping[str, Source], where: str) -> tuple[str, ...]:
    """The findings that are scored; every source must have them."""
    first = next(iter(sources.values()))
    findings = tuple(first.findings) if body.findings == "all" else body.findings
    if len(set(findings)) < len(findings) or not findings:
        raise SpecError(
            f"{where}: `findings` must name at least one finding and none twice, got {list(findings)}; correct it"
        )
    for name, source in sources.items():
        for finding in findings:
            if finding not in source.findings:
                raise SpecError(f"{where}: the {name} has no finding {finding!r}; {suggest(finding, source.findings)}")
    for finding in body.operating_point if isinstance(body.operating_point, dict) else ():
        if finding not in findings:
            hint = suggest(finding, findings)
            raise SpecError(f"{where}: `operating_point` names {finding!r}, which is not studied; {hint}")
    return findings


def overlap_remark(body: LocalizationBody, shared: Sequence[str], where: str) -> str:
    """A warning where thresholds are tuned on patients who are scored; the recommended preset refuses that."""
    if not shared:
        return ""
    named = ", ".join(shared[:3]) + (", …" if len(shared) > 3 else "")
    if body.tuning_rules.tuning_on_scored_data == "refuse":
        raise SpecError(
            f"{where}: `validation` and `source` share {len(shared)} patients ({named}); a threshold must not be tuned "
            "on data that are scored: take these patients out of one of them, or use `preset: chexlocalize`"
        )
    return (
        f"Thresholds were tuned on {len(shared)} patients who are also scored: tuned results look better here than "
        "they will be on new patients."
    )
