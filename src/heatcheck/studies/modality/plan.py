"""Study: do maps of several modalities reflect the importance of each, and mark the lesion in it?"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import SpecError
from heatcheck.core.records import CaseKey, Estimate
from heatcheck.explaining.dry_run import extra_inputs_for, methods_with_batch, tried_on
from heatcheck.explaining.first_look.look import Sample, first_look
from heatcheck.explaining.first_look.preview import Given, write_preview
from heatcheck.explaining.methods import MethodChoice, MethodRules, chosen_methods
from heatcheck.explaining.study_models import StudyModel
from heatcheck.fitting.folds import Fold, read_folds, stratified_folds
from heatcheck.fitting.networks import new_network
from heatcheck.fitting.stage import FitStage
from heatcheck.methods import shares_modalities
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.load import read_weights, usable_device
from heatcheck.running.cases import limited
from heatcheck.running.cost import Cost
from heatcheck.running.identity import DataIdentity, study_identity, weights_hash_of
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.stats.shapley import Coalitions, coalitions
from heatcheck.studies.modality.cases import MaskRule, ModalData, data_of, under_pseudonyms
from heatcheck.studies.modality.cost import modality_cost
from heatcheck.studies.modality.estimates import modality_estimates, rated_cases
from heatcheck.studies.modality.estimating.importance import importances
from heatcheck.studies.modality.explaining import ModalExplainer
from heatcheck.studies.modality.facts import fold_facts, left_out, modality_run_facts
from heatcheck.studies.modality.floors import Floors, floors_of
from heatcheck.studies.modality.gallery import NiftiMaps, illustrate_modality
from heatcheck.studies.modality.networks import (
    IMAGES,
    FoldNetworks,
    FoldTrainer,
    contract_of,
    given_network,
    opened_network,
)
from heatcheck.studies.modality.ratings import Ratings, read_ratings
from heatcheck.studies.modality.scores import MapScorer, RemovalTest
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.shapley import CaseSettings, FoldCases, ShapleyStage
from heatcheck.studies.modality.spec import ModalityBody, classes_of, modalities_of, require_known, require_sound
from heatcheck.studies.modality.stage import FoldEvaluation, ModalMapsStage
from heatcheck.studies.modality.vocabulary import PLAIN
from heatcheck.training import Machine
from heatcheck.training.batches import Batches


@dataclass(frozen=True)
class ModalityPlan:
    """A modality study, checked and ready."""

    body: ModalityBody
    spec: Spec
    data: ModalData
    modalities: tuple[str, ...]
    classes: tuple[str, ...]
    choice: MethodChoice
    contract: Preprocessing
    given: NetworkClassifier | None
    options: RunOptions
    given_plain: NetworkClassifier | None = None  # a network like it from which no modality was hidden
    cautions: tuple[str, ...] = ()  # of a first look at images and model

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods that are judged."""
        return self.choice.methods

    @property
    def envelope(self) -> Envelope:
        """The common part of the spec."""
        return self.spec.envelope

    @property
    def source(self) -> Source:
        """The cases."""
        return self.data.source

    @property
    def known(self) -> Mapping[str, Source]:
        """By modality: cases in which only it is informative."""
        return self.data.known

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Training, validation and test cases, as positions in the source's index."""
        return self.data.folds

    @property
    def model(self) -> str:
        """The name of the network in tables."""
        return self.body.model.key

    @property
    def identity(self) -> Mapping[str, Any]:
        """The resolved spec, the weights and the cases."""
        contract = self.contract.model_dump(mode="json")
        data = DataIdentity.of_sources([self.source, *self.known.values()])
        return {
            **study_identity(self.envelope, self.body, self.options, self._weights_hash(), contract, data),
            "folds_hash": hashlib.sha256(
                repr([(fold.validation, fold.test) for fold in self.folds]).encode()
            ).hexdigest(),
        }

    def _weights_hash(self) -> str | list[str]:
        if self.given is None:
            return read_weights(self.start).digest if self.start else ""
        hashes = [weights_hash_of(each) for each in (self.given, self.given_plain) if each]
        return hashes if self.given_plain else hashes[0]

    @property
    def start(self) -> Path | None:
        """The weights with which every fold begins."""
        return self.spec.folder / self.body.start if self.body.start else None

    @property
    def facts(self) -> Mapping[str, Any]:
        """The manifest, as far as it is known before work starts."""
        return modality_run_facts(self)

    @cached_property
    def coalitions(self) -> Coalitions:
        """The subsets of the modalities that are shown."""
        return coalitions(len(self.modalities), self.body.permutations, self.envelope.seed)

    @property
    def shared(self) -> frozenset[str]:
        """The methods that make one map for all modalities."""
        return frozenset(name for name, method in self.methods.items() if shares_modalities(method))

    @property
    def settings(self) -> ModalitySettings:
        """What is estimated, and how."""
        return ModalitySettings(
            modalities=self.modalities,
            classes=self.classes,
            methods=tuple(self.methods),
            folds=tuple(fold.number for fold in self.folds),
            fills=self.body.fills,
            measure=self.body.measure,
            weights=self.body.weights,
            importance=self.body.importance,
            known=tuple(self.known),
            model=self.model,
            coalitions=self.coalitions,
            draws=self.body.bootstrap_draws,
            sizes=self.body.sizes,
            seed=self.envelope.seed,
        )

    @property
    def case_settings(self) -> CaseSettings:
        """How cases are read."""
        return CaseSettings(
            self.modalities,
            MaskRule(self.body.masks, self.body.boxes, self.body.dilate),
            self.envelope.batch_size,
            self.envelope.shard_size,
            self.options.workers,
            self.envelope.seed,
        )

    def tested(self, fold: Fold) -> FoldCases:
        """The cases that the network of a fold is tested on."""
        keys = self.source.index()
        return FoldCases(fold.number, self.source, [keys[index] for index in fold.test])

    def networks(self, folder: RunFolder) -> FoldNetworks:
        """The networks of the folds."""
        return FoldNetworks(self.body, self.contract, folder.path, self.options.device, self.given, self.start)

    def plain_networks(self, networks: FoldNetworks) -> FoldNetworks | None:
        """The same networks with no modality hidden in training; None where the spec asks for none."""
        if not self.body.plain:
            return None
        fit = self.body.fit.model_copy(update={"hide": 0.0})
        body = self.body.model_copy(update={"fit": fit})
        return replace(networks, body=body, given=self.given_plain, prefix=PLAIN)

    @property
    def tested_cases(self) -> list[FoldCases]:
        """The cases that each fold's network is tested on."""
        return [self.tested(fold) for fold in self.folds]

    @property
    def known_cases(self) -> list[FoldCases]:
        """For each fold's network, the cases in which only one modality is informative."""
        return [
            FoldCases(fold.number, source, limited(source.index(), self.classes, self.options.limit), modality)
            for fold in self.folds
            for modality, source in self.known.items()
        ]

    def preview(self, folder: RunFolder) -> None:
        """Write what the network of the first fold is given of its test cases."""
        sample = Sample(self.source, self.tested(self.folds[0]).keys, self.classes)
        write_preview(folder, [Given(sample, self.contract)])

    def cost(self, folder: RunFolder) -> Cost:
        """The networks to train, and the cases to show with each subset and to explain."""
        return modality_cost(self, folder)

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The folds' networks, where they are trained here; the subsets of the modalities; the maps."""
        networks = self.networks(folder)
        plain = self.plain_networks(networks)
        if self.given is None:
            machine = replace(Machine(self.options.device), workers=self.options.workers)
            trainers = [
                FoldTrainer(each, self.source, self.envelope.seed, machine, watcher)
                for each in (networks, plain)
                if each
            ]
            training = FitStage([trainer.task(fold) for trainer in trainers for fold in self.folds])
            yield training
            training.remove_states()
            shutil.rmtree(folder.path / IMAGES, ignore_errors=True)
        folder.record(**fold_facts(self, folder))
        tested, shown = self.tested_cases, [*self.tested_cases, *self.known_cases]
        subsets = ShapleyStage(networks, shown, self.case_settings, self.coalitions.members, self.body.fills)
        yield subsets
        if plain:
            what = f"{subsets.what}, plain networks"
            yield replace(subsets, networks=plain, tested=tested, fills=self.body.fills[:1], name=PLAIN, what=what)
        yield ModalMapsStage(
            tested,
            self.case_settings,
            _FoldEvaluations(self, folder, networks, watcher),
            failed=ShapleyStage.failures(folder),
            keep=folder.write_maps if self.envelope.keep_maps == "all" else None,
            export=NiftiMaps(folder.path, self.modalities) if self.body.nifti == "all" else None,
        )

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """Importances, means, differences from the floor, ranks, and ratings."""
        self._store_ratings(folder)
        return modality_estimates(folder.path, self.settings)

    @property
    def ratings(self) -> Ratings | None:
        """The readers' ratings, with the names that cases have in the run; None where the spec names no ratings."""
        if self.body.ratings is None:
            return None
        ratings = read_ratings(self.spec.folder / self.body.ratings, self.data.names, tuple(self.methods))
        return ratings.renamed(self.data.names)

    def _store_ratings(self, folder: RunFolder) -> None:
        """Store the ratings of cases that have maps in the run's folder, and note how many others there are."""
        ratings = self.ratings
        if ratings is None:
            return
        used = ratings.only(rated_cases(folder.path, self.settings))
        if used.rows:
            used.save(folder.path)
            folder.record(**used.facts)
        if len(used.rows) < len(ratings.rows):
            folder.record(notes=[left_out(len(ratings.rows) - len(used.rows)), *self.facts["notes"]])

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Draw some cases with every method's map of every modality."""
        evaluations = _FoldEvaluations(self, folder, self.networks(folder), watcher)
        illustrate_modality(self, folder, evaluations, watcher)


