"""Train classifiers from a spec: sources → examples → runs of the fit → checkpoints → the best one, an ensemble."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import RunFolderError
from heatcheck.core.seeds import seed_for
from heatcheck.fitting.checkpoints import (
    FOLDER,
    CheckpointKeeper,
    copy_best,
    file_digest,
    write_ensemble,
    write_table,
)
from heatcheck.fitting.contract import contract_of, require_fitting_pixels
from heatcheck.fitting.cost import training_cost
from heatcheck.fitting.curve import draw_curve
from heatcheck.fitting.examples import CaseExamples, StoredExamples, classes_of
from heatcheck.fitting.networks import fit_network, new_network
from heatcheck.fitting.results import CasePredictions, Gain, TestResult, gains, judged, probabilities_of
from heatcheck.fitting.spec import TrainingPlan, planned
from heatcheck.models import ModelSettings, Preprocessing, load_classifier, read_ensemble
from heatcheck.models.renaming import some
from heatcheck.models.starting import start_from
from heatcheck.running.cost import say_cost
from heatcheck.running.determinism import repeatable
from heatcheck.running.progress import Watcher
from heatcheck.runs.lock import locked
from heatcheck.runs.spec import Spec
from heatcheck.training import STRATEGIES, Candidate, Check, Examples, Job, LabelObjective, Machine, quick
from heatcheck.training.batches import Batches
from heatcheck.training.selection import best_candidate, best_checks, mean_of, merit

HERE = Machine()


@dataclass(frozen=True, slots=True)
class Trained:
    """The results of a training."""

    weights: Path
    results: tuple[TestResult, ...]  # of the best single checkpoint
    ensemble: Path | None = None
    ensemble_results: tuple[TestResult, ...] = ()
    best_results: tuple[TestResult, ...] = ()  # of the best checkpoint of each finding
    gains: tuple[Gain, ...] = ()  # of the ensemble over the best checkpoint of each finding
    accuracy: float = math.nan  # of the best single checkpoint, if classes exclude one another

    @property
    def macro_auroc(self) -> float:
        """The mean AUROC of the best single checkpoint, over the findings that have one."""
        return mean_of(result.auroc for result in self.results)

    @property
    def macro_ensemble_auroc(self) -> float:
        """The mean AUROC of the ensemble."""
        return mean_of(result.auroc for result in self.ensemble_results)


def train(spec: Spec, out: Path, watcher: Watcher, machine: Machine = HERE) -> Trained:
    """Train classifiers into the folder `out`, or continue a training there, and evaluate them on the test source."""
    machine.check()
    plan = planned(spec)
    part = plan.body.fit  # settings that do not fit the data are refused here
    batches = Batches(len(plan.training.index()), part.batch_size, 0, processes=machine.devices)
    plan.settings(1, part.rates[0]).pace(part.epochs * len(batches))
    require_fitting_pixels(plan)
    _claim(out, _identity(plan, machine))
    with locked(out), repeatable(spec.envelope.threads):
        for left_over in out.rglob("*.tmp-*"):  # unfinished files of a killed training
            left_over.unlink()
        for name in (FOLDER, "runs"):
            (out / name).mkdir(exist_ok=True)
        waiting = [name for name in _run_names(plan) if not _file_of_run(out, name).exists()]
        if waiting:
            say_cost(lambda: training_cost(plan, out, machine, waiting), watcher)
        return _Training(plan, out, watcher, machine, contract_of(plan, out, watcher, machine.workers)).carried_out()


def _run_names(plan: TrainingPlan) -> list[str]:
    """The names of all runs of the fit, those that choose the learning rate first."""
    rates = plan.body.fit.rates
    trials = [_trial_name(rate) for rate in rates] if len(rates) > 1 else []
    runs = range(1, plan.body.runs + 1)
    return [*trials, *(f"{strategy}-{run}" for strategy in plan.strategies for run in runs)]


def _trial_name(rate: float) -> str:
    return f"rate-{rate:g}"


def _file_of_run(out: Path, name: str) -> Path:
    """The file that a finished run leaves."""
    return out / "runs" / f"{name}.json"


def _identity(plan: TrainingPlan, machine: Machine) -> dict[str, Any]:
    """What must be the same when a training is continued."""
    return {
        "seed": plan.seed,
        **plan.body.model_dump(mode="json"),
        "machine": {"device": machine.device, "devices": machine.devices, "precision": machine.precision},
        "start_sha256": file_digest(plan.start) if plan.start else None,
        "data": [source.stamp() for source in (plan.training, plan.validation)],
    }


@dataclass(frozen=True, slots=True)
class _FitRun:
    """One run of the fit: its strategy, its number among the runs of that strategy, and its learning rate."""

    name: str  # of its files
    strategy: str
    number: int
    rate: float
    keep: int  # checkpoints at most


@dataclass(frozen=True)
class _Training:
    """One training in its folder."""

    plan: TrainingPlan
    out: Path
    watcher: Watcher
    machine: Machine
    contract: Preprocessing

    def carried_out(self) -> Trained:
        """The results, after every unfinished run was fitted and its checkpoints were evaluated."""
        body = self.plan.body
        training, validation = self._examples("training"), self._examples("validation")
        rates = self._rates(training, validation)
        rate = max(rates, key=lambda each: rates[each])
        every: list[Candidate] = []
        kept: list[Candidate] = []
        for strategy in self.plan.strategies:
            for run in range(1, body.runs + 1):
                fit_run = _FitRun(f"{strategy}-{run}", strategy, run, rate, body.checkpoints.keep)
                history = self._history(fit_run, training, validation)
                every += [Candidate(strategy, run, check) for check in history]
                kept += [Candidate(strategy, run, check) for check in best_checks(history, self.plan.by, fit_run.keep)]
        trained = self._judged(kept)
        write_table(self.out, every, kept, self.plan.outputs)
        draw_curve(self.out, every, kept, self.plan.by)
        self._record(trained, every, best_candidate(kept, self.plan.by), rates)
        return trained

    def _examples(self, name: str) -> Examples:
        """The examples of the training, validation or test source, kept on disk if the spec says so."""
        source = {"training": self.plan.training, "validation": self.plan.validation, "test": self.plan.test}[name]
        read = CaseExamples(source, self.contract, self.plan.body.blank if name == "training" else "unknown")
        if not self.plan.body.cache:
            return read
        return StoredExamples(read, self.out / f"{name}.npy", self.watcher, self.machine.workers)

    def _rates(self, training: Examples, validation: Examples) -> dict[float, float]:
        """The best merit of each learning rate in one run of the first strategy; a single rate needs no trial."""
        rates = self.plan.body.fit.rates
        if len(rates) == 1:
            return {rates[0]: math.nan}
        trials = [_FitRun(_trial_name(rate), self.plan.strategies[0], 1, rate, keep=0) for rate in rates]
        histories = {trial.rate: self._history(trial, training, validation) for trial in trials}
        return {rate: max(merit(check, self.plan.by) for check in history) for rate, history in histories.items()}

    def _history(self, run: _FitRun, training: Examples, validation: Examples) -> list[Check]:
        """The checks of one run, which is fitted unless it was finished earlier."""
        record, state = _file_of_run(self.out, run.name), self.out / "runs" / f"{run.name}.ckpt"
        if record.exists():
            state.unlink(missing_ok=True)
            return [Check(**check) for check in json.loads(record.read_text())]
        settings = self.plan.settings(run.number, run.rate)
        strategy = STRATEGIES[run.strategy]
        contract = self.contract.model_copy(update={"head": strategy.head, "activation": strategy.activation})
        keeper = CheckpointKeeper(
            folder=self.out / FOLDER,
            model=self.plan.body.model,
            contract=contract,
            strategy=run.strategy,
            run=run.number,
            by=self.plan.by,
            most=run.keep,
            keys=tuple(self.plan.validation.index()),
            views=self.plan.body.views,
        )
        module = self._first_network(contract, settings.seed)
        classes = classes_of(self.plan.training.index(), self.plan.outputs) if settings.balanced else None
        objective = LabelObjective(run.strategy)
        job = Job(module, objective, training, validation, settings, state, keeper, classes=classes)
        history = fit_network(job, f"training {run.name}", self.machine, self.watcher)
        with replaced(record) as temporary:
            temporary.write_text(json.dumps([asdict(check) for check in history]) + "\n")
        state.unlink()
        return history

    def _first_network(self, contract: Preprocessing, seed: int) -> nn.Module:
        """The network before its first step; the watcher receives how many weights come from the start file."""
        start, model = self.plan.start, self.plan.body.model
        module = new_network(model, contract, seed_for(seed, "initial weights"))
        if start is not None:
            started = start_from(start, module, model)
            fresh = f"; {some(started.fresh)} start from random values" if started.fresh else ""
            self.watcher.say(f"{len(started.loaded)} weights come from {start.name}{fresh}.")
        return quick(module)

    def _judged(self, kept: Sequence[Candidate]) -> Trained:
        """The best single checkpoint, the best of each finding and the ensemble on the test source."""
        body = self.plan.body
        weights = copy_best(self.out, best_candidate(kept, self.plan.by))
        examples = self._examples("test") if body.ensemble else CaseExamples(self.plan.test, self.contract)
        single = load_classifier(ModelSettings(name=body.model, weights=weights), Path(), self.machine.device)
        alone = self._predictions(single, examples)
        if not body.ensemble:
            accuracy = alone.accuracy if body.labels == "single" else math.nan
            return Trained(weights, alone.results(), accuracy=accuracy)
        files = write_ensemble(self.out, body.model, kept, self.plan.outputs, self.plan.by, body.ensemble)
        together, best = (
            self._predictions(read_ensemble(file, body.model, self.machine.device), examples) for file in files
        )
        better = gains(together, best)
        return Trained(weights, alone.results(), files[0], together.results(), best.results(), better)

    def _predictions(self, model: Any, examples: Examples) -> CasePredictions:  # noqa: ANN401 - a classifier or an ensemble
        probabilities, labels = probabilities_of(model, examples, self.machine.workers, self.watcher)
        keys = self.plan.test.index()
        return judged(keys, labels, probabilities, self.plan.outputs, self.plan.body.views)

    def _record(self, trained: Trained, every: Sequence[Candidate], best: Candidate, rates: dict[float, float]) -> None:
        """Write training.json, and report images that could not be read."""
        first = [one.check for one in every if one.run == 1 and one.strategy == every[0].strategy]
        unreadable = sum(check.unreadable for check in first if check.epoch == 0)
        if unreadable:
            self.watcher.say(f"{unreadable} training images could not be read and were skipped.")
        record = {
            "history": [{"strategy": one.strategy, "run": one.run, **asdict(one.check)} for one in every],
            "learning_rates": [{"rate": rate, "merit": value} for rate, value in rates.items()],
            "unreadable": unreadable,
            "best": f"{FOLDER}/{best.name}",
            "accuracy": trained.accuracy,
            "test": [asdict(result) for result in trained.results],
            "ensemble_test": [asdict(result) for result in trained.ensemble_results],
            "best_per_finding_test": [asdict(result) for result in trained.best_results],
            "ensemble_less_best": [asdict(gain) for gain in trained.gains],
        }
        with replaced(self.out / "training.json") as temporary:
            temporary.write_text(json.dumps(_plain(record), indent=1) + "\n")


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value with null in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _claim(out: Path, identity: dict[str, Any]) -> None:
    """Claim the folder for this training, or continue if it holds the same one."""
    description = out / "training-spec.json"
    text = json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if description.exists():
        if description.read_text() != text:
            raise RunFolderError(
                f"{out} holds another training (spec, seed, data, devices or precision differ); choose another --out"
            )
        return
    if out.exists() and (not out.is_dir() or any(path.name != ".lock" for path in out.iterdir())):
        raise RunFolderError(f"{out} is not an empty folder; choose another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        description.write_text(text)
    except OSError as error:
        raise RunFolderError(f"{out} cannot be written ({error.strerror}); choose another --out") from error
