"""The box rule that a verdict follows, and whether the order of the methods would be another under another rule."""

import math
from collections.abc import Sequence
from dataclasses import replace

from heatcheck.core.records import Estimate
from heatcheck.judging.best import best_set
from heatcheck.judging.judgement import judgement_of
from heatcheck.judging.sizes import Sizes
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import few, listed
from heatcheck.studies.triggers.report.facts import manifest, trainings
from heatcheck.studies.triggers.report.sections.differences import method_pairs
from heatcheck.studies.triggers.vocabulary import SIZES, BoxPreset

METRIC = "trigger_iou"  # by which methods are ordered
Pair = tuple[str, str]


def box_rule(evidence: Evidence) -> str:
    """The sentence on the rule, and on each other rule under which methods clearly change places."""
    detection = manifest(evidence).detection
    if not detection.presets:
        return ""
    leading, *others = detection.presets
    under = {preset: _pairs(evidence.under(preset=preset.name), evidence) for preset in others}
    compared = {preset: rows for preset, rows in under.items() if rows}
    follows = f"Boxes follow the rule \u201c{leading.label}\u201d"
    if not compared:
        return f"{follows}."
    main = _pairs(evidence, evidence)
    changes = [_change(evidence, preset, main, rows) for preset, rows in compared.items()]
    if any(changes):
        return f"{follows}, and the order of methods depends on it: {'; '.join(filter(None, changes))}."
    labels = listed([f"\u201c{preset.label}\u201d" for preset in compared])
    return f"{follows}; no two methods are shown to change places under {labels}."


def _pairs(under: Evidence, evidence: Evidence) -> list[Estimate]:
    """Every two methods under a rule, judged by the size that matters between two of them.

    One training claims nothing of a method, so its rows have no size; of its own network the order can be judged.
    """
    rows = method_pairs(under, METRIC)
    if trainings(evidence) != 1:
        return rows
    size = Sizes(**manifest(evidence).sizes).between_methods(SIZES[METRIC])
    return [replace(row, size=size) if math.isnan(row.size) else row for row in rows]


def _change(evidence: Evidence, preset: BoxPreset, main: Sequence[Estimate], rows: Sequence[Estimate]) -> str:
    """What changes under another rule in words; empty where nothing clearly does."""
    labels = {method.name: method.label for method in evidence.methods}
    clear, other = _clear(main), _clear(rows)
    swapped = [(high, low) for high, low in sorted(clear) if (low, high) in other]
    before, after = (_may_be_best(each, list(labels)) for each in (main, rows))
    highest = set() if before & after else after
    if not swapped and not highest:
        return ""
    parts = []
    if swapped:
        pairs = [f"{labels[low]} is clearly above {labels[high]}" for high, low in swapped]
        parts.append(few(pairs) if len(pairs) > 3 else listed(pairs))
    if highest:
        names = listed([label for name, label in labels.items() if name in highest])
        was = listed([label for name, label in labels.items() if name in before])
        parts.append(f"the highest overlap may be that of {names}, not of {was}")
    return f"under \u201c{preset.label}\u201d {listed(parts)}"


def _clear(rows: Sequence[Estimate]) -> set[Pair]:
    """The pairs whose first method is clearly above the second; rows have the higher mean first."""
    return {(row.method, row.other_method) for row in rows if judgement_of(row).is_yes}


def _may_be_best(rows: Sequence[Estimate], names: Sequence[str]) -> set[str]:
    compared = {name for row in rows for name in (row.method, row.other_method)}
    found = best_set(
        [name for name in names if name in compared], {(row.method, row.other_method): row for row in rows}
    )
    return set(found.members)
