"""Study: does a map of several modalities give each its due, and find the feature inside it?"""

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
from heatcheck.explaining.dry_run import extra_inputs_for, methods_with_batch, require_other_patients, try_out
from heatcheck.explaining.methods import built_methods
from heatcheck.fitting.contract import require_classes
from heatcheck.fitting.folds import Fold, read_folds, stratified_folds
from heatcheck.fitting.networks import new_network, open_network
from heatcheck.fitting.stage import FitStage
from heatcheck.methods import shares_modalities
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import usable_device
from heatcheck.running.identity import DataIdentity, study_identity, weights_hash_of
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.stats.shapley import Coalitions, coalitions
from heatcheck.studies.modality.cases import MaskRule, ModalData, data_of, limited, under_pseudonyms
from heatcheck.studies.modality.estimates import modality_estimates, rated_cases
from heatcheck.studies.modality.explaining import ModalExplainer
from heatcheck.studies.modality.facts import fold_facts, left_out, modality_run_facts
from heatcheck.studies.modality.gallery import NiftiMaps, illustrate_modality
from heatcheck.studies.modality.importance import importances
from heatcheck.studies.modality.networks import IMAGES, FoldNetworks, FoldTrainer
from heatcheck.studies.modality.ratings import Ratings, read_ratings
from heatcheck.studies.modality.scores import MapScorer, RemovalTest
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.shapley import CaseSettings, FoldCases, ShapleyStage
from heatcheck.studies.modality.spec import ModalityBody, classes_of, modalities_of, require_known, require_sound
from heatcheck.studies.modality.stage import Judging, ModalMapsStage
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
    methods: Mapping[str, Method]
    contract: Preprocessing
    given: NetworkClassifier | None
    options: RunOptions

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
        """By modality: cases on which it alone tells the class."""
        return self.data.known

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Who is trained on and who is tested, as places in the source's index."""
        return self.data.folds

    @property
    def model(self) -> str:
        """What tables call the network."""
        return self.body.model.key

    @property
    def identity(self) -> Mapping[str, Any]:
        """The resolved spec, the weights and the cases."""
        weights = weights_hash_of(self.given) if self.given else ""
        contract = self.contract.model_dump(mode="json")
        data = DataIdentity.of_sources([self.source, *self.known.values()])
        return {
            **study_identity(self.envelope, self.body, self.options, weights, contract, data),
            "folds_hash": hashlib.sha256(repr([fold.test for fold in self.folds]).encode()).hexdigest(),
        }

    @property
    def facts(self) -> Mapping[str, Any]:
        """Names and explanations for the report."""
        return modality_run_facts(self)

    @cached_property
    def coalitions(self) -> Coalitions:
        """The subsets of the modalities that are shown."""
        return coalitions(len(self.modalities), self.body.permutations, self.envelope.seed)

    @property
    def shared(self) -> frozenset[str]:
        """The methods that make one map for all modalities by their nature."""
        return frozenset(name for name, method in self.methods.items() if shares_modalities(method))

    @property
    def rule(self) -> ModalitySettings:
        """What is estimated."""
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
            seed=self.envelope.seed,
        )

    @property
    def seen(self) -> CaseSettings:
        """How cases are seen."""
        rule = MaskRule(self.body.masks, self.body.boxes, self.body.dilate)
        return CaseSettings(
            self.modalities,
            self.classes,
            rule,
            self.envelope.batch_size,
            self.envelope.shard_size,
            self.options.workers,
            self.envelope.seed,
        )

    def tested(self, fold: Fold) -> FoldCases:
        """The cases that the network of a fold is tested on."""
        keys = self.source.index()
        return FoldCases(fold.number, self.source, [keys[place] for place in fold.test])

    def networks(self, folder: RunFolder) -> FoldNetworks:
        """The networks of the folds."""
        return FoldNetworks(self.body, self.contract, folder.path, self.options.device, self.given)

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The folds' networks, where they are trained here; the subsets of the modalities; the maps."""
        networks = self.networks(folder)
        if self.given is None:
            machine = replace(Machine(self.options.device), workers=self.options.workers)
            trainer = FoldTrainer(networks, self.source, self.envelope.seed, machine, watcher)
            training = FitStage([trainer.task(fold) for fold in self.folds])
            yield training
            training.remove_states()
            shutil.rmtree(folder.path / IMAGES, ignore_errors=True)
        folder.record(**fold_facts(self, folder))
        tested = [self.tested(fold) for fold in self.folds]
        known = [
            FoldCases(fold.number, source, limited(source.index(), self.classes, self.options.limit), modality)
            for fold in self.folds
            for modality, source in self.known.items()
        ]
        yield ShapleyStage(networks, [*tested, *known], self.seen, self.coalitions.members, self.body.fills)
        yield ModalMapsStage(
            tested,
            self.seen,
            _Judges(self, folder, networks, watcher),
            failed=ShapleyStage.failures(folder),
            keep=folder.write_maps if self.envelope.keep_maps == "all" else None,
            export=NiftiMaps(folder.path, self.modalities) if self.body.nifti == "all" else None,
        )

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """The modalities' worth, means, floors, ranks and what readers say."""
        self._keep_ratings(folder)
        return modality_estimates(folder.path, self.rule)

    @property
    def ratings(self) -> Ratings | None:
        """What readers say, of cases as the run calls them; None where the spec names no ratings."""
        if self.body.ratings is None:
            return None
        read = read_ratings(self.spec.folder / self.body.ratings, self.data.names, tuple(self.methods))
        return read.renamed(self.data.names)

    def _keep_ratings(self, folder: RunFolder) -> None:
        """Put the ratings of cases that have maps into the run's folder, and note how many others there are."""
        every = self.ratings
        if every is None:
            return
        kept = every.only(rated_cases(folder.path, self.rule))
        if kept.rows:
            kept.save(folder.path)
            folder.record(**kept.facts)
        if len(kept.rows) < len(every.rows):
            folder.record(notes=[left_out(len(every.rows) - len(kept.rows)), *self.facts["notes"]])

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Telling cases with every method's map of every modality."""
        judges = _Judges(self, folder, self.networks(folder), watcher)
        illustrate_modality(self, folder, judges, watcher)


