"""Run any study: check, claim the folder, work off the shards, estimate, illustrate, report."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cv2
import torch

from heatcheck.core.errors import SpecError
from heatcheck.report.build import build_report
from heatcheck.runs.engine import run_shards
from heatcheck.runs.spec import Spec, read_spec
from heatcheck.runs.store import RunFolder, require_usable
from heatcheck.studies.catalogue import STUDIES
from heatcheck.studies.progress import Silent, Watcher
from heatcheck.studies.registry import Plan, RunOptions, Stage

_PACKAGES = ("heatcheck", "torch", "monai", "numpy", "scipy", "opencv-python-headless", "pandas", "pyarrow")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    report: Path
    n_cases: int
    n_failed: int


def run_study(
    spec: Spec | str | Path, out: Path | str, options: RunOptions = RunOptions(), watcher: Watcher | None = None
) -> Outcome:
    """Run a study into the folder `out`, or take up what an earlier call left there.

    Args:
        spec: a parsed spec, the path of a YAML file, or the name of a shipped spec.
        out: the run's folder; made if it does not exist.
        options: what differs from call to call.
        watcher: hears of the progress.

    Raises:
        InputError: what can be known before work starts; nothing is written then.
    """
    watcher = watcher or Silent()
    parsed = spec if isinstance(spec, Spec) else read_spec(str(spec), options.seed)
    require_usable(Path(out))
    plan = _plan(parsed, options, Path(out))
    facts = {**plan.facts, **_circumstances(parsed, options)}
    identity = {**plan.identity, "versions": _versions()}
    with RunFolder.locked(Path(out), identity, facts) as folder:
        if folder.manifest["status"] == "complete":
            watcher.say("This run is finished already; its report is built again.")
        else:
            _use_threads(folder.manifest)
            for stage in plan.stages(folder, watcher):
                _work_off(stage, folder.within(stage.name), watcher)
            _conclude(plan, folder, watcher)
        manifest = folder.manifest
    report = build_report(Path(out))
    return Outcome(report, manifest["n_cases"], manifest["n_failed"])


def _plan(spec: Spec, options: RunOptions, out: Path) -> Plan:
    if spec.envelope.study == "training":
        raise SpecError(f"{spec.name} describes a training; use `heatcheck train`")
    return STUDIES[spec.envelope.study].plan(spec, options, out)


def _circumstances(spec: Spec, options: RunOptions) -> dict[str, Any]:
    return {
        "study": spec.envelope.study,
        "title": spec.envelope.title or spec.name,
        "threads": spec.envelope.threads or _cores(),
        "batch_size": spec.envelope.batch_size,
        "shard_size": spec.envelope.shard_size,
        "machine": platform.machine(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "trusted_code": options.trust_code,
    }


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return {**found, "python": platform.python_version()}


def _use_threads(manifest: Mapping[str, Any]) -> None:
    """The thread count the run began with: sums in another order would change the last digits."""
    torch.set_num_threads(manifest["threads"])
    cv2.setNumThreads(manifest["threads"])


def _work_off(stage: Stage, folder: RunFolder, watcher: Watcher) -> None:
    finished = sum(stage.cases_in(shard) for shard in range(stage.shards) if folder.has_shard(shard))
    total = sum(map(stage.cases_in, range(stage.shards)))
    watcher.start(stage.what, total, finished)
    run_shards(folder, stage.shards, stage.work, lambda shard, _: watcher.advance(stage.cases_in(shard)))
    folder.join_shards(stage.shards)


def _conclude(plan: Plan, folder: RunFolder, watcher: Watcher) -> None:
    folder.write_estimates(plan.estimates(folder))
    plan.illustrate(folder, watcher)
    cases = folder.read_table("cases")
    failed = int((cases["status"] == "failed").sum())
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    folder.record(status="complete", n_cases=len(cases), n_failed=failed, finished=finished)
