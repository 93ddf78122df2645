"""An alignment study, checked and ready to run, and what it says of itself in run.json."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import CaseError, SpecError
from heatcheck.core.records import CaseKey, Estimate
from heatcheck.explaining.dry_run import tried_on
from heatcheck.explaining.first_look.look import Sample, first_look
from heatcheck.explaining.first_look.preview import given_images, write_preview
from heatcheck.explaining.methods import MethodChoice, MethodRules, chosen_methods
from heatcheck.explaining.priors import gather_priors
from heatcheck.fitting.networks import FOLDER as NETWORKS
from heatcheck.fitting.spec import require_apart
from heatcheck.methods import METHODS, MethodFacts
from heatcheck.methods.differentiable import differentiable
from heatcheck.models import NetworkClassifier, explained
from heatcheck.running.cost import Cost
from heatcheck.running.identity import DataIdentity, study_identity
from heatcheck.running.progress import Watcher
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Envelope, Spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.alignment.bases import BaseNetworks, BaseTrainer, PlannedBase, fresh, planned_bases
from heatcheck.studies.alignment.blame.table import blame_rows
from heatcheck.studies.alignment.cost import alignment_cost
from heatcheck.studies.alignment.estimates import alignment_estimates
from heatcheck.studies.alignment.facts import alignment_manifest, counted_images
from heatcheck.studies.alignment.gallery import chosen, make_alignment_gallery
from heatcheck.studies.alignment.images import FOLDER as IMAGES
from heatcheck.studies.alignment.images import ImageRequest, Images, images_of
from heatcheck.studies.alignment.networks import FineTuner, NetworkCell, cells_of, parts_of, seed_of
from heatcheck.studies.alignment.reliance import RelianceSettings
from heatcheck.studies.alignment.scores import Measuring
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.spec import METRICS, AlignmentBody, findings_of, open_sources, require_roles
from heatcheck.studies.alignment.stage import CellsStage, ScaleAnchors
from heatcheck.studies.alignment.vocabulary import Human
from heatcheck.training import Machine

IMAGES_EXPLAINED = ("finetune", "evaluation")  # sources


@dataclass(frozen=True)
class AlignmentPlan:
    """The study; its stages do the work."""

    body: AlignmentBody
    spec: Spec
    sources: Mapping[str, Source]  # finetune, evaluation and, if bases are trained, training and validation
    through: MethodChoice  # the methods through which networks are trained
    beside: MethodChoice  # further methods, which are only scored
    findings: tuple[str, ...]
    bases: tuple[PlannedBase, ...]
    human: Human
    options: RunOptions
    cautions: tuple[str, ...] = ()  # of a first look at images and models

    @property
    def trained(self) -> Mapping[str, Method]:
        """The methods through which networks are trained."""
        return self.through.methods

    @property
    def judged(self) -> Mapping[str, Method]:
        """Further methods, which are only scored."""
        return self.beside.methods

    @property
    def envelope(self) -> Envelope:
        """The common part of the spec."""
        return self.spec.envelope

    @property
    def identity(self) -> Mapping[str, Any]:
        """What must be the same for a run to be continued: resolved spec, weights and cases."""
        weights = [base.weights_hash for base in self.bases]
        contracts = [base.contract.model_dump(mode="json") for base in self.bases]
        data = DataIdentity.of_sources(self.sources.values())
        return study_identity(self.envelope, self.body, self.options, weights, contracts, data)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What run.json says before the run starts."""
        return alignment_manifest(self).facts()

    @cached_property
    def rule(self) -> AlignmentSettings:
        """What is estimated."""
        return AlignmentSettings(
            bases=tuple(base.facts for base in self.bases),
            findings=self.findings,
            methods=tuple(self.trained),
            judged=tuple(self.judged),
            through=self.body.through_method,
            seeds=tuple(range(1, self.body.seeds + 1)),
            metrics=METRICS,
            draws=self.body.bootstrap_draws,
            sizes=self.body.sizes,
            seed=self.envelope.seed,
            human=self.human,
            blame_metric=self.body.blame_by,
        )

    @property
    def cells(self) -> list[NetworkCell]:
        """Every network of the grid."""
        return list(cells_of(self.rule, several=self.body.several))

    @property
    def measuring(self) -> Measuring:
        """What is measured on each network."""
        settings = RelianceSettings(shifts=self.body.reliance.shifts, films=self.body.reliance.films)
        methods = {**self.trained, **self.judged}
        size, seed = self.envelope.batch_size, self.envelope.seed
        return Measuring(METRICS, methods, size, seed, settings, self.options.limit, self.body.map_order)

    def preview(self, folder: RunFolder) -> None:
        """Write what the networks are given of the evaluation images."""
        source = self.sources["evaluation"]
        sample = Sample(source, source.index(), self.findings)
        write_preview(folder, given_images(sample, {base.key: base.contract for base in self.bases}))

    def cost(self, folder: RunFolder) -> Cost:
        """The bases to train, and the networks to fine-tune and measure."""
        return alignment_cost(self, folder)

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The training of bases, if any; then the fine-tuning and measuring of every network.

        Images are read before anything is trained, so that errors in them do not show after days of training.
        """
        finetune, evaluation = self._images(folder, "finetune", watcher), self._images(folder, "evaluation", watcher)
        self._require_readable(finetune, evaluation)
        self._require_filled(finetune)
        machine = Machine(self.options.device)
        bases = BaseNetworks(self.bases, self.spec, self.options, folder.path / NETWORKS)
        if self.body.base is not None:
            sources = (self.sources["training"], self.sources["validation"])
            workers = replace(machine, workers=self.options.workers)
            seed = self.envelope.seed
            training = BaseTrainer(self.body.base, bases, sources, folder.path, seed, workers, watcher).stage
            yield training
            training.remove_states()
        folder.record(**counted_images(self, finetune, evaluation).facts())
        tuner = FineTuner(
            self.body,
            self.envelope.seed,
            bases,
            self.trained,
            finetune,
            evaluation,
            replace(machine, precision=self.body.precision),
            watcher,
        )
        source = self.sources["evaluation"]
        usual = gather_priors(self.sources["finetune"], self.sources["finetune"].index(), self.findings, watcher)
        ends = ScaleAnchors(source, evaluation, self.findings, self.measuring, self.options.workers, usual)
        yield CellsStage(tuner, self.cells, self.rule, self.measuring, ends, self._kept(evaluation))
        for cell in self.cells:
            tuner.forget(cell)

    def _images(self, folder: RunFolder, name: str, watcher: Watcher) -> Images:
        contracts = tuple(base.contract for base in self.bases)
        request = ImageRequest(self.sources[name], self.findings, contracts, self.options.workers)
        return images_of(request, folder.path, name, watcher)

    def _require_readable(self, finetune: Images, evaluation: Images) -> None:
        for name, images in (("finetune", finetune), ("evaluation", evaluation)):
            for finding in self.findings:
                if not images.positives(finding):
                    raise SpecError(
                        f"{self.spec.name}: no image of `{name}` with an outlined {finding!r} can be read; "
                        "check the source"
                    )

    def _require_filled(self, finetune: Images) -> None:
        """Refuse too few images to fill a batch; how many there are depends on how patients are drawn."""
        size = self.body.fit.batch_size
        for cell in self.cells:
            if cell.base != self.bases[0].key or cell.arm != "control":
                continue  # the parts are the same for all bases and arms
            parts = parts_of(finetune, cell.findings, self.body.selection, seed_of(self.envelope.seed, cell))
            if len(parts.learned) < size:
                raise SpecError(
                    f"{self.spec.name}: {len(parts.learned)} of the {len(finetune.keys)} fine-tuning images that can "
                    f"be read are learned from, and a batch has {size}; lower `fit.batch_size`, or `selection`"
                )

    def _shown(self, evaluation: Images) -> dict[str, list[CaseKey]]:
        """The cases of the gallery, by finding."""
        if self.envelope.keep_maps == "none":
            return {}
        outlined = {
            (evaluation.keys[row].case, finding)
            for finding in self.findings
            for row in evaluation.of_patients(evaluation.positives(finding), self.options.limit)
        }
        keys, most = evaluation.keys, self.envelope.gallery
        return chosen(keys, self.findings, most, lambda key, finding: (key.case, finding) in outlined)

    def _kept(self, evaluation: Images) -> dict[str, frozenset[str]]:
        """The cases whose maps are kept, by finding."""
        if self.envelope.keep_maps == "all":
            return {
                name: frozenset(evaluation.keys[row].case for row in evaluation.positives(name))
                for name in self.findings
            }
        return {name: frozenset(key.case for key in keys) for name, keys in self._shown(evaluation).items()}

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """All estimates, and the blame table that is read from them."""
        rows = alignment_estimates(folder.path, self.rule)
        return [*rows, *blame_rows(rows, self.rule)]

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Draw the gallery with the maps of every arm, then remove the stored images."""
        evaluation = self._images(folder, "evaluation", watcher)
        cases, most = self._shown(evaluation), self.envelope.gallery
        make_alignment_gallery(folder, self.rule, self.sources["evaluation"], cases, most, watcher)
        shutil.rmtree(folder.path / IMAGES, ignore_errors=True)  # a run that is passed on must not contain every image


