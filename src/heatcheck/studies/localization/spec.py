"""What a localization spec may say, and the checks that need no model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from heatcheck.core.contracts import Source
from heatcheck.core.errors import SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import AllOrSeveral, Several, listed
from heatcheck.core.settings.problems import of_value
from heatcheck.explaining.methods import MethodParts
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
Share = Annotated[float, Field(ge=0, le=1)]


class RegionPart(BaseModel):
    """How a map becomes a region; sizes are shares of the image's longer side."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    threshold: Literal["otsu"] | float = "otsu"
    smooth: Share | tuple[Share, ...] = 0.0  # of the map; of several, and none, validation data choose the best
    colours: float | None = Field(None, ge=0)  # under the paper's rules, of the map's colours; from 1 on in pixels

    @property
    def rule(self) -> RegionRule:
        """The rule, without smoothing where that is still to be chosen."""
        return RegionRule(self.threshold, self.smooth if isinstance(self.smooth, float) else 0.0)

    @property
    def tried(self) -> tuple[float, ...]:
        """The smoothing among which validation data choose, beside none at all."""
        return () if isinstance(self.smooth, float) else tuple(dict.fromkeys(each for each in self.smooth if each))


class LocalizationBody(BaseModel):
    """The part of a localization spec beyond the common one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preset: PresetName = "recommended"
    switches: dict[str, PresetName] = Field(default_factory=dict)  # single rules set to either preset's
    source: dict[str, Any]
    validation: dict[str, Any] | None = None
    model: StudyModel | None = None
    models: Several[StudyModel] = ()
    methods: MethodParts = Field(min_length=1)
    findings: AllOrSeveral = "all"
    metrics: Several[str] = ("iou", "hit", "mass", "rank", "dice", "iou_full")
    region: RegionPart = RegionPart()
    channels: str = "positive"
    instances: Literal["drawn", "components"] = "drawn"  # what the regressions count: outlines, or connected parts
    views: Literal["each", "max"] = "each"  # max: a study is as probable as the view with the highest probability
    probability_cutoff: float = Field(0.0, ge=0, le=1)
    bootstrap_draws: int = Field(2000, ge=100)
    sizes: Sizes = Sizes()  # differences that matter
    operating_point: float | dict[str, float] | None = None  # from which probability on the model says yes, by finding
    subgroups: tuple[Subgroup, ...] = ()  # columns by which results are divided: names, or {name: [edges]}

    @field_validator("findings", mode="after")
    @classmethod
    def _one_name_each(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        return value if isinstance(value, str) else tuple(map(canonical, value))

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
    def regions(self) -> dict[str, RegionPart]:
        """How the maps of each method become regions: as `region` says, unless the method smooths in its own way."""
        regions = {}
        for part in self.methods:
            own = {key: part[key] for key in OWN_REGION if key in part}
            region = RegionPart.model_validate({"threshold": self.region.threshold, **own}) if own else self.region
            regions[str(part.get("name"))] = region
        return regions

    def region_rules(self, chosen: Mapping[str, float]) -> dict[str, RegionRule]:
        """The rule of each method, with the smoothing that validation data chose for it."""
        rules = {method: part.rule for method, part in self.regions.items()}
        return rules | {method: replace(rules[method], smooth=smooth) for method, smooth in chosen.items()}

    @property
    def colours(self) -> dict[str, float]:
        """The box of the paper's rules for each method that names one."""
        return {method: part.colours for method, part in self.regions.items() if part.colours is not None}

    @property
    def tried_smoothing(self) -> dict[str, tuple[float, ...]]:
        """The smoothing that is tried on validation data, for each method that names several."""
        return {method: part.tried for method, part in self.regions.items() if part.tried}


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
    undecided: list[str] = []
    try:
        for method, part in body.regions.items():
            RegionRule(part.threshold, max((part.rule.smooth, *part.tried)))
            RegionRule(part.threshold, colours=part.colours or 0)
            undecided += [method] if part.tried and body.validation is None else []
    except ValueError as error:
        problem = of_value(error) if isinstance(error, ValidationError) else str(error)
        raise SpecError(f"{where}: region: {problem}") from error
    if undecided:
        raise SpecError(
            f"{where}: {', '.join(undecided)} has several values of `smooth`, among which validation data choose; add "
            "`validation`, or name one value"
        )


def with_box_metric(body: LocalizationBody, truth_kind: str) -> LocalizationBody:
    """The body with `box_iou` among its metrics where the truth is boxes."""
    if truth_kind != BOXES or "box_iou" in body.metrics:
        return body
    return body.model_copy(update={"metrics": (*body.metrics, "box_iou")})


def with_rules(part: dict[str, Any], body: LocalizationBody) -> dict[str, Any]:
    """A source's part of the spec, with what follows from the study, where the source has such settings.

    These are the columns that are subgroups, and what becomes of an outline that a label contradicts.
    """
    name = part.get("name")
    known = SOURCES[name].settings.model_fields if isinstance(name, str) and name in SOURCES else {}
    changes: dict[str, Any] = {}
    facts = listed(part.get("facts", []))
    if body.subgroups and "facts" in known and isinstance(facts, list):
        changes["facts"] = [*facts, *(subgroup.column for subgroup in body.subgroups)]
    if "contradictions" in known and "contradictions" not in part:
        changes["contradictions"] = body.tuning_rules.contradiction
    return {**part, **changes}


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
