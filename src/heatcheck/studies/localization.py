"""Study: do the maps point where the radiologists do?"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import Case, CaseKey, CaseRecord, Estimate, Map, Prediction, Score, ShardTables, Timing
from heatcheck.core.registry import suggest
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.maps.keep import for_keeping
from heatcheck.methods import METHODS, build_method, changed_settings
from heatcheck.metrics import METRICS
from heatcheck.models import MODELS, ModelSettings, NetworkClassifier, load_classifier
from heatcheck.regions.rule import RegionRule
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.sources import SOURCES
from heatcheck.studies.cases import batches, digest_of, failure, read_cases
from heatcheck.studies.explaining import Explained, Explainer
from heatcheck.studies.gallery import GalleryRule, make_gallery
from heatcheck.studies.localization_estimates import EstimateRule, localization_estimates
from heatcheck.studies.progress import Watcher
from heatcheck.studies.pseudonyms import pseudonymous
from heatcheck.studies.readiness import methods_with_batch, require_other_patients, supplies_for, try_out
from heatcheck.studies.registry import STUDIES, RunOptions, StudyFacts
from heatcheck.studies.scoring import ScoringRule, score_case
from heatcheck.studies.sources import open_source

NOTES = (
    "A map is resized once, straight from the method's own grid to the image: each further resize would blur it.",
    "A map that marks nothing on a positive case scores 0, because leaving it out would reward a method for failing.",
    "When several pixels share the highest value, they share the hit; taking the first would favour the top left.",
    "Patients, not images, are drawn again for the intervals, because two images of one patient are not independent.",
    "Differences from the human readers use only the cases that method, readers and truth have in common.",
)


class RegionPart(BaseModel):
    """How a map becomes a region."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    threshold: Literal["otsu"] | float = "otsu"
    smooth: float = Field(0.0, ge=0, le=1)


