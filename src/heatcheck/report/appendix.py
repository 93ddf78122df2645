"""The end of every page: what is missing from the numbers, how the run was made, and the tables to download."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from heatcheck.core.records import HUMAN
from heatcheck.core.vocabulary import PLAIN
from heatcheck.report import case_scores
from heatcheck.report.blocks.block import (
    Block,
    Code,
    Facts,
    Heading,
    ListCell,
    ListColumn,
    Listing,
    bullets,
    fold,
    prose,
)
from heatcheck.report.caveats import skipped_in_words
from heatcheck.report.downloads import Download, download
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, SECONDS, count, listed, number
from heatcheck.report.page import Section, record_of
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run

_PAIR = ["metric", "method"]
_SHARED = ("metric", "reason", "undefined", "of")
LEFT_OUT = "They are left out of the means, never counted as 0."
SHOWN = 100  # rows of a list of gaps on the page; the download has all


@dataclass(frozen=True, slots=True)
class UndefinedScores:
    """How many scores are undefined, by metric, method and reason, most first; `of` is all scores of that pair."""

    table: pd.DataFrame
    n_scores: int


def undefined_scores(run: Run, model: str = "", conditions: Sequence[str] = (PLAIN,)) -> UndefinedScores:
    """The run's undefined scores under these conditions, counted without holding them.

    With a model, only its scores and the readers' mean are counted. Values that the run does not list as metrics, such
    as the pixel counts behind rates, are left out.
    """
    metrics = [entry.name for entry in run.manifest_as(Manifest).metrics]
    counted: Counter[tuple[str, str, str, bool]] = Counter()
    for scores in run.row_groups("scores", [*_PAIR, "reason", "condition", "value", "model"]):
        plain = _among(scores, "condition", conditions)
        kept = _among(plain, "model", [model, ""]) if model else plain
        counted.update(_counts(_among(kept, "metric", metrics) if metrics else kept))
    rows = [(*key, n) for key, n in counted.items()]
    table = run.shown(pd.DataFrame(rows, columns=[*_PAIR, "reason", "missing", "undefined"]))
    totals = table.groupby(_PAIR)["undefined"].sum().rename("of").reset_index()
    missing = table[table["missing"].astype(bool)].groupby([*_PAIR, "reason"], as_index=False)["undefined"].sum()
    order = ["undefined", *_PAIR, "reason"]
    ranked = missing.merge(totals, on=_PAIR).sort_values(order, ascending=[False, True, True, True])
    return UndefinedScores(ranked, counted.total())


def _among(table: Any, column: str, names: Sequence[str]) -> Any:  # noqa: ANN401 - pyarrow ships no types
    return table.filter(pc.is_in(table[column].cast(pa.string()), pa.array(list(names))))


def _counts(scores: Any) -> dict[tuple[str, str, str, bool], int]:  # noqa: ANN401 - pyarrow ships no types
    """How often each metric, method, reason and "is undefined" come together."""
    missing = pc.is_null(scores["value"], nan_is_null=True)
    keys = scores.select([*_PAIR, "reason"]).append_column("missing", missing)
    counted = keys.group_by(keys.column_names).aggregate([([], "count_all")]).to_pydict()
    sizes = counted.pop("count_all")
    return dict(zip(zip(*counted.values(), strict=True), sizes, strict=True))


def failed_cases(run: Run) -> pd.DataFrame:
    """The cases that failed, with the stage and the reason."""
    columns = ["case", "patient", "stage", "reason"]
    failed = run.cases[run.cases["status"] == "failed"]
    return failed[columns].sort_values("case")


def is_network(cases: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows record a failed training instead of a patient's image."""
    return (cases["stage"] == "training") & (cases["patient"] == "")


def seconds_per_map(run: Run) -> pd.DataFrame:
    """How long each method took for one map, slowest first."""
    steps = run.timings[run.timings["step"] == "map"]
    if steps.empty:
        return pd.DataFrame({name: [] for name in ("method", "maps", "seconds", "seconds_per_map")})
    table = steps.groupby("method", as_index=False)[["maps", "seconds"]].sum()
    table["seconds_per_map"] = table["seconds"] / table["maps"].where(table["maps"] > 0)
    return table.sort_values("seconds_per_map", ascending=False)