@dataclass
class _FoldEvaluations:
    """What the maps of each fold are made and scored with; only the last fold's is kept in memory."""

    plan: ModalityPlan
    folder: RunFolder
    networks: FoldNetworks
    watcher: Watcher
    _fold: int = 0
    _last: FoldEvaluation | None = None

    def __call__(self, fold: int) -> FoldEvaluation:
        if self._last is None or self._fold != fold:
            self._fold, self._last = fold, self._new(fold)
        return self._last

    @cached_property
    def _floors(self) -> Floors:
        """The same for all folds: a lesion's usual place is that in all other patients."""
        plan = self.plan
        keys = [key for fold in plan.folds for key in plan.tested(fold).keys]
        return floors_of(plan.source, keys, plan.modalities, plan.case_settings.masks, self.watcher)

    def _new(self, fold: int) -> FoldEvaluation:
        plan, seed = self.plan, self.plan.envelope.seed
        plain = ModalExplainer(self.networks.classifier(fold), plan.methods, seed, plan.body.map_order)
        tested = plan.tested(next(each for each in plan.folds if each.number == fold))
        explainer = replace(
            plain,
            extra_inputs=extra_inputs_for(plain, tested.source, tested.keys, self.watcher),
            methods=methods_with_batch(plain, self.folder),
        )
        found = importances(self.folder.path, fold, plan.settings)
        scorer = MapScorer(plan.modalities, found, plan.model, fold, self._floors)
        part, batch_size = plan.body.removal, 4 * plan.envelope.batch_size
        removal = RemovalTest(explainer.classifier, part.steps, part.random, batch_size, seed) if part else None
        return FoldEvaluation(explainer, scorer, removal, plan.shared)