def plan_alignment(spec: Spec, options: RunOptions, out: Path) -> AlignmentPlan:
    """The study, with everything checked that can be checked before work starts."""
    body = spec.checked_body(AlignmentBody)
    through, beside = _choices(body, spec)
    body = _naming(body, through, beside)
    require_roles(body, through.methods, beside.methods, spec.name)
    sources = open_sources(body, spec)
    require_apart(sources, spec.name)
    findings = findings_of(body, sources, spec.name)
    _require_batch(body, len(sources["finetune"].index()), spec.name)
    outputs = body.base.outputs(sources["training"]) if body.base else ()
    bases = planned_bases(body, spec, options, outputs)
    for base in bases:
        missing = [finding for finding in findings if finding not in base.contract.outputs]
        if missing:
            known = ", ".join(base.contract.outputs)
            raise SpecError(f"{spec.name}: model {base.key} has no output for {', '.join(missing)}; it has {known}")
    human = human_end(sources["evaluation"], findings)
    if options.pseudonymise:
        sources = {name: pseudonymous(source, source.index(), out) for name, source in sources.items()}
    return _tried_out(AlignmentPlan(body, spec, sources, through, beside, findings, bases, human, options))


def _choices(body: AlignmentBody, spec: Spec) -> tuple[MethodChoice, MethodChoice]:
    """The methods through which networks are trained, and the others; a set has those that its key can have."""
    strict = spec.envelope.strict
    through = chosen_methods(
        body.methods, spec.name, MethodRules(lambda facts: facts.differentiable and not facts.is_floor, strict=strict)
    )

    def may_be_judged(facts: MethodFacts) -> bool:
        return facts.name not in through.methods and not facts.wants_priors and not facts.wants_donors

    return through, chosen_methods(body.judged, spec.name, MethodRules(may_be_judged, strict=strict))