@dataclass
class _Judges:
    """What the maps of a fold are made and scored with; the last one is kept."""

    plan: ModalityPlan
    folder: RunFolder
    networks: FoldNetworks
    watcher: Watcher
    _fold: int = 0
    _judging: Judging | None = None

    def __call__(self, fold: int) -> Judging:
        if self._judging is None or self._fold != fold:
            self._fold, self._judging = fold, self._made(fold)
        return self._judging

    def _made(self, fold: int) -> Judging:
        plan = self.plan
        bare = ModalExplainer(self.networks.classifier(fold), plan.methods, plan.envelope.seed)
        tested = plan.tested(next(each for each in plan.folds if each.number == fold))
        explainer = replace(
            bare,
            extra_inputs=extra_inputs_for(bare, tested.source, tested.keys, self.watcher),
            methods=methods_with_batch(bare, self.folder),
        )
        found = importances(self.folder.path, fold, plan.rule)
        removal = plan.body.removal
        return Judging(
            explainer,
            MapScorer(plan.modalities, found, plan.model, fold),
            RemovalTest(
                explainer.classifier, removal.steps, removal.random, 4 * plan.envelope.batch_size, plan.envelope.seed
            )
            if removal
            else None,
            plan.shared,
        )


def plan_modality(spec: Spec, options: RunOptions, out: Path) -> ModalityPlan:
    """The study, with everything checked that can be known before work starts."""
    body = spec.checked_body(ModalityBody)
    methods = built_methods(body.methods, spec.name)
    require_sound(body, spec.name)
    source = open_source(body.source, spec.folder, spec.name)
    modalities, classes = modalities_of(body, source, spec.name), classes_of(source, spec.name)
    known = {part.modality: open_source(part.source, spec.folder, spec.name) for part in body.known}
    given = _given(body, spec, options)
    folds = _folds(body, spec, source.index(), classes, trained=given is None)
    contract = _contract(body, given, classes, modalities, spec.name)
    require_known(known, source, len(contract.size), spec.name)
    data = data_of(source, known, folds, options.limit)
    if options.pseudonymise:
        data = under_pseudonyms(data, out, options.limit)
    plan = ModalityPlan(body, spec, data, modalities, classes, methods, contract, given, options)
    _ = plan.ratings  # refused here if they are not what they should be
    _try_out(plan)
    return plan


