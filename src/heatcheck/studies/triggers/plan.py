"""The plan of a trigger study: checked sources, triggers and models, their stages, estimates and pictures."""

import copy
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import CaseKey, CaseRecord, Estimate
from heatcheck.core.registry import suggest
from heatcheck.explaining.batch import Explainer
from heatcheck.explaining.dry_run import extra_inputs_for, methods_with_batch, tried_on
from heatcheck.explaining.first_look.look import Sample, first_look
from heatcheck.explaining.first_look.preview import Given, write_preview
from heatcheck.explaining.methods import MethodChoice, MethodRules, chosen_methods
from heatcheck.fitting.networks import new_network
from heatcheck.fitting.spec import require_apart
from heatcheck.fitting.stage import FitStage
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.models.load import usable_device
from heatcheck.running.cases import limited
from heatcheck.running.cost import Cost
from heatcheck.running.identity import DataIdentity, study_identity, weights_hash_of
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers.baseline import contract_of, given_baseline
from heatcheck.studies.triggers.cost import triggers_cost
from heatcheck.studies.triggers.estimates import trigger_estimates
from heatcheck.studies.triggers.evaluations import ArtefactEvaluation, Evaluation, EvaluationSettings, TriggerEvaluation
from heatcheck.studies.triggers.facts import triggers_manifest
from heatcheck.studies.triggers.gallery import make_trigger_gallery
from heatcheck.studies.triggers.gate import outcomes, why_not_graded
from heatcheck.studies.triggers.images import FOLDER as IMAGES
from heatcheck.studies.triggers.images import channels_of, grid_images
from heatcheck.studies.triggers.networks import Network, Splits, TriggerNetworks, fit_task
from heatcheck.studies.triggers.scores import Detector
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.spec import (
    OWN_CHANNELS,
    TriggersBody,
    classes_of,
    picture_digests,
    require_enough,
    require_marked,
    require_sound,
    target_of,
    with_picture,
)
from heatcheck.studies.triggers.stage import MapsStage
from heatcheck.studies.triggers.vocabulary import BASELINE, TriggersManifest
from heatcheck.training import Machine
from heatcheck.training.batches import Batches
from heatcheck.triggers import Trigger, build_trigger

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
    choice: MethodChoice
    contract: Preprocessing
    target: str  # empty where nothing is planted
    given: NetworkClassifier | None
    options: RunOptions
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
    def model(self) -> str:
        """The architecture's name in the tables."""
        return self.body.model.key

    @property
    def networks(self) -> list[Network]:
        """Seed by seed, each baseline before its poisoned models."""
        if not self.triggers:
            return []
        seeds = range(1, self.body.seeds + 1)
        return [Network(seed, trigger) for seed in seeds for trigger in (None, *self.triggers)]

    @property
    def identity(self) -> Mapping[str, Any]:
        """The resolved spec, the weights and the cases."""
        contract = self.contract.model_dump(mode="json")
        artefacts = [self.artefacts] if self.artefacts else []
        data = DataIdentity.of_sources([*self.sources.values(), *artefacts])
        data = replace(data, stamp=[*data.stamp, *picture_digests(self.triggers)])
        return study_identity(self.envelope, self.body, self.options, self._weights_hash(), contract, data)

    def _weights_hash(self) -> str:
        if self.given is not None:
            return weights_hash_of(self.given)
        return hashlib.sha256(self.start.read_bytes()).hexdigest() if self.start else ""

    @property
    def start(self) -> Path | None:
        """The weights with which a baseline begins."""
        return self.spec.folder / self.body.start if self.body.start else None

    def untrained(self) -> nn.Module:
        """A baseline before its first step, or a copy of the given one."""
        if self.given is not None:
            return copy.deepcopy(self.given.module)
        return new_network(self.body.model.name, self.contract, start=self.start)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Names and explanations for the report."""
        return triggers_manifest(self).facts()

    def preview(self, folder: RunFolder) -> None:
        """Write what the network is given of the test images, before any trigger, and of those with artefacts."""
        sources = {"Test images, before any trigger": self.sources.get("test"), "Images with artefacts": self.artefacts}
        given = [
            Given(Sample(source, source.index(), source.findings), self.contract, label)
            for label, source in sources.items()
            if source is not None
        ]
        write_preview(folder, given)

    def cost(self, folder: RunFolder) -> Cost:
        """The images to prepare, the networks to train, and the images to explain."""
        return triggers_cost(self, folder)

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The networks, where triggers are planted; then the maps of the images on which the attacks worked."""
        evaluations: list[Evaluation] = []
        records: list[CaseRecord] = []
        networks = self._networks(folder, watcher) if self.triggers else None
        settings = self._evaluation_settings(folder, watcher)
        if networks is not None:
            training = FitStage([fit_task(networks, network) for network in self.networks])
            yield training
            training.remove_states()
            evaluations += self._trigger_evaluations(networks, folder, settings)
            records += networks.splits.records()
            folder.record(**TriggersManifest(n_poisoned=len(networks.attacked)).facts())
        if self.artefacts is not None:
            evaluations += self._artefact_evaluations(self.artefacts, networks, settings)
            records += [CaseRecord(key.case, key.patient, "ok") for key in self.artefact_keys]
        yield MapsStage(
            evaluations,
            lambda: records,
            self.envelope.batch_size,
            self.envelope.shard_size,
            keeps_maps=self.envelope.keep_maps == "all",
        )

    def _networks(self, folder: RunFolder, watcher: Watcher) -> TriggerNetworks:
        """The networks, trained or not, with the images on the model's grid."""
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

    def _evaluation_settings(self, folder: RunFolder, watcher: Watcher) -> EvaluationSettings:
        def explainer(classifier: NetworkClassifier) -> Explainer:
            plain = self.explainer(classifier)
            source = self.sources.get("test") or self.artefacts
            extra_inputs = () if source is None else extra_inputs_for(plain, source, source.index(), watcher)
            return replace(plain, methods=methods_with_batch(plain, folder), extra_inputs=extra_inputs)

        return EvaluationSettings(self.model, self.envelope.seed, self.detector, self.pairs, explainer)

    @property
    def pairs(self) -> tuple[tuple[str, ...], ...]:
        """The metrics of two maps, grouped where they share their computation."""
        return (*PAIRS, PAPER_PAIR) if self.body.paper_mutual_information else PAIRS

    @property
    def detector(self) -> Detector:
        """How boxes are detected."""
        return Detector(self.body.detection)

    def explainer(self, classifier: NetworkClassifier) -> Explainer:
        """A network with the methods."""
        finding = self.target or classifier.outputs[0]
        channels = self.body.own_channels
        return Explainer(classifier, (finding,), self.methods, "positive", self.envelope.seed, own_channels=channels)

    def _trigger_evaluations(
        self, networks: TriggerNetworks, folder: RunFolder, settings: EvaluationSettings
    ) -> list[TriggerEvaluation]:
        """The poisoned models whose attack worked, each with the images that it sends to the target."""
        by_network = outcomes(folder.within("training").path)
        keys, classes = networks.splits.test.keys, self.contract.outputs
        positions = {keys[position].case: position for position in networks.attacked.tolist()}
        evaluations = []
        for network in self.networks:
            outcome = by_network.get((network.name, network.seed))
            if network.trigger is None or outcome is None or why_not_graded(self.body.gate, outcome):
                continue
            sent = limited(
                [keys[positions[case]] for case in outcome.sent if case in positions], classes, self.options.limit
            )
            rows = [positions[key.case] for key in sent]
            evaluations.append(TriggerEvaluation(network, networks, rows, settings))
        return evaluations

    @cached_property
    def artefact_keys(self) -> Sequence[CaseKey]:
        """The cases that may show artefacts."""
        source = self.artefacts
        return limited(source.index(), source.findings, self.options.limit) if source else []

    def _artefact_evaluations(
        self, source: Source, networks: TriggerNetworks | None, settings: EvaluationSettings
    ) -> list[ArtefactEvaluation]:
        def network() -> NetworkClassifier:
            if self.given is not None:
                return self.given
            if networks is None:
                raise SpecError(f"{self.spec.name}: `artefacts` alone need a model with weights")
            return networks.classifier(Network(1))

        return [
            ArtefactEvaluation(name, source, self.artefact_keys, network, settings, self.body.target)
            for name in source.findings
        ]

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """Attack rates, means, floors, ranks and agreement."""
        settings = TriggerSettings(
            triggers=tuple(trigger.name for trigger in self.triggers),
            artefacts=tuple(self.artefacts.findings) if self.artefacts else (),
            methods=tuple(self.methods),
            model=self.model,
            gate=self.body.gate,
            draws=self.body.bootstrap_draws,
            sizes=self.body.sizes,
            seed=self.envelope.seed,
        )
        return trigger_estimates(folder.path, settings)

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Draw informative images with every method's map, box and recovered image, and delete the prepared images."""
        if not self.triggers:
            return
        networks = self._networks(folder, watcher)
        evaluations = self._trigger_evaluations(networks, folder, self._evaluation_settings(folder, watcher))
        make_trigger_gallery(folder, evaluations, self.envelope, watcher)
        shutil.rmtree(folder.path / IMAGES)  # a folder that is passed on must not hold every image