def gaps(
    evidence: Evidence, scores: UndefinedScores, hint: str, *, every_model: bool = False, treated: str = LEFT_OUT
) -> Section:
    """Failed cases and undefined scores, how means treat them, and a hint about which of them are not failures.

    The scores are those of the primary model, or of `every_model`.
    """
    one_of_several = len(evidence.models) > 1 and not every_model
    whose = f" of {evidence.models[0].label} and the readers" if one_of_several else ""
    failed = failed_cases(evidence.run)
    networks = int(is_network(failed).sum())
    undefined = int(scores.table["undefined"].sum())
    blocks = (
        Heading("Failed cases and networks" if networks else "Failed cases"),
        *_failed(evidence, failed, networks),
        Heading("Undefined scores"),
        *_undefined(evidence, scores, whose, f"{treated} {hint}".strip()),
    )
    n_failed = len(failed) - networks
    summary = f"{count(n_failed, 'failed case')} and {count(undefined, 'undefined score')}."
    return Section("gaps", "What is missing", "Gaps", blocks, summary)


def _failed(evidence: Evidence, failed: pd.DataFrame, networks: int) -> tuple[Block, ...]:
    """How many cases and trainings failed, and each with its reason."""
    cases = len(evidence.run.cases) - networks
    if not len(failed):
        none = "None" if evidence.finished else "None so far"
        return prose(f"{none}: all {cases:,} cases were processed." if cases else "No case has been recorded yet.")
    n_failed = len(failed) - networks
    sentence = (
        f"{n_failed:,} of {cases:,} cases failed and are in no number above."
        if n_failed
        else f"All {cases:,} cases were processed."
    )
    they = "they" if networks > 1 else "it"
    training = f"The training of {count(networks, 'network')} failed; what {they} would have scored is undefined."
    columns = ListColumn("Case or network" if networks else "Case"), ListColumn("Failed while")
    rows = tuple((str(row["case"]), str(row["stage"]), str(row["reason"])) for row in _rows(failed.head(SHOWN)))
    more = f"The first {SHOWN} are shown; failed_cases.csv below has all." if len(failed) > SHOWN else ""
    return (
        *prose(sentence, training if networks else ""),
        Listing("Failed cases", (*columns, ListColumn("Reason", wide=True)), rows),
        *prose(more, small=True),
    )


def _undefined(evidence: Evidence, scores: UndefinedScores, whose: str, treated: str) -> tuple[Block, ...]:
    """How many scores are undefined and how means treat them, and the reasons by measure and method."""
    joined = _joined(scores.table, evidence)
    if not joined:
        none = "None" if evidence.finished else "None so far"
        every = f"{none}: every one of the {scores.n_scores:,} scores is defined."
        return prose(every if scores.n_scores else "No score has been recorded yet.")
    measures = {name: measure.label for name, measure in evidence.metrics.items()}
    rows = tuple(
        (
            measures.get(str(row["metric"]), str(row["metric"])),
            str(row["methods"]),
            str(row["reason"] or "no reason recorded"),
            f"{row['undefined']:,}",
            f"{row['of']:,}",
        )
        for row in joined[:SHOWN]
    )
    columns = (
        ListColumn("Measure"),
        ListColumn("Method"),
        ListColumn("Reason", wide=True),
        ListColumn("Undefined, each", numeric=True),
        ListColumn("Of", numeric=True),
    )
    n = int(scores.table["undefined"].sum())
    more = f"{len(joined) - SHOWN} more rows are in undefined.csv below." if len(joined) > SHOWN else ""
    return (
        *prose(f"{n:,} of {scores.n_scores:,} scores{whose} are undefined.", treated),
        Listing("Undefined scores", columns, rows),
        *prose(more, small=True),
    )