def plan_modality(spec: Spec, options: RunOptions, out: Path) -> ModalityPlan:
    """The study, checked as far as is possible before work starts."""
    body = spec.checked_body(ModalityBody)
    rules = MethodRules(lambda facts: not facts.wants_priors, strict=spec.envelope.strict)
    choice = chosen_methods(body.methods, spec.name, rules)
    body = body.model_copy(update={"methods": choice.parts})
    require_sound(body, spec.name)
    source = open_source(body.source, spec.folder, spec.name)
    modalities, classes = modalities_of(body, source, spec.name), classes_of(source, spec.name)
    known = {part.modality: open_source(part.source, spec.folder, spec.name) for part in body.known}
    given = given_network(body, spec, options)
    plain = opened_network(body.plain, spec, options) if isinstance(body.plain, StudyModel) else None
    folds = _folds(body, spec, source.index(), classes, trained=given is None)
    contract = contract_of(body, given, classes, modalities, spec.name)
    if plain is not None and contract_of(body, plain, classes, modalities, spec.name) != contract:
        raise SpecError(f"{spec.name}: `plain` must take the same images as the model; choose another one")
    require_known(known, source, len(contract.size), spec.name)
    data = data_of(source, known, folds, options.limit)
    if options.pseudonymise:
        data = under_pseudonyms(data, out, options.limit)
    plan = _tried_out(ModalityPlan(body, spec, data, modalities, classes, choice, contract, given, options, plain))
    _ = plan.ratings  # a damaged file is refused before work starts
    return plan


def _folds(
    body: ModalityBody, spec: Spec, keys: Sequence[CaseKey], classes: Sequence[str], *, trained: bool
) -> tuple[Fold, ...]:
    """The folds; a given network has one, in which all cases are tested."""
    if not trained or body.folds is None:
        return (Fold(1, (), (), tuple(range(len(keys)))),)
    seed, share = spec.envelope.seed, body.validation_share
    folds = (
        stratified_folds(keys, classes, body.folds, seed, share)
        if isinstance(body.folds, int)
        else read_folds(spec.folder / body.folds, keys, classes, seed, share)
    )
    for fold in folds:
        Batches(len(fold.training), body.fit.batch_size, 0)  # refuses too few cases
    return folds


def _tried_out(plan: ModalityPlan) -> ModalityPlan:
    """The plan with what a first look shows, and with the methods that explain the given or an untrained network."""
    classifier = plan.given
    if classifier is None:
        # refuses a start of another architecture
        module = new_network(plan.body.model.name, plan.contract, start=plan.start)
        classifier = NetworkClassifier(plan.model, module.to(usable_device(plan.options.device)).eval(), plan.contract)
    sample = Sample(plan.source, plan.tested(plan.folds[0]).keys, plan.classes)
    cautions = first_look(sample, plan.contract, plan.model, plan.given)
    choice = tried_on(plan.choice, classifier, *(plan.tested(fold).keys for fold in plan.folds)).settled()
    body = plan.body.model_copy(update={"methods": choice.parts})
    return replace(plan, choice=choice, body=body, cautions=cautions)