def _given(body: ModalityBody, spec: Spec, options: RunOptions) -> NetworkClassifier | None:
    """The network, where it comes with weights; None where the folds' are trained here."""
    settings = body.model
    if not settings.has_weights:
        MODELS[settings.name]  # raises with a suggestion
        if body.folds is None:
            raise SpecError(
                f"{spec.name}: model {settings.name} comes without weights; name `weights`, or `folds: 5` to train it"
            )
        return None
    if body.folds is not None:
        raise SpecError(f"{spec.name}: the model comes with weights and is not trained here; leave `folds` out")
    return replace(open_network(settings, spec, options, "this study explains one network"), name=settings.key)


def _folds(
    body: ModalityBody, spec: Spec, keys: Sequence[CaseKey], classes: Sequence[str], *, trained: bool
) -> tuple[Fold, ...]:
    """The folds, of which a given network has one: all cases are tested."""
    if not trained or body.folds is None:
        return (Fold(1, (), (), tuple(range(len(keys)))),)
    seed, share = spec.envelope.seed, body.validation_share
    made = (
        stratified_folds(keys, classes, body.folds, seed, share)
        if isinstance(body.folds, int)
        else read_folds(spec.folder / body.folds, keys, classes, seed, share)
    )
    for fold in made:
        Batches(len(fold.training), body.fit.batch_size, 0)  # refuses what it must
    return made


def _contract(
    body: ModalityBody, given: NetworkClassifier | None, classes: Sequence[str], modalities: Sequence[str], where: str
) -> Preprocessing:
    """What the networks expect: their classes and channels must be those of the data."""
    if given is not None:
        own = given.preprocessing
        remedy = "this study needs classes: correct the contract, or train the network here with `folds`"
        require_classes(given, classes, remedy, where)
        if own.channels != len(modalities):
            raise SpecError(
                f"{where}: the model has {own.channels} channels, and there are {len(modalities)} modalities "
                f"({', '.join(modalities)}); they must be as many"
            )
        return own
    size = MODELS[body.model.name].checked_size(body.size)
    pixels = body.pixels
    if body.fit.rotate and len(size) != 2:
        raise SpecError(f"{where}: `fit.rotate` turns pictures, and the network takes volumes; leave it out")
    if pixels.said_channels not in (None, len(modalities)):
        raise SpecError(
            f"{where}: `pixels` speaks of {pixels.said_channels} channels, and there are {len(modalities)} modalities "
            f"({', '.join(modalities)}); they must be as many"
        )
    return Preprocessing(
        outputs=tuple(classes),
        size=size,
        channels=len(modalities),
        **pixels.scale(),
        activation="softmax",
    )


def _try_out(plan: ModalityPlan) -> None:
    """Ask each method for one map, of the given network or of an untrained one."""
    classifier = plan.given
    if classifier is None:
        module = new_network(plan.body.model.name, plan.contract).to(usable_device(plan.options.device))
        classifier = NetworkClassifier(plan.model, module.eval(), plan.contract)
    explainer = ModalExplainer(classifier, plan.methods, plan.envelope.seed)
    for fold in plan.folds:
        require_other_patients(explainer, plan.tested(fold).keys)
    try_out(explainer)
