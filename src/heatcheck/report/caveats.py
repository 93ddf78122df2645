"""What a careful reader should hold against the verdict, one plain sentence each."""

from heatcheck.report.evidence import ALL, Evidence
from heatcheck.report.numbers import count, listed
from heatcheck.report.verdict import leader_on
from heatcheck.report.words import plain

FEW_CASES = 10


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    made = (_failed(evidence), _rare(evidence), *_close_calls(evidence))
    return tuple(sentence for sentence in made if sentence)


def _failed(evidence: Evidence) -> str:
    failed = int((evidence.run.cases["status"] == "failed").sum())
    if not failed:
        return ""
    total = len(evidence.run.cases)
    return f"{failed:,} of {count(total, 'case')} failed and took no part; the section on gaps lists them with reasons."


def _rare(evidence: Evidence) -> str:
    rare = []
    for finding in evidence.findings:
        rows = [evidence.find("mean", "iou", finding, m.name) or evidence.find("mean", "hit", finding, m.name)
                for m in evidence.methods]  # fmt: skip
        counts = [row.n_cases for row in rows if row]
        if counts and 0 < max(counts) < FEW_CASES:
            rare.append(f"{finding} ({max(counts)})")
    if not rare:
        return ""
    return f"Fewer than {FEW_CASES} cases stand behind {listed(rare)}: read those rows as anecdotes."


def _close_calls(evidence: Evidence) -> list[str]:
    """Where the leader's interval reaches into another method's, so that its lead may be luck."""
    sentences = []
    for metric in ("iou", "hit"):
        leader = leader_on(evidence, metric)
        first = evidence.find("mean", metric, ALL, leader.entrants[0].name) if leader else None
        if leader is None or first is None:
            continue
        others = [m for m in evidence.methods if m not in leader.entrants]
        rivals = {m: evidence.find("mean", metric, ALL, m.name) for m in others}
        near = [m.label for m, row in rivals.items() if row and row.high >= first.low]
        if near:
            shown = near if len(near) <= 3 else [*near[:2], f"{len(near) - 2} more"]
            name = plain(evidence.measures[metric]).name
            sentences.append(f"{name}: the interval of {leader.entrants[0].label} overlaps that of {listed(shown)}, "
                             "so the first place may be luck.")  # fmt: skip
    return sentences
