"""A finished run is opened again for its failed cases, if nothing else changed.

A hash of everything but the failed cases is recorded with the run, and must still hold.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heatcheck.core.errors import RunFolderError
from heatcheck.running.study import Plan
from heatcheck.runs.lock import locked
from heatcheck.runs.manifest import Manifest, RetryEntry, parse_manifest
from heatcheck.runs.store import RunFolder

_MAY_CHANGE = ("data_hash", "cases_hash")  # of the failed cases; `rest_hash` holds what must not


@runtime_checkable
class RetryPlan(Protocol):
    """A plan whose cases do not depend on one another, so that some may run again."""

    def rest_hash(self, failed: Collection[str]) -> str:
        """A hash of all that a run reads but these cases; empty where that cannot be said."""


def reopen(plan: Plan, identity: Mapping[str, Any], out: Path) -> None:
    """Prepare a finished run so that its failed cases run again; refuse if anything else changed."""
    if not (out / "run.json").exists():
        raise RunFolderError(f"{out} holds no run yet; leave out --retry-failed")
    with locked(out):
        folder = RunFolder(out)
        manifest = parse_manifest(folder.manifest, Manifest, str(folder.manifest_path))
        if is_retrying(manifest):
            return  # it was stopped, and goes on with the files as they were
        if manifest.status != "complete":
            raise RunFolderError(f"{out} is not finished; leave out --retry-failed to finish it first")
        failed = failed_cases(folder)
        if not failed:
            raise RunFolderError(f"{out} has no failed cases; leave out --retry-failed")
        folder.require_same(identity, but=_MAY_CHANGE)
        _require_same_rest(plan, manifest, failed, out)
        changed = {key: identity[key] for key in _MAY_CHANGE if key in identity}
        retry = RetryEntry(started=datetime.now(UTC).isoformat(timespec="seconds"), cases=len(failed))
        retries = [each.facts() for each in (*manifest.retries, retry)]
        folder.record(**changed, status="running", retries=retries)


def _require_same_rest(plan: Plan, manifest: Manifest, failed: Collection[str], out: Path) -> None:
    rest = rest_hash(plan, failed)
    if not rest or not manifest.rest_hash:
        raise RunFolderError(
            f"{out}: of this study and source it is not known which cases a change concerns; choose another --out to "
            "run all cases again"
        )
    if rest != manifest.rest_hash:
        raise RunFolderError(
            f"{out}: more changed than the files of failed cases, so all cases must run again; choose another --out"
        )


def rest_hash(plan: Plan, failed: Collection[str]) -> str:
    """The hash of everything but the failed cases; empty where the study or its source cannot say."""
    return plan.rest_hash(failed) if isinstance(plan, RetryPlan) else ""


def is_retrying(manifest: Manifest) -> bool:
    """Whether the failed cases of the run are being run again."""
    return manifest.status != "complete" and any(not retry.finished for retry in manifest.retries)


def failed_cases(folder: RunFolder) -> set[str]:
    """The ids of the cases that failed when the run was last finished."""
    cases = folder.read_table("cases")
    return set(cases.loc[cases["status"] == "failed", "case"])


def finished(manifest: Manifest, moment: str) -> Mapping[str, Any]:
    """What run.json says of the runs of failed cases, once the last one is finished."""
    if not manifest.retries:
        return {}
    ended = [retry if retry.finished else retry.model_copy(update={"finished": moment}) for retry in manifest.retries]
    return Manifest(retries=tuple(ended)).facts()
