"""Carry out a plan: claim the folder, work through the shards, estimate, illustrate, report."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from heatcheck.report.build import Brief
from heatcheck.report.caveats import of_models, skipped_in_words
from heatcheck.report.evidence import evidence_of
from heatcheck.running.cost import say_cost
from heatcheck.running.determinism import use_threads
from heatcheck.running.progress import Watcher
from heatcheck.running.reporting import written_report
from heatcheck.running.retry.reopening import failed_cases, finished, is_retrying, rest_hash
from heatcheck.running.retry.repeating import RetryStage, repeat_failed
from heatcheck.running.study import DatedPlan, Plan, Previewed, Stage
from heatcheck.runs.engine import run_shards
from heatcheck.runs.manifest import Manifest, parse_manifest
from heatcheck.runs.store import RunFolder, read_run

_PACKAGES = ("heatcheck", "torch", "monai", "numpy", "scipy", "opencv-python-headless", "pandas", "pyarrow")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The report of a run with what it says first, and how many of its cases failed."""

    report: Path
    n_cases: int
    n_failed: int
    brief: Brief
    can_retry: bool = False  # the failed cases alone may be run again


def execute(plan: Plan, circumstances: Mapping[str, Any], out: Path, watcher: Watcher) -> Outcome:
    """Finish the run and build its report; shards that an earlier call finished are kept.

    `circumstances` are recorded when the run begins: study, title, threads and other facts for the report.
    """
    start = Manifest(machine=platform.machine(), started=_now())
    facts = {**start.facts(), **plan.facts, **circumstances}
    identity = identity_of(plan)
    # before anything is written: a folder keeps the facts that it began with
    parse_manifest({**identity, **facts}, Manifest, "what the plan says of the run", "correct the study")
    changed_since = plan.changed_since if isinstance(plan, DatedPlan) else lambda _: ""
    with RunFolder.locked(out, identity, facts, changed_since) as folder:
        manifest = _manifest(folder)
        if manifest.status == "complete":
            watcher.say("This run is already finished; its report is built again.")
        else:
            for sentence in skipped_in_words(manifest.skipped):
                watcher.say(sentence if sentence[0].isdigit() else f"Without {sentence}")
            use_threads(manifest.threads or cores())
            _preview(plan, folder, watcher)
            for caution in manifest.cautions:
                watcher.say(caution)
            say_cost(lambda: plan.cost(folder), watcher)
            for stage in plan.stages(folder, watcher):
                within = folder.within(stage.name)
                if is_retrying(manifest) and not stage.name and isinstance(stage, RetryStage):
                    repeat_failed(stage, within, watcher)
                _run_stage(stage, within, watcher)
            _conclude(plan, folder, watcher)
            manifest = _manifest(folder)
    written = written_report(out)
    for doubt in of_models(evidence_of(read_run(out))):
        watcher.say(doubt)
    n_failed = manifest.n_failed or 0
    return Outcome(written.path, manifest.n_cases or 0, n_failed, written.brief, bool(n_failed and manifest.rest_hash))


def identity_of(plan: Plan) -> dict[str, Any]:
    """What must be the same when a run goes on, with the installed packages."""
    return {**plan.identity, "versions": _versions()}


def _manifest(folder: RunFolder) -> Manifest:
    return parse_manifest(folder.manifest, Manifest, str(folder.manifest_path))


def cores() -> int:
    """The number of cores this process may use; where OMP_NUM_THREADS asks for fewer, that number."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # more values are for threads within threads
    return min(available, max(1, int(asked))) if asked.isdecimal() else available


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return {**versions, "python": platform.python_version()}


def _preview(plan: Plan, folder: RunFolder, watcher: Watcher) -> None:
    """Write what the network is given, and say where to look; a continued run has it."""
    if isinstance(plan, Previewed) and not folder.preview_path.exists():
        plan.preview(folder)
        if folder.preview_path.exists():
            watcher.say(f"What the network is given: {folder.preview_path}")


def _run_stage(stage: Stage, folder: RunFolder, watcher: Watcher) -> None:
    finished = sum(stage.cases_in(shard) for shard in range(stage.shards) if folder.has_shard(shard))
    total = sum(map(stage.cases_in, range(stage.shards)))
    watcher.start(stage.what, total, finished)
    run_shards(folder, stage.shards, stage.work, lambda shard, _: watcher.advance(stage.cases_in(shard)))
    folder.join_shards(stage.shards)


def _conclude(plan: Plan, folder: RunFolder, watcher: Watcher) -> None:
    folder.write_estimates(plan.estimates(folder))
    plan.illustrate(folder, watcher)
    cases = folder.read_table("cases")
    n_failed = int((cases["status"] == "failed").sum())
    now = _now()
    end = Manifest(status="complete", n_cases=len(cases), n_failed=n_failed, finished=now)
    rest = {"rest_hash": rest_hash(plan, failed_cases(folder))} if n_failed else {}
    folder.record(**end.facts(), **finished(_manifest(folder), now), **rest)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
