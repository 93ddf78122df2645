"""Study: do the maps point where the radiologists do?"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from heatcheck.core.contracts import Method
from heatcheck.core.errors import SpecError
from heatcheck.core.records import Estimate
from heatcheck.explaining.first_look.look import Sample
from heatcheck.explaining.first_look.preview import given_images, write_preview
from heatcheck.explaining.kept_maps import FOLDER as MAPS_TO_SHOW
from heatcheck.explaining.kept_maps import KeptMaps
from heatcheck.explaining.methods import MethodChoice, MethodRules, chosen_methods, skipped_facts
from heatcheck.explaining.study_models import Asked, CaseExplainer, Split, StudyModels
from heatcheck.methods import METHODS
from heatcheck.methods.cam import OnFeatureMap
from heatcheck.metrics.thresholds import THRESHOLDS
from heatcheck.regions.rule import RegionRule
from heatcheck.running.cases import digest_of, limited, shared_patients
from heatcheck.running.cost import Cost
from heatcheck.running.facts import ModelRecord, models_facts, source_facts, study_facts
from heatcheck.running.identity import DataIdentity, rest_hash_of, study_identity
from heatcheck.running.open_source import cautions_of, open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.scoring.presets import PresetName, Rules, rules_with, switch_facts
from heatcheck.scoring.rows import ScoringRule
from heatcheck.sources import SOURCES
from heatcheck.studies.localization.answers.views import JOINED, other_views, require_examinations
from heatcheck.studies.localization.chexlocalize.estimates import paper_estimates
from heatcheck.studies.localization.conditions import conditional_estimates
from heatcheck.studies.localization.cost import SCORED, images_to_explain
from heatcheck.studies.localization.estimates import localization_estimates
from heatcheck.studies.localization.gallery import GalleryRule, kept_case, make_gallery
from heatcheck.studies.localization.models import ensembles_and_singles, model_differences
from heatcheck.studies.localization.rule_notes import rule_notes
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.spec import (
    OWN_REGION,
    LocalizationBody,
    findings_of,
    overlap_remark,
    require_sound,
    with_box_metric,
    with_rules,
)
from heatcheck.studies.localization.stage import ScoringStage
from heatcheck.studies.localization.subgroups.estimates import subgroup_estimates
from heatcheck.studies.localization.subgroups.groups import subgroups_of
from heatcheck.studies.localization.tuning import (
    TuningSettings,
    primary_of,
    smoothing_for,
    tuned_for,
    validation_estimates,
    validation_predictions,
)
from heatcheck.studies.localization.vocabulary import ADDED, LocalizationManifest
from heatcheck.studies.localization.wrong_answers.estimates import wrong_answer_estimates

VALIDATION = "validation"


@dataclass(frozen=True)
class LocalizationPlan:
    """A localization study, checked."""

    body: LocalizationBody
    envelope: Envelope
    scored: Split
    validation: Split | None
    findings: tuple[str, ...]
    models: tuple[ModelRecord, ...]
    study_models: StudyModels
    options: RunOptions
    truth_kind: str  # outlines, masks or boxes
    remark: str = ""  # a warning about the validation data

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods that explain every model."""
        return self.study_models.choice.methods

    @property
    def identity(self) -> Mapping[str, Any]:
        """The resolved spec, the weights and the cases."""
        contracts = {model.name: model.contract.model_dump(mode="json") for model in self.models}
        hashes = [model.weights_hash for model in self.models]
        contract, weights = contracts[self.models[0].name], hashes[0]
        if len(self.models) > 1:
            contract, weights = contracts, hashlib.sha256("".join(hashes).encode()).hexdigest()
        data = DataIdentity(self.scored.keys, self.scored.source.stamp())
        return {
            **study_identity(self.envelope, self.body, self.options, weights, contract, data),
            **self._validation_identity(),
        }

    def rest_hash(self, failed: Collection[str]) -> str:
        """A hash of the data without these cases: what must be the same when they alone run again."""
        return rest_hash_of(self.scored.source, self.scored.keys, failed)

    def changed_since(self, moment: str) -> str:
        """The first file of the scored cases that is newer than the moment, where the source can say."""
        newer: str = getattr(self.scored.source, "changed_since", lambda _: "")(moment)
        return newer

    def _validation_identity(self) -> dict[str, str]:
        if self.validation is None:
            return {}
        stamp = self.validation.source.stamp()
        hashes = LocalizationManifest(validation_cases_hash=digest_of(self.validation.keys), validation_data_hash=stamp)
        return hashes.facts()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Names and explanations for the report."""
        metrics = (*self.body.metrics, *ADDED)
        return LocalizationManifest(
            **study_facts(
                self.findings, self.methods, metrics, self.body.source["name"], self._notes(), self._cautions()
            ),
            **skipped_facts(self.study_models.choice.skipped),
            sizes=self.body.sizes.model_dump(mode="json"),
            **models_facts(self.models, self.models[0].name),
            **self._validation_facts(),
            preset=self.body.preset,
            switches=switch_facts(self.body.preset, self._switches()),
            truth_kind=self.truth_kind,
        ).facts()

    def _validation_facts(self, **counts: int) -> dict[str, Any]:
        if self.validation is None or self.body.validation is None:
            return {}
        facts = source_facts(self.body.validation["name"])
        return {"validation": {**facts, "n_cases": len(self.validation.keys), **counts}}

    def _cautions(self) -> tuple[str, ...]:
        """What a first look at images and models showed."""
        splits = [split for split in (self.scored, self.validation) if split is not None]
        of_models = [caution for model in self.models for caution in model.cautions]
        return (*of_models, *cautions_of(split.source for split in splits))

    def _notes(self) -> tuple[str, ...]:
        """What is special about this run, and the rules behind its tables."""
        limit = self.options.limit
        cases = f"{len(self.scored.keys)} cases of {limit} patients, spread over the findings,"
        limited = f"Only {cases} were studied (--limit {limit})." if limit else ""
        remark = SOURCES[self.body.source["name"]].remark
        views = JOINED if self.body.views == "max" else ""
        return (limited, self.remark, remark, views, *rule_notes(rules_with(self.body.preset, self._switches())))

    def _switches(self) -> dict[str, PresetName]:
        """The switches of the spec, and what a run does by both presets' rules: smoothing, and placing coarse maps."""
        coarse = [method for method in self.methods.values() if isinstance(method, OnFeatureMap)]
        plainly = bool(coarse) and all(method.placement == "plain" for method in coarse)
        both: dict[str, PresetName] = {"smoothing": "recommended"}  # the paper's own is scored beside it
        return {**both, **self.body.switches, **({"placement": "chexlocalize"} if plainly else {})}

    def preview(self, folder: RunFolder) -> None:
        """Write what the networks are given of the cases to be scored."""
        sample = Sample(self.scored.source, self.scored.keys, self.findings)
        write_preview(folder, given_images(sample, {model.label: model.contract for model in self.models}))

    def cost(self, folder: RunFolder) -> Cost:
        """The images of both splits that are left to explain and to score."""
        splits = {VALIDATION: self.validation, "": self.scored}
        rules = {VALIDATION: self._tuning_rule, "": self._scoring_rule(self.study_models.names[0], [])}
        works = [
            images_to_explain(split, self.study_models, rules[name], self.envelope, folder.within(name))
            for name, split in splits.items()
            if split is not None
        ]
        return Cost(works, self.options.device)

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The validation data, if there are any, then the cases that are scored with what those chose."""
        if self.validation is not None:
            if self.remark:
                watcher.say(self.remark)
            yield self._stage(self.validation, folder, watcher)
            self._conclude_validation(folder, watcher)
        yield self._stage(self.scored, folder, watcher)

    def _conclude_validation(self, folder: RunFolder, watcher: Watcher) -> None:
        """Store what the validation data chose, and say how many of their cases failed."""
        within = folder.within(VALIDATION)
        within.write_estimates(validation_estimates(within.path, self._tuning_settings))
        primary = primary_of(self._chosen(folder), self.study_models.names)
        failed = int((within.read_table("cases")["status"] == "failed").sum())
        if failed:
            watcher.say(f"{failed} validation cases failed and were left out; validation/cases.parquet says why.")
        facts = LocalizationManifest(**models_facts(self.models, primary), **self._validation_facts(n_failed=failed))
        folder.record(**facts.facts())

    def _stage(self, split: Split, folder: RunFolder, watcher: Watcher) -> ScoringStage:
        tuning = split.name == VALIDATION
        chosen = [] if tuning else self._chosen(folder)
        primary = primary_of(chosen, self.study_models.names)
        rules = {
            name: self._tuning_rule if tuning else self._scoring_rule(name, chosen) for name in self.study_models.names
        }
        return ScoringStage(
            name=VALIDATION if tuning else "",
            what="validation maps" if tuning else "maps and scores",
            split=split,
            rules=rules,
            explainer=partial(self._explainer, split=split, folder=folder, watcher=watcher),
            views=other_views(split.source, split.keys) if self.body.views == "max" else None,
            envelope=self.envelope,
            workers=self.options.workers,
            to_show={} if tuning or not self.envelope.gallery else {primary: self._to_show(folder)},
        )

    def _to_show(self, folder: RunFolder) -> KeptMaps:
        """The maps of the primary model that the gallery may show."""
        return KeptMaps(folder.path / MAPS_TO_SHOW)

    def _explainer(self, name: str, split: Split, folder: RunFolder, watcher: Watcher) -> CaseExplainer:
        return self.study_models.ready(name, split, folder, watcher)

    @property
    def _tuning_rule(self) -> ScoringRule:
        """How a map is scored on validation data."""
        return ScoringRule(
            ("iou", "hit", "iou_full"),
            self.body.region.rule,
            thresholds=THRESHOLDS,
            counts=False,
            readers=False,
            rules=replace(self.body.rules, empty_region="zero"),  # an undefined overlap means that there is no truth
            regions=self.body.region_rules({}),
            colours=self.body.colours,
            smooths=self.body.tried_smoothing,
        )

    def _regions(self, model: str, chosen: Sequence[Estimate]) -> dict[str, RegionRule]:
        """How a model's maps become regions, with the smoothing that validation data chose."""
        return self.body.region_rules(smoothing_for(chosen, model))

    def _scoring_rule(self, model: str, chosen: Sequence[Estimate]) -> ScoringRule:
        return ScoringRule(
            self.body.metrics,
            self.body.region.rule,
            self.body.probability_cutoff,
            tuned=tuned_for(chosen, model),
            rules=self.body.rules,
            regions=self._regions(model, chosen),
            colours=self.body.colours,
            described=tuple(name for name in self.methods if name not in self._floors),
        )

    @property
    def _tuning_settings(self) -> TuningSettings:
        names, ensembles = self.study_models.names, [model.name for model in self.models if model.kind == "ensemble"]
        return TuningSettings(
            self.findings,
            tuple(self.methods),
            self._floors,
            names,
            self.body.tuning_rules,
            eligible=tuple(ensembles) or names,
            smooths=self.body.tried_smoothing,
            views=self.body.views,
        )

    @property
    def _floors(self) -> tuple[str, ...]:
        return tuple(name for name in self.methods if METHODS[name].is_floor)

    def _chosen(self, folder: RunFolder) -> list[Estimate]:
        """What the validation data chose."""
        return [] if self.validation is None else folder.within(VALIDATION).read_estimates()

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """Means, differences from human and tests of each model, what was tuned, and how the models differ."""
        chosen = self._chosen(folder)
        primary = primary_of(chosen, self.study_models.names)
        rows: list[Estimate] = []
        divided = subgroups_of(self.body.subgroups, self.scored.keys, "subgroups")
        for name in self.study_models.names:
            settings = self._settings(name)
            rows += localization_estimates(folder.path, settings)
            rows += conditional_estimates(folder.path, settings, tuned=self.validation is not None)
            rows += paper_estimates(folder.path, settings, validation_predictions(folder.path, settings))
            rows += subgroup_estimates(folder.path, settings, divided)
            rows += wrong_answer_estimates(folder.path, settings, self.body.operating_point)
        others = [name for name in self.study_models.names if name != primary]
        rows += model_differences(folder.path, self._settings(primary), others)
        for ensemble, single in ensembles_and_singles(self.models, primary):
            rows += model_differences(folder.path, self._settings(ensemble), [single])
        return [*rows, *chosen]

    def _settings(self, model: str) -> LocalizationSettings:
        return LocalizationSettings(
            findings=self.findings,
            methods=tuple(self.methods),
            floors=self._floors,
            metrics=self.body.metrics,
            model=model,
            draws=self.body.bootstrap_draws,
            sizes=self.body.sizes,
            seed=self.envelope.seed,
            rules=self.body.rules,
            views=self.body.views,
            instances="components" if self.body.instances == "components" else "instances",
        )

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Choose cases for the gallery by their scores under the primary model, and draw them."""
        chosen = self._chosen(folder)
        primary = primary_of(chosen, self.study_models.names)
        regions = self._regions(primary, chosen)
        explainer = self._explainer(primary, self.scored, folder, watcher)
        keys, kept = {key.case: key for key in self.scored.keys}, self._to_show(folder)
        rule = GalleryRule(
            case=lambda case, finding: kept_case(kept, explainer, self.scored.source.load(keys[case]), finding),
            methods=tuple(self.methods),
            model=primary,
            region=lambda _, method: regions[method],
            most=self.envelope.gallery,
            keep_maps=self.envelope.keep_maps == "gallery",
            remark=kept.remark,
        )
        make_gallery(folder, rule, watcher)
        kept.remove()


def plan_localization(spec: Spec, options: RunOptions, out: Path) -> LocalizationPlan:
    """The study, with everything checked that can be checked before it runs."""
    body = spec.checked_body(LocalizationBody)
    choice = chosen_methods(body.methods, spec.name, MethodRules(own_keys=OWN_REGION, strict=spec.envelope.strict))
    body = body.model_copy(update={"methods": choice.parts})
    require_sound(body, spec.name)
    parts = {"source": body.source} | ({"validation source": body.validation} if body.validation is not None else {})
    parts = {name: with_rules(part, body) for name, part in parts.items()}
    sources = {name: open_source(part, spec.folder, spec.name) for name, part in parts.items()}
    findings = findings_of(body, sources, spec.name)
    indices = {name: source.index() for name, source in sources.items()}
    for name, keys in indices.items():
        if not keys:
            raise SpecError(f"{spec.name}: the {name} has no cases; check its folders and files")
        if lacking := getattr(sources[name], "without_truth", lambda _: "")(findings):
            raise SpecError(f"{spec.name}: {lacking}")
    if body.views == "max":
        require_examinations(indices["source"], spec.name)
    shared = shared_patients(*indices.values()) if len(indices) == 2 else []
    remark = overlap_remark(body, shared, spec.name)
    indices = {name: limited(keys, findings, options.limit) for name, keys in indices.items()}
    subgroups_of(body.subgroups, indices["source"], spec.name)  # refuses columns that are not there
    request = Asked(
        findings,
        _placed(choice, body.rules),
        body.channels,
        spec.envelope.seed,
        spec.folder,
        options.device,
        options.trust_code,
        spec.envelope.batch_size,
    )
    study_models = StudyModels(body.every_model, request)
    models = study_models.checked(*(Sample(source, indices[name], findings) for name, source in sources.items()))
    body = body.model_copy(update={"methods": study_models.choice.parts})
    splits = []
    for name, source in sources.items():
        chosen, keys = source, indices[name]
        if options.pseudonymise:
            chosen = pseudonymous(source, keys, out)
            keys = chosen.index()
        splits.append(Split(SCORED if name == "source" else VALIDATION, chosen, keys))
    scored, validation = splits[0], splits[1] if len(splits) > 1 else None
    kind = str(getattr(sources["source"], "truth_kind", "masks"))
    body = with_box_metric(body, kind)
    return LocalizationPlan(
        body, spec.envelope, scored, validation, findings, models, study_models, options, kind, remark
    )  # fmt: skip


def _placed(choice: MethodChoice, rules: Rules) -> MethodChoice:
    """The methods, with coarse maps placed as the rules have it."""
    if rules.placement != "plain":
        return choice
    placed = {
        name: method.placed_plainly() if isinstance(method, OnFeatureMap) else method
        for name, method in choice.methods.items()
    }
    return replace(choice, methods=placed)