def _joined(undefined: pd.DataFrame, evidence: Evidence) -> list[dict[str, object]]:
    """The rows in their order; rows that differ only in the method are joined."""
    entrants = (evidence.readers, *evidence.methods, *evidence.floors)
    labels = {entrant.name: entrant.label for entrant in entrants}
    together: dict[tuple[object, ...], list[str]] = {}
    for row in _rows(undefined):
        facts = tuple(row[key] for key in _SHARED)
        together.setdefault(facts, []).append(str(row["method"]))
    return [
        dict(zip(_SHARED, facts, strict=True)) | {"methods": _named(methods, labels)}
        for facts, methods in together.items()
    ]


def _named(methods: Sequence[str], labels: Mapping[str, str]) -> str:
    if len(methods) > 1 and set(methods) == set(labels) - {HUMAN}:
        return "every method"
    every = {"": "the model itself", **labels}
    return listed([every.get(name, name) for name in methods])


def record(evidence: Evidence) -> Section:
    """How the run was made: settings, versions, methods and their times."""
    made, source = record_of(evidence), evidence.manifest.source_description
    entrants = _entrants(evidence)
    hashes = tuple((name, Markup("<code>{}</code>").format(value)) for name, value in made.hashes)
    blocks = (
        *prose(Markup("<b>Data.</b> {}").format(source) if source else ""),
        *((Heading("Where this differs from the published protocol, and why"),) if made.notes else ()),
        *bullets(made.notes),
        *((Heading("What was tested"), entrants) if entrants else ()),
        *prose("Left out, because they cannot explain the model:" if made.skipped else ""),
        *bullets(skipped_in_words(made.skipped)),
        *((Heading("The run"), Facts(made.facts)) if made.facts else ()),
        *fold("Versions", (Facts(made.versions),) if made.versions else ()),
        *fold("Fingerprints of what went in", (Facts(hashes),) if hashes else ()),
        *(fold("The full spec", (Code(made.spec),)) if made.spec else prose("The run recorded no spec.")),
    )
    return Section("record", "How this was made", "Record", blocks, "Data, settings, versions and the full spec.")


def _entrants(evidence: Evidence) -> Listing | None:
    """Every method and floor with what it does, its settings and the time that one of its maps takes."""
    speed = {str(row["method"]): float(str(row["seconds_per_map"])) for row in _rows(seconds_per_map(evidence.run))}
    rows = tuple(
        (
            each.label,
            ListCell(each.kind, aside=each.family if each.family != each.kind else ""),
            "; ".join(part.rstrip(".") for part in (each.summary, each.note) if part) + ".",
            ListCell(_settings(each), aside=f"changed: {listed(each.changed)}" if each.changed else ""),
            number(speed[each.name], SECONDS) if each.name in speed else MISSING,
        )
        for each in (*evidence.methods, *evidence.floors)
    )
    columns = (
        ListColumn("Name"),
        ListColumn("Kind"),
        ListColumn("What it does", wide=True),
        ListColumn("Settings", wide=True),
        ListColumn("Time per map", numeric=True),
    )
    return Listing("Methods and floors", columns, rows) if rows else None


def _settings(entrant: Entrant) -> str:
    """Every setting in force; of a run that recorded none, whether they are the usual ones."""
    if entrant.settings is None:
        return "the others as usual" if entrant.changed else "not recorded"
    return ", ".join(entrant.settings) or "has none"


def downloads(evidence: Evidence, undefined: pd.DataFrame) -> tuple[Download, ...]:
    """The run's tables as downloads; empty ones are left out."""
    run = evidence.run
    tables = (
        ("estimates.csv", "every number of this report with its interval, counts and reasons", run.estimates),
        ("undefined.csv", "undefined scores by metric, method and reason", undefined),
        ("failed_cases.csv", "cases that failed, with stage and reason", failed_cases(run)),
        ("seconds_per_map.csv", "how long each method took", seconds_per_map(run)),
    )
    by_case = case_scores.download(run)
    return (*(download(*each) for each in tables if len(each[2])), *([by_case] if by_case else []))


def _rows(table: pd.DataFrame) -> list[dict[str, object]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
