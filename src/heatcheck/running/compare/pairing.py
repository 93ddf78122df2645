"""Several runs of one study: the cases they share, in what their specs differ, and how much their scores differ."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from heatcheck.core.errors import InputError
from heatcheck.estimating.compared_scores import Compared
from heatcheck.report.numbers import listed
from heatcheck.running.registry import study_of
from heatcheck.runs.differences import weights_in_words
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run, read_run


def compare_runs(*paths: Path, draws: int = 2000) -> Compared:
    """The differences in the runs' specs, and of each run's scores from the first one's.

    Intervals vary patients, and those of one metric allow for all methods and runs that are compared by it.
    """
    return compared_runs(finished_runs(paths), draws)


def finished_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in these folders, which must be finished and of one study."""
    if len(paths) < 2:
        raise InputError(f"expected the folders of two runs or more, got {len(paths)}; name one more")
    runs = [_finished(path) for path in paths]
    first = runs[0].manifest_as(Manifest).study
    for run in runs[1:]:
        other = run.manifest_as(Manifest).study
        if other != first:
            raise InputError(
                f"{runs[0].path} and {run.path} are a {first} and a {other} study; compare runs of the same study"
            )
    return runs


def compared_runs(runs: Sequence[Run], draws: int = 2000) -> Compared:
    """The same of runs that were read."""
    shared = _shared_cases(runs)
    if not shared:
        raise InputError(
            f"{listed([str(run.path) for run in runs])} have no case in common; compare runs on the same cases "
            "(pseudonyms differ between runs)"
        )
    compared = study_of(runs[0]).compare_runs(runs, draws)
    sentences = [*_sentences(runs, shared), *compared.sentences]
    if not compared.rows:
        where = "both runs" if len(runs) == 2 else "the first run and another"
        sentences.append(f"No score can be compared: none is defined in {where} for the same case and method.")
    return Compared(compared.rows, tuple(sentences), compared.means)


def run_names(runs: Sequence[Run]) -> list[str]:
    """A short name for each run: its folder's, with a number where two folders have the same name."""
    names = [run.path.resolve().name for run in runs]
    seen = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [name if names.count(name) == 1 else f"{name} ({n})" for name, n in zip(names, seen, strict=True)]


def _finished(path: Path) -> Run:
    run = read_run(path)
    if run.manifest_as(Manifest).status != "complete":
        raise InputError(f"{path} is not finished; continue it with the command that began it")
    return run


def _shared_cases(runs: Sequence[Run]) -> int:
    """The number of cases in all runs; cases with the same name must have the same labels."""
    labels = [_labels(run) for run in runs]
    for first, second in combinations(range(len(runs)), 2):
        _require_same_labels(labels[first], labels[second], str(runs[second].path))
    shared = set(labels[0]["case"])
    for other in labels[1:]:
        shared &= set(other["case"])
    return len(shared)


def _require_same_labels(one: pd.DataFrame, other: pd.DataFrame, where: str) -> None:
    both = one.merge(other, on=["case", "finding"], suffixes=("_first", "_second"))
    differ = (both["label_first"] != both["label_second"]) & both["label_first"].notna() & both["label_second"].notna()
    if differ.any():
        raise InputError(
            f"case {both['case'][differ].iloc[0]!r} has other labels in {where}: different images have the same "
            "name, so the runs cannot be compared; compare runs on the same images"
        )


def _labels(run: Run) -> pd.DataFrame:
    """Which findings each case has, as recorded with the predictions of the run's main model."""
    table, model = run.predictions, run.manifest_as(Manifest).model
    if table.empty or model is None:  # a study whose labels are the classes of attacked images keeps no predictions
        cases = run.cases.loc[run.cases["status"] == "ok", "case"]
        return pd.DataFrame({"case": cases, "finding": "", "label": math.nan})
    return table.loc[table["model"] == model.name, ["case", "finding", "label"]]


def _sentences(runs: Sequence[Run], shared: int) -> Iterator[str]:
    one, *others = (run.manifest_as(Manifest) for run in runs)
    for name, other in zip(run_names(runs)[1:], others, strict=True):
        changed = sorted(_changed(one.spec, other.spec))
        words = f"differ in {', '.join(changed)}" if changed else "are the same"
        yield f"Specs {words}." if len(runs) == 2 else f"Specs of {name} and the first run {words}."
        if one.weights_hash != other.weights_hash:
            what = weights_in_words({"spec": [one.spec, other.spec]}).removeprefix("the model's ")
            yield f"The {what} of {'the models' if len(runs) == 2 else name} differ."
    cases, which = listed([str(len(run.cases)) for run in runs]), "both" if len(runs) == 2 else "all"
    yield f"{shared:,} {'case is' if shared == 1 else 'cases are'} in {which} runs ({cases} in each)."
    for other in others:
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