class LocalizationBody(BaseModel):
    """What a localization spec says beyond the common part."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preset: Literal["recommended"] = "recommended"
    source: dict[str, Any]
    model: ModelSettings
    methods: tuple[dict[str, Any], ...] = Field(min_length=1)
    findings: tuple[str, ...] | Literal["all"] = "all"
    metrics: tuple[str, ...] = ("iou", "hit", "mass", "rank", "dice", "iou_full")
    region: RegionPart = RegionPart()
    channels: str = "positive"
    probability_cutoff: float = Field(0.0, ge=0, le=1)
    bootstrap_draws: int = Field(2000, ge=100)
    sign_flips: int = Field(10000, ge=10000)

    @field_validator("model", mode="before")
    @classmethod
    def _model_by_name(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("methods", mode="before")
    @classmethod
    def _methods_by_name(cls, value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        return [{"name": item} if isinstance(item, str) else item for item in value]


@dataclass(frozen=True)
class LocalizationPlan:
    """A localization study, checked and ready."""

    body: LocalizationBody
    envelope: Envelope
    source: Source
    keys: Sequence[CaseKey]
    explainer: Explainer
    options: RunOptions

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings that are judged."""
        return self.explainer.findings

    @property
    def identity(self) -> Mapping[str, Any]:
        """The resolved spec, the weights and the cases."""
        spec = {**self.envelope.model_dump(mode="json"), **self.body.model_dump(mode="json")}
        text = json.dumps(spec, sort_keys=True)
        return {
            "spec": json.loads(text),
            "spec_hash": hashlib.sha256(text.encode()).hexdigest(),
            "weights_hash": self._classifier.weights_hash,
            "contract": self._classifier.preprocessing.model_dump(mode="json"),
            "cases_hash": digest_of(self.keys),
            "seed": self.envelope.seed,
            "device": self.options.device,
            "data_hash": self.source.stamp(),
            "limit": self.options.limit,
            "pseudonymised": self.options.pseudonymise,
        }

    @property
    def _classifier(self) -> NetworkClassifier:
        classifier = self.explainer.classifier
        if not isinstance(classifier, NetworkClassifier):
            raise TypeError("a localization study explains a NetworkClassifier")
        return classifier

    @property
    def facts(self) -> Mapping[str, Any]:
        """Names and explanations for the report."""
        name = self.body.model.name
        summary = MODELS[name].summary if name in MODELS else "A model of your own"
        return {
            "preset": self.body.preset,
            "findings": list(self.findings),
            "methods": [_method_facts(*each) for each in self.explainer.methods.items()],
            "metrics": [_metric_facts(metric) for metric in self.body.metrics],
            "source": {"name": self.body.source["name"], "description": SOURCES[self.body.source["name"]].summary},
            "model": {"name": name, "description": summary, "outputs": list(self._classifier.outputs)},
            "notes": [*self._remarks(), *NOTES],
        }

    def _remarks(self) -> list[str]:
        """What sets this run apart."""
        source = SOURCES[self.body.source["name"]]
        limited = f"Only the first {len(self.keys)} cases were studied (--limit {self.options.limit})."
        return [*([limited] if self.options.limit else []), *([source.remark] if source.remark else [])]

    @property
    def shards(self) -> int:
        """Into how many parts the cases are cut."""
        return -(-len(self.keys) // self.envelope.shard_size)

    def _keys(self, shard: int) -> Sequence[CaseKey]:
        size = self.envelope.shard_size
        return self.keys[shard * size : (shard + 1) * size]

    def cases_in(self, shard: int) -> int:
        """How many cases that part has."""
        return len(self._keys(shard))

    def begun(self, folder: RunFolder, watcher: Watcher) -> "LocalizationPlan":
        """The plan with what its methods ask of the study: usual places, other patients' images, the best batch."""
        supplies = supplies_for(self.explainer, self.source, self.keys, watcher)
        methods = methods_with_batch(self.explainer, folder)
        return replace(self, explainer=replace(self.explainer, supplies=supplies, methods=methods))

    def work(self, shard: int) -> ShardTables:
        """Scores, predictions and timings of one shard's cases."""
        collected = _Collected(shard)
        read = read_cases(self.source, self._keys(shard), self.options.workers)
        for batch in batches(collected.usable(read), self.envelope.batch_size):
            self._explain(batch, collected)
        return collected.tables()

    def _explain(self, batch: list[Case], collected: "_Collected") -> None:
        """Explain and score a batch; when it fails, find the case that is to blame and keep the others."""
        try:
            explained, seconds = self.explainer(batch)
            scored = [self._scores(one) for one in explained]
        except InputError:
            raise  # what the user must mend concerns every case
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            if len(batch) == 1:
                collected.cases.append(failure(batch[0].key, error))
                return
            for case in batch:
                self._explain([case], collected)
            return
        collected.add(explained, scored, seconds, self)

    def _scores(self, explained: Explained) -> list[Score]:
        region = RegionRule(self.body.region.threshold, self.body.region.smooth)
        rule = ScoringRule(self.body.metrics, region, self.body.probability_cutoff)
        return score_case(explained, self.findings, self._classifier.name, rule)

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """Means, differences from human, tests against the floors, and how good the model itself is."""
        rule = EstimateRule(
            findings=self.findings,
            methods=tuple(self.explainer.methods),
            floors=tuple(name for name in self.explainer.methods if METHODS[name].is_floor),
            metrics=self.body.metrics,
            model=self._classifier.name,
            draws=self.body.bootstrap_draws,
            flips=self.body.sign_flips,
            seed=self.envelope.seed,
        )
        return localization_estimates(folder.path, rule)

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Choose telling cases by their scores and draw them."""
        rule = GalleryRule(
            source=self.source,
            keys={key.case: key for key in self.keys},
            explainer=self.explainer,
            region=RegionRule(self.body.region.threshold, self.body.region.smooth),
            most=self.envelope.gallery,
            keep_maps=self.envelope.keep_maps == "gallery",
        )
        make_gallery(folder, rule, watcher)


@dataclass
class _Collected:
    """The rows of one shard while it is worked on."""

    shard: int
    scores: list[Score] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    cases: list[CaseRecord] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    maps: dict[str, Map] = field(default_factory=dict)

    def usable(self, read: Iterable[Case | CaseRecord]) -> Iterator[Case]:
        """The cases that could be read; the records of the others are kept."""
        for one in read:
            if isinstance(one, Case):
                yield one
            else:
                self.cases.append(one)

    def add(
        self, explained: list[Explained], scored: list[list[Score]], seconds: dict[str, float], plan: LocalizationPlan
    ) -> None:
        """The rows of one batch."""
        for one, rows in zip(explained, scored, strict=True):
            key = one.case.key
            self.scores += rows
            shape = "×".join(map(str, one.case.image.shape[1:]))
            self.cases.append(CaseRecord(key.case, key.patient, "ok", shape=shape))
            for finding, logit, probability in zip(plan.findings, one.logits, one.probabilities, strict=True):
                label = key.labels.get(finding, float("nan"))
                name = plan.explainer.classifier.name
                self.predictions.append(Prediction(key.case, key.patient, finding, name, label, logit, probability))
            if plan.envelope.keep_maps == "all":
                self.maps |= named_maps(one, plan.findings)
        maps = len(explained) * len(plan.findings)
        self.timings += [Timing(self.shard, "map", method, maps, spent) for method, spent in seconds.items()]

    def tables(self) -> ShardTables:
        """Everything, in the order of the cases."""
        return ShardTables(
            scores=tuple(sorted(self.scores, key=_score_order)),
            predictions=tuple(sorted(self.predictions, key=lambda row: (row.case, row.finding))),
            cases=tuple(sorted(self.cases, key=lambda row: row.case)),
            timings=tuple(self.timings),
            maps=self.maps,
        )


def named_maps(explained: Explained, findings: Sequence[str]) -> dict[str, Map]:
    """The maps of one case by "case/finding/method", as they are kept."""
    return {
        f"{explained.case.key.case}/{finding}/{method}": for_keeping(values)
        for method in explained.grids
        for column, finding in enumerate(findings)
        if (values := explained.map_of(method, column)) is not None
    }


def _score_order(row: Score) -> tuple[str, ...]:
    return row.case, row.finding, row.method, row.metric, row.condition, row.other_method


def _method_facts(name: str, method: Method) -> dict[str, Any]:
    facts = METHODS[name]
    note = "the same map for every finding" if facts.same_for_all_targets else ""
    kind = "floor" if facts.is_floor else "method"
    return {
        "name": name,
        "label": facts.label,
        "family": facts.family,
        "kind": kind,
        "note": note,
        "summary": facts.summary,
        "changed": [asdict(setting) for setting in changed_settings(name, method)],
    }


def _metric_facts(name: str) -> dict[str, Any]:
    facts = METRICS[name]
    return {
        "name": name,
        "label": facts.label,
        "higher_is_better": facts.higher_is_better,
        "summary": facts.summary,
    }


def plan_localization(spec: Spec, options: RunOptions, out: Path) -> LocalizationPlan:
    """The study, with everything checked that can be known before work starts."""
    body = spec.checked_body(LocalizationBody)
    methods = _methods(body, spec.name)
    for metric in body.metrics:
        if METRICS[metric].is_count:
            raise SpecError(f"{spec.name}: {metric} is always counted; leave it out of `metrics`")
    CHANNEL_RULES[body.channels]  # raises with a suggestion
    try:
        RegionRule(body.region.threshold, body.region.smooth)
    except ValueError as error:
        raise SpecError(f"{spec.name}: region: {error}") from error
    source = open_source(body.source, spec.folder, spec.name)
    findings = _findings(body, source, spec.name)
    keys = source.index()[: options.limit]
    if not keys:
        raise SpecError(f"{spec.name}: the source has no cases")
    classifier = load_classifier(body.model, spec.folder, options.device, trust_code=options.trust_code)
    _require_outputs(classifier, findings)
    explainer = Explainer(classifier, findings, methods, body.channels, spec.envelope.seed)
    require_other_patients(explainer, keys)
    try_out(explainer)
    if options.pseudonymise:
        source, keys = pseudonymous(source, keys, out)
    return LocalizationPlan(body, spec.envelope, source, keys, explainer, options)


def _methods(body: LocalizationBody, where: str) -> dict[str, Method]:
    methods: dict[str, Method] = {}
    for part in body.methods:
        if not isinstance(part.get("name"), str):
            raise SpecError(f"{where}: each of `methods` is a name, or a mapping with a `name` and its settings")
        if part["name"] in methods:
            raise SpecError(f"{where}: method {part['name']!r} is named twice; name it once")
        methods[part["name"]] = build_method(part["name"], {k: v for k, v in part.items() if k != "name"})
    return methods


def _findings(body: LocalizationBody, source: Source, where: str) -> tuple[str, ...]:
    if body.findings == "all":
        return tuple(source.findings)
    if len(set(body.findings)) < len(body.findings) or not body.findings:
        raise SpecError(f"{where}: `findings` must name at least one finding, and each once")
    for finding in body.findings:
        if finding not in source.findings:
            raise SpecError(f"{where}: the source has no finding {finding!r}; {suggest(finding, source.findings)}")
    return body.findings


def _require_outputs(classifier: NetworkClassifier, findings: Sequence[str]) -> None:
    missing = [finding for finding in findings if finding not in classifier.outputs]
    if missing:
        raise SpecError(
            f"model {classifier.name} has no output for {', '.join(missing)}; its outputs are "
            f"{', '.join(classifier.outputs)}. Choose `findings` among them, or correct the contract's `outputs`"
        )


STUDIES.add(
    "localization",
    StudyFacts(
        name="localization",
        summary="Scores each method's maps against radiologists' outlines and against floors",
        question="Do the maps point where the radiologists do?",
        paper="Saporta et al. 2022",
        plan=plan_localization,
    ),
)