def _naming(body: AlignmentBody, through: MethodChoice, beside: MethodChoice) -> AlignmentBody:
    """The body with the methods of these choices."""
    return body.model_copy(update={"methods": through.parts, "judged": beside.parts})


def _require_batch(body: AlignmentBody, images: int, where: str) -> None:
    """Refuse a batch that is larger than the number of images to learn from."""
    learned = images - round(body.selection * images)
    if learned < body.fit.batch_size:
        raise SpecError(
            f"{where}: about {learned} of the {images} fine-tuning images are learned from, and a batch has "
            f"{body.fit.batch_size}; lower `fit.batch_size`, or `selection`"
        )


def human_end(source: Source, findings: Sequence[str]) -> Human:
    """Whether the source has human readers: the first readable outlined case decides."""
    for key in source.index():
        if not any(key.labels.get(finding) == 1 for finding in findings):
            continue
        try:
            return "readers" if source.load(key).readings else "truth"
        except CaseError:
            continue
    return "truth"


def _tried_out(plan: AlignmentPlan) -> AlignmentPlan:
    """The plan with what a first look shows, and with the methods that explain every base.

    Networks must be trainable through those of `methods`.
    """
    through, beside = plan.through, plan.beside
    cautions: list[str] = []
    for base in plan.bases:
        classifier = _before_fine_tuning(base, plan)
        cautions += _looked_at(base, plan, classifier)
        through = tried_on(through, classifier, also=partial(_require_gradient, classifier=classifier))
        beside = tried_on(beside, classifier)
    through = through.settled()
    beside = beside.settled(required=False)
    body = _naming(plan.body, through, beside)
    require_roles(body, through.methods, beside.methods, plan.spec.name)
    return replace(plan, body=body, through=through, beside=beside, cautions=tuple(cautions))


def _looked_at(base: PlannedBase, plan: AlignmentPlan, classifier: NetworkClassifier) -> list[str]:
    """What a first look at the base shows; one that is trained here has no answers yet."""
    known = None if base.trained else classifier
    samples = [Sample(plan.sources[name], plan.sources[name].index(), plan.findings) for name in IMAGES_EXPLAINED]
    return [caution for sample in samples for caution in first_look(sample, base.contract, base.key, known)]


def _before_fine_tuning(base: PlannedBase, plan: AlignmentPlan) -> NetworkClassifier:
    """The base with its weights, or with random ones if it is trained here."""
    if not base.trained:
        return BaseNetworks(plan.bases, plan.spec, plan.options, Path()).classifier(base.key)
    return NetworkClassifier(base.key, fresh(base, plan.envelope.seed).eval(), base.contract)


def _require_gradient(name: str, method: Method, classifier: NetworkClassifier) -> None:
    """Refuse a method whose maps of this network have no gradient with respect to its weights."""
    contract = classifier.preprocessing
    image = torch.rand(1, contract.channels, *contract.size, generator=torch.Generator().manual_seed(0))
    cheap = replace(method, **METHODS[name].trial)  # type: ignore[type-var]
    target = torch.zeros(1, 1, dtype=torch.long, device=classifier.device)
    maps = differentiable(cheap)(
        explained(classifier), image.to(classifier.device), target, [0], create_graph=True
    ).values
    weights = [weight for weight in classifier.module.parameters() if weight.requires_grad]
    if not weights:
        raise SpecError(
            f"model {classifier.name} has no trainable weights; set requires_grad of those that may be fine-tuned"
        )
    gradients = torch.autograd.grad(maps.square().sum(), weights, allow_unused=True) if maps.requires_grad else ()
    if not any(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients):
        raise SpecError(f"networks cannot be trained through {name} on model {classifier.name}; use another method")