def plan_triggers(spec: Spec, options: RunOptions, out: Path) -> TriggersPlan:
    """The study, with every check that is possible before the run starts."""
    body = spec.checked_body(TriggersBody)
    rules = MethodRules(lambda facts: not facts.wants_priors, (OWN_CHANNELS,), spec.envelope.strict)
    choice = chosen_methods(body.methods, spec.name, rules)
    body = body.model_copy(update={"methods": choice.parts})
    require_sound(body, spec.name)
    triggers = tuple(with_picture(build_trigger(part), spec.folder, spec.name) for part in body.triggers)
    _require_distinct_names(triggers, spec.name)
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
        raise SpecError(f"{spec.name}: `target` {body.target!r} is not an output of the model; {near}")
    first = sources.get("training") or artefacts
    channels = channels_of(first) if first is not None else 1
    contract = contract_of(body, classes, channels, given, spec.name)
    if channels not in (1, contract.channels):
        raise SpecError(
            f"{spec.name}: the images have {channels} channels, but the model has {contract.channels}; "
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
    plan = TriggersPlan(body, spec, sources, artefacts, triggers, choice, contract, target, given, options)
    return _tried_out(plan)


def _require_batches(images: int, size: int, where: str) -> None:
    """Refuse batches that the training images do not fill; `where` names the part of the spec."""
    try:
        Batches(images, size, 0)
    except InputError as error:
        raise SpecError(f"{where}: {error}") from error


def _require_distinct_names(triggers: Sequence[Trigger], where: str) -> None:
    names = [trigger.name for trigger in triggers]
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), "")
    if repeated:
        raise SpecError(f"{where}: two triggers are called {repeated!r}; give one of them another `name`")
    if BASELINE in names:
        raise SpecError(f"{where}: a trigger cannot be called {BASELINE!r}, the model before the attack; rename it")


def _tried_out(plan: TriggersPlan) -> TriggersPlan:
    """The plan with what a first look shows, and with the methods that explain the given or an untrained baseline."""
    classifier = plan.given
    if classifier is None:
        module = plan.untrained()  # refuses a start of another architecture
        classifier = NetworkClassifier(plan.model, module.to(usable_device(plan.options.device)).eval(), plan.contract)
    source = plan.sources.get("test") or plan.artefacts
    samples = [Sample(source, source.index(), source.findings)] if source is not None else []
    cautions = [each for sample in samples for each in first_look(sample, plan.contract, plan.model, plan.given)]
    choice = tried_on(plan.choice, classifier, *(sample.keys for sample in samples)).settled()
    body = plan.body.model_copy(update={"methods": choice.parts})
    return replace(plan, choice=choice, body=body, cautions=tuple(cautions))
