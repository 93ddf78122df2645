"""Reservations about the verdict, one sentence each."""

import math
from collections.abc import Mapping
from itertools import product

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN
from heatcheck.judging.guessing import GUESS, is_below
from heatcheck.judging.judgement import judge
from heatcheck.report.caveats import failed, skipped, smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, listed
from heatcheck.studies.localization.report.facts import manifest
from heatcheck.studies.localization.report.sections.subgroups import clear_differences, divisions_of
from heatcheck.studies.localization.report.standing import NAMES, distance_from_readers, standing_on
from heatcheck.studies.localization.vocabulary import COUNT, TESTED, Counts

FEW_CASES = 10
EMPTY = "empty_map"  # the rule on maps that show nothing
LEAST_AUROC = 0.1  # above that, for a map to explain something
MOST_CASES = 0.9  # below this share of common cases with the readers there is a caveat


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    sentences = (
        _paper_rules(evidence),
        failed(evidence),
        skipped(evidence),
        _empty_maps(evidence),
        _weak_model(evidence),
        _rare(evidence),
        _other_cases(evidence),
        *_few_shared(evidence),
        _readers_at_floor(evidence),
        *_groups(evidence),
        smaller_settings(evidence),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _paper_rules(evidence: Evidence) -> str:
    """That the verdict does not follow the rules that the run was asked for."""
    if not manifest(evidence).asked_for_paper:
        return ""
    return (
        "This run was asked for the rules of the CheXlocalize paper; its numbers by those rules are in the section "
        "on presets, while the verdict follows the recommended rules."
    )


def _empty_maps(evidence: Evidence) -> str:
    """Which methods showed nothing at all on some findings that are there."""
    rows = {
        entrant.label: evidence.find(COUNT, Counts.FAILED_MAPS, ALL_FINDINGS, entrant.name)
        for entrant in (*evidence.methods, *evidence.floors)
    }
    failures = [f"{label} {row.value:,.0f} of {row.n_cases:,}" for label, row in rows.items() if row and row.value]
    if not failures:
        return ""
    is_zero = all(switch.used == switch.recommended for switch in manifest(evidence).switches if switch.name == EMPTY)
    treated = "they are failures and score 0" if is_zero else "they are scored like any other map"
    every = all(row.value == row.n_cases for row in rows.values() if row)
    empty = f"{'All' if every else 'Some'} maps of outlined findings are empty, with the same value everywhere"
    return f"{empty} ({', '.join(failures)}): {treated}."


def _weak_model(evidence: Evidence) -> str:
    """The findings that the model hardly recognises: a map cannot explain a guess."""
    weak = [f"{finding} ({row.value:.2f})" for finding, row in unrecognised(evidence)]
    if not weak:
        return ""
    return (
        f"The model is not shown to do better than guessing on {listed(weak)} (AUROC); a good score there "
        "may not come from what the model knows: check that the probabilities belong to these maps."
    )


def unrecognised(evidence: Evidence) -> list[tuple[str, Estimate]]:
    """The findings on which the model is not shown to do better than guessing, with their AUROC."""
    rows = [(finding, evidence.find(AUROC, "auroc", finding)) for finding in evidence.findings]
    return [(finding, row) for finding, row in rows if row and not _knows(row)]


def _knows(auroc: Estimate) -> bool:
    """Whether the model clearly does better than guessing, or so much worse that another sentence speaks of it.

    An AUROC that is undefined is listed as a gap instead.
    """
    above = judge(auroc.value - GUESS, auroc.low - GUESS, auroc.high - GUESS, LEAST_AUROC)
    return math.isnan(auroc.value) or above.is_yes or is_below(auroc, GUESS)


def _rare(evidence: Evidence) -> str:
    rare = []
    for finding in evidence.findings:
        rows = [evidence.find(MEAN, "iou", finding, m.name) or evidence.find(MEAN, "hit", finding, m.name)
                for m in evidence.methods]  # fmt: skip
        counts = [row.n_cases for row in rows if row]
        if counts and 0 < max(counts) < FEW_CASES:
            rare.append(f"{finding} ({max(counts)})")
    if not rare:
        return ""
    return f"There are fewer than {FEW_CASES} cases of {listed(rare)}: read those rows as anecdotes."


def _readers_at_floor(evidence: Evidence) -> str:
    """The findings on which even the readers do no better than the best floor, so that no method can be shown to."""
    if not evidence.has_readers:
        return ""
    places = []
    for finding, metric in product(evidence.findings, TESTED):
        readers = evidence.value(MEAN, metric, finding, evidence.readers.name)
        floors = [evidence.value(MEAN, metric, finding, floor.name) for floor in evidence.floors]
        if any(floor >= readers for floor in floors):
            places.append(f"{finding} ({NAMES[metric]})")
    if not places:
        return ""
    return (
        f"On {listed(places)} even the {evidence.readers.label.lower()} score no higher than the best floor: there a "
        "map can hardly be shown to be better."
    )


def _groups(evidence: Evidence) -> list[str]:
    """In which groups of cases the leading method or the model does clearly better or worse."""
    return [sentence for division in divisions_of(evidence) for sentence in clear_differences(evidence, division)]


def _other_cases(evidence: Evidence) -> str:
    """That methods were scored on different numbers of cases, so that their means are not comparable."""
    for metric in TESTED:
        rows = {m.label: evidence.find(MEAN, metric, ALL_FINDINGS, m.name) for m in evidence.methods}
        counts = {label: row.n_cases for label, row in rows.items() if row and not math.isnan(row.value)}
        if len(set(counts.values())) > 1:
            cases = _counted(counts)
            return f"The methods were scored on different cases ({cases}), so their order also reflects the cases."
    return ""


def _counted(counts: Mapping[str, int]) -> str:
    """Each method's cases where they are few, else the fewest and the most."""
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])
    if len(ranked) <= 3:
        return ", ".join(f"{label} {n:,}" for label, n in ranked)
    (most, high), (fewest, low) = ranked[0], ranked[-1]
    return f"from {low:,}, {fewest}, to {high:,}, {most}"


def _few_shared(evidence: Evidence) -> list[str]:
    """Where readers marked so few cases that a method's score and its distance from them rest on different data."""
    sentences = []
    for metric in TESTED:
        standing = standing_on(evidence, metric)
        difference = distance_from_readers(evidence, standing) if standing else None
        mean = evidence.find(MEAN, metric, ALL_FINDINGS, difference.method) if difference else None
        if difference and mean and difference.n_cases < MOST_CASES * mean.n_cases:
            name = evidence.metrics[metric].label
            sentences.append(f"{name}: the distance from the readers rests on the {difference.n_cases:,} of "
                             f"{count(mean.n_cases, 'case')} that they marked.")  # fmt: skip
    return sentences
