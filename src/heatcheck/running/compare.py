"""Two runs of one study: the cases they share, and how much their scores differ on them."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from heatcheck.core.errors import InputError
from heatcheck.estimating.compared_scores import Compared
from heatcheck.running.registry import study_of
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run, read_run


def compare_runs(first: Path, second: Path, draws: int = 2000) -> Compared:
    """The differences in the runs' specs, and in their scores with patient-clustered intervals."""
    runs = [_finished(path) for path in (first, second)]
    one, other = (run.manifest_as(Manifest) for run in runs)
    if one.study != other.study:
        raise InputError(
            f"{first} and {second} are a {one.study} and a {other.study} study; compare runs of the same study"
        )
    shared = _shared_cases(runs)
    if not shared:
        raise InputError(
            f"{first} and {second} have no case in common; compare runs on the same cases "
            "(pseudonyms differ between runs)"
        )
    compared = study_of(runs[0]).compare_runs(runs, draws)
    sentences = [*_sentences(runs, shared), *compared.sentences]
    if not compared.rows:
        sentences.append("No score can be compared: none is defined in both runs for the same case and method.")
    return Compared(compared.rows, tuple(sentences))


def _finished(path: Path) -> Run:
    run = read_run(path)
    if run.manifest_as(Manifest).status != "complete":
        raise InputError(f"{path} is not finished; continue it with the command that began it")
    return run


def _shared_cases(runs: list[Run]) -> int:
    """The number of cases in both runs; cases with the same name must have the same labels."""
    one, other = (_labels(run) for run in runs)
    both = one.merge(other, on=["case", "finding"], suffixes=("_first", "_second"))
    differ = (both["label_first"] != both["label_second"]) & both["label_first"].notna() & both["label_second"].notna()
    if differ.any():
        raise InputError(
            f"case {both['case'][differ].iloc[0]!r} has other labels in the second run: different images have the same "
            "name, so the runs cannot be compared"
        )
    return int(both["case"].nunique())


def _labels(run: Run) -> pd.DataFrame:
    """Which findings each case has, as recorded with the predictions of the run's main model."""
    table, model = run.predictions, run.manifest_as(Manifest).model
    if table.empty or model is None:  # a study whose labels are the classes of attacked images keeps no predictions
        cases = run.cases.loc[run.cases["status"] == "ok", "case"]
        return pd.DataFrame({"case": cases, "finding": "", "label": math.nan})
    return table.loc[table["model"] == model.name, ["case", "finding", "label"]]


def _sentences(runs: list[Run], shared: int) -> Iterator[str]:
    one, other = (run.manifest_as(Manifest) for run in runs)
    changed = sorted(_changed(one.spec, other.spec))
    yield f"Specs differ in {', '.join(changed)}." if changed else "The specs are the same."
    if one.weights_hash != other.weights_hash:
        yield "The weights of the models differ."
    cases = [len(run.cases) for run in runs]
    yield f"{shared} cases are in both runs ({cases[0]} and {cases[1]} in each)."
    yield from _no_shared_method(one, other)


def _no_shared_method(one: Manifest, other: Manifest) -> Iterator[str]:
    """A sentence if the runs share no method, floors aside, and how to name stored maps alike."""
    first, second = ([entry.name for entry in run.methods if entry.kind != "floor"] for run in (one, other))
    if set(first) & set(second):
        return
    text = f"The runs share no method ({', '.join(first)}; {', '.join(second)})"
    # stored maps can be given the name that the other run has; "maps" is their name when none was given
    names = [name for run, others in ((one, second), (other, first)) if run.source.name == "maps" for name in others]
    if names:
        text += f"; name them alike, e.g. --maps {next((n for n in names if n != 'maps'), names[0])}=DIR"
    yield f"{text}."


def _changed(one: Mapping[str, Any], other: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key in {*one, *other}:
        left, right = one.get(key), other.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            yield from _changed(left, right, f"{path}{key}.")
        elif left != right:
            yield f"{path}{key}"
