"""Study: the model is made to rely on a planted patch; do the methods find it?"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import CaseKey, CaseRecord, Estimate
from heatcheck.core.registry import suggest
from heatcheck.explaining.batch import Explainer
from heatcheck.explaining.dry_run import extra_inputs_for, methods_with_batch, require_other_patients, try_out
from heatcheck.explaining.methods import built_methods
from heatcheck.fitting.networks import new_network
from heatcheck.fitting.spec import require_apart
from heatcheck.fitting.stage import FitStage
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.load import usable_device
from heatcheck.running.identity import DataIdentity, study_identity, weights_hash_of
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers.baseline import contract_of, given_baseline
from heatcheck.studies.triggers.estimates import TriggerSettings, trigger_estimates
from heatcheck.studies.triggers.exams import ArtefactExam, EvaluationSettings, TriggerEvaluation
from heatcheck.studies.triggers.facts import triggers_manifest
from heatcheck.studies.triggers.gallery import make_trigger_gallery
from heatcheck.studies.triggers.gate import Gate, outcomes
from heatcheck.studies.triggers.images import channels_of, grid_images
from heatcheck.studies.triggers.networks import Network, NetworkTests, Splits, TriggerNetworks
from heatcheck.studies.triggers.scores import Detector
from heatcheck.studies.triggers.spec import (
    OWN_CHANNELS,
    TriggersBody,
    classes_of,
    require_enough,
    require_marked,
    require_sound,
    target_of,
)
from heatcheck.studies.triggers.stage import MapsStage
from heatcheck.studies.triggers.vocabulary import TriggersManifest
from heatcheck.training import Machine
from heatcheck.training.batches import Batches
from heatcheck.triggers import Trigger, build_trigger

IMAGES = "images"  # the folder of prepared images, while the run is under way
SPLITS = ("training", "validation", "test")
PAIRS = (("mutual_information", "normalised_mutual_information"), ("cross_correlation",), ("ssim",), ("ssim_global",))
PAPER_PAIR = ("mutual_information_paper",)


@dataclass(frozen=True)
class TriggersPlan:
    """A trigger study, checked and ready."""

    body: TriggersBody
    spec: Spec
    sources: Mapping[str, Source]  # training, validation and test, or none of them
    artefacts: Source | None
    triggers: tuple[Trigger, ...]
    methods: Mapping[str, Method]
    contract: Preprocessing
    target: str  # empty where nothing is planted
    given: NetworkClassifier | None
    options: RunOptions

    @property
    def envelope(self) -> Envelope:
        """The common part of the spec."""
        return self.spec.envelope

    @property
    def model(self) -> str:
        """What tables call the architecture."""
        return self.body.model.key

    @property
    def networks(self) -> list[Network]:
        """Seed by seed, each baseline before its victims."""
        if not self.triggers:
            return []
        each = (None, *self.triggers)
        return [Network(seed, trigger) for seed in range(1, self.body.seeds + 1) for trigger in each]

    @property
    def identity(self) -> Mapping[str, Any]:
        """The resolved spec, the weights and the cases."""
        contract = self.contract.model_dump(mode="json")
        artefacts = [self.artefacts] if self.artefacts else []
        data = DataIdentity.of_sources([*self.sources.values(), *artefacts])
        return study_identity(self.envelope, self.body, self.options, self._weights_hash(), contract, data)

    def _weights_hash(self) -> str:
        if self.given is not None:
            return weights_hash_of(self.given)
        return hashlib.sha256(self.start.read_bytes()).hexdigest() if self.start else ""

    @property
    def start(self) -> Path | None:
        """The weights with which a baseline begins."""
        return self.spec.folder / self.body.start if self.body.start else None

    @property
    def facts(self) -> Mapping[str, Any]:
        """Names and explanations for the report."""
        return triggers_manifest(self).facts()

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The networks, where triggers are planted; then the maps of the images on which the attacks worked."""
        exams: list[TriggerEvaluation | ArtefactExam] = []
        records: list[CaseRecord] = []
        networks = self._trained(folder, watcher) if self.triggers else None
        grading = self._grading(folder, watcher)
        if networks is not None:
            tests = NetworkTests(networks, self.model)
            training = FitStage([tests.task(network) for network in self.networks])
            yield training
            training.remove_states()
            exams += self._trigger_exams(networks, folder, grading)
            records += networks.splits.records()
            folder.record(**TriggersManifest(n_poisoned=len(networks.attacked)).facts())
        if self.artefacts is not None:
            exams += self._artefact_exams(networks, grading)
            records += [CaseRecord(key.case, key.patient, "ok") for key in self._artefact_keys]
        yield MapsStage(
            exams,
            lambda: records,
            self.envelope.batch_size,
            self.envelope.shard_size,
            keeps_maps=self.envelope.keep_maps == "all",
        )

    def _trained(self, folder: RunFolder, watcher: Watcher) -> TriggerNetworks:
        """The networks, with the images on the model's grid."""
        splits = [
            grid_images(
                self.sources[name], self.contract, folder.path / IMAGES / f"{name}.npy", watcher, self.options.workers
            )
            for name in SPLITS
        ]
        for name, images in zip(SPLITS, splits, strict=True):
            if not images.readable.any():
                raise SpecError(f"{self.spec.name}: none of the {name} images can be read; check the source")
        return TriggerNetworks(
            self.body,
            self.envelope.seed,
            self.contract,
            self.contract.outputs.index(self.target),
            Splits(*splits),
            folder.path,
            Machine(self.options.device),
            watcher,
            given=self.given,
            start=self.start,
        )

    def _grading(self, folder: RunFolder, watcher: Watcher) -> EvaluationSettings:
        def explainer(classifier: NetworkClassifier) -> Explainer:
            bare = self._explainer(classifier)
            source = self.sources.get("test") or self.artefacts
            extra_inputs = () if source is None else extra_inputs_for(bare, source, source.index(), watcher)
            return replace(bare, methods=methods_with_batch(bare, folder), extra_inputs=extra_inputs)

        pairs = (*PAIRS, PAPER_PAIR) if self.body.paper_mutual_information else PAIRS
        return EvaluationSettings(self.model, self.envelope.seed, self.detector, pairs, explainer)

    @property
    def detector(self) -> Detector:
        """How boxes are looked for."""
        return Detector(self.body.detection)

    def _explainer(self, classifier: NetworkClassifier) -> Explainer:
        finding = self.target or classifier.outputs[0]
        channels = self.body.own_channels
        return Explainer(classifier, (finding,), self.methods, "positive", self.envelope.seed, own_channels=channels)

    @property
    def gate(self) -> Gate:
        """When an attack counts as successful."""
        return Gate(**self.body.gate.model_dump())

    def _trigger_exams(
        self, networks: TriggerNetworks, folder: RunFolder, grading: EvaluationSettings
    ) -> list[TriggerEvaluation]:
        """The victims whose attack worked, each with the images on which it did."""
        found = outcomes(folder.within("training").path)
        places = {networks.splits.test.keys[place].case: place for place in networks.attacked.tolist()}
        exams = []
        for network in self.networks:
            outcome = found.get((network.name, network.seed))
            if network.trigger is None or outcome is None or self.gate.why_not(outcome):
                continue
            fallen = [places[case] for case in outcome.fallen if case in places][: self.options.limit]
            exams.append(TriggerEvaluation(network, networks, fallen, grading))
        return exams

    @cached_property
    def _artefact_keys(self) -> Sequence[CaseKey]:
        return self.artefacts.index()[: self.options.limit] if self.artefacts else []

    def _artefact_exams(self, networks: TriggerNetworks | None, grading: EvaluationSettings) -> list[ArtefactExam]:
        if self.artefacts is None:
            return []

        def network() -> NetworkClassifier:
            if self.given is not None:
                return self.given
            if networks is None:
                raise SpecError(f"{self.spec.name}: `artefacts` alone need a model with weights")
            return networks.classifier(Network(1))

        target = self.body.target
        return [
            ArtefactExam(name, self.artefacts, self._artefact_keys, network, grading, target)
            for name in self.artefacts.findings
        ]

    @property
    def rule(self) -> TriggerSettings:
        """What is estimated."""
        return TriggerSettings(
            triggers=tuple(trigger.name for trigger in self.triggers),
            artefacts=tuple(self.artefacts.findings) if self.artefacts else (),
            methods=tuple(self.methods),
            model=self.model,
            seeds=self.body.seeds,
            gate=self.gate,
            draws=self.body.bootstrap_draws,
            seed=self.envelope.seed,
        )

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """Attack rates, means, floors, ranks and agreement."""
        return trigger_estimates(folder.path, self.rule)

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Telling images with every method's map, box and recovered image; then what only the work needed goes."""
        if not self.triggers:
            return
        networks = self._trained(folder, watcher)
        exams = self._trigger_exams(networks, folder, self._grading(folder, watcher))
        make_trigger_gallery(folder, exams, self.envelope, watcher)
        shutil.rmtree(folder.path / IMAGES)  # a folder that is passed on must not hold every image


