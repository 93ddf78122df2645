"""Run the study that a spec describes."""

from pathlib import Path

from heatcheck.core.errors import SpecError
from heatcheck.running.execute import Outcome, cores, execute, identity_of
from heatcheck.running.progress import Silent, Watcher
from heatcheck.running.registry import STUDIES
from heatcheck.running.retry.reopening import reopen
from heatcheck.running.study import Plan, RunOptions
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.spec import Spec, read_spec
from heatcheck.runs.store import require_usable


def run_study(
    spec: Spec | str | Path, out: Path | str, options: RunOptions = RunOptions(), watcher: Watcher | None = None
) -> Outcome:
    """Run a study into the folder `out`, or continue the run that is there.

    Args:
        spec: a parsed spec, the path of a YAML file, or the name of a shipped spec.
        out: the run's folder; made if it does not exist.
        options: what differs from call to call.
        watcher: receives the progress.

    Raises:
        InputError: the spec or the folder cannot be used; nothing is written.
    """
    watcher = watcher or Silent()
    parsed = spec if isinstance(spec, Spec) else read_spec(str(spec), options.seed)
    require_usable(Path(out))
    plan = _plan(parsed, options, Path(out))
    if options.retry_failed:
        reopen(plan, identity_of(plan), Path(out))
    return execute(plan, _circumstances(parsed, options).facts(), Path(out), watcher)


def _plan(spec: Spec, options: RunOptions, out: Path) -> Plan:
    if spec.envelope.study == "training":
        raise SpecError(f"{spec.name} describes a training; use `heatcheck train`")
    plan = STUDIES[spec.envelope.study].make_plan(spec, options, out)
    if options.pseudonymise and not plan.identity.get("pseudonymised"):
        raise SpecError(f"the study {spec.envelope.study} has no pseudonyms; leave out --pseudonymise")
    return plan


def _circumstances(spec: Spec, options: RunOptions) -> Manifest:
    envelope = spec.envelope
    return Manifest(
        study=envelope.study,
        title=envelope.title or spec.name,
        paper=STUDIES[envelope.study].paper,
        threads=envelope.threads or cores(),
        batch_size=envelope.batch_size,
        shard_size=envelope.shard_size,
        trusted_code=options.trust_code,
    )