def plan_triggers(spec: Spec, options: RunOptions, out: Path) -> TriggersPlan:
    """The study, with everything checked that can be known before work starts."""
    body = spec.checked_body(TriggersBody)
    methods = built_methods(body.methods, spec.name, (OWN_CHANNELS,))
    require_sound(body, spec.name)
    triggers = tuple(build_trigger(part) for part in body.triggers)
    _require_own_names(triggers, spec.name)
    parts = {name: getattr(body, name) for name in SPLITS} if triggers else {}
    sources = {name: open_source(part, spec.folder, spec.name) for name, part in parts.items()}
    artefacts = open_source(body.artefacts, spec.folder, spec.name) if body.artefacts else None
    if artefacts is not None:
        require_marked(artefacts, spec.name)
    classes = classes_of(sources, spec.name) if sources else ()
    target = target_of(body, classes, sources, spec.name) if sources else ""
    if sources:
        require_apart(sources, spec.name)
        require_enough(body, sources["training"].index(), target, spec.name)
    given = given_baseline(body, spec, options)
    if given is not None and body.target and body.target not in given.outputs:
        near = suggest(body.target, given.outputs)
        raise SpecError(f"{spec.name}: `target` {body.target!r} is no output of the model; {near}")
    first = sources.get("training") or artefacts
    channels = channels_of(first) if first is not None else 1
    contract = contract_of(body, (classes, channels), given, spec.name)
    if channels not in (1, contract.channels):
        raise SpecError(
            f"{spec.name}: the images have {channels} channels, the model {contract.channels}; "
            f"set `pixels: {{channels: {channels}}}`, or `colour: grey` in the source"
        )
    for trigger in triggers:
        trigger.require_fit(contract.size)
    if triggers:
        fits = {"retrain": body.retrain} if given is not None else {"fit": body.fit, "retrain": body.retrain}
        for name, part in fits.items():
            _require_batches(len(sources["training"].index()), part.batch_size, f"{spec.name}: `{name}`")
    if options.pseudonymise:
        sources = {name: pseudonymous(source, source.index(), out) for name, source in sources.items()}
        artefacts = pseudonymous(artefacts, artefacts.index(), out) if artefacts else None
    plan = TriggersPlan(body, spec, sources, artefacts, triggers, methods, contract, target, given, options)
    _try_out(plan)
    return plan


def _require_batches(images: int, size: int, where: str) -> None:
    """Refuse batches that the training images do not fill; `where` names the part of the spec."""
    try:
        Batches(images, size, 0)
    except InputError as error:
        raise SpecError(f"{where}: {error}") from error


def _require_own_names(triggers: Sequence[Trigger], where: str) -> None:
    names = [trigger.name for trigger in triggers]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), "")
    if twice:
        raise SpecError(f"{where}: two triggers are called {twice!r}; give one of them a `name` of its own")
    if "baseline" in names:
        raise SpecError(f"{where}: a trigger cannot be called 'baseline'; that is the model before the attack")


def _try_out(plan: TriggersPlan) -> None:
    """Ask each method for one map, of the given baseline or of an untrained one."""
    classifier = plan.given
    if classifier is None:
        module = new_network(plan.body.model.name, plan.contract, start=plan.start)  # refuses another network's start
        classifier = NetworkClassifier(plan.model, module.to(usable_device(plan.options.device)).eval(), plan.contract)
    explainer = plan._explainer(classifier)  # noqa: SLF001 - of the same file
    source = plan.sources.get("test") or plan.artefacts
    if source is not None:
        require_other_patients(explainer, source.index())
    try_out(explainer)
