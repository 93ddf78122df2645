"""The first screen: a status for each question, which maps to show for which findings, one case and one chart."""

import math
from collections.abc import Mapping, Sequence

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN
from heatcheck.judging.guessing import GUESS
from heatcheck.judging.judgement import Answer, both, judge, judgement_of, opposite_of
from heatcheck.report.blocks.films import FilmStrip
from heatcheck.report.charts import legend
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.first_screen import FirstScreen, Light, Status
from heatcheck.report.numbers import SCORE, count, difference_of, few, interval, number
from heatcheck.report.verdict import would_decide
from heatcheck.studies.localization.report.caveats import LEAST_AUROC, unrecognised
from heatcheck.studies.localization.report.figures import Shown, ranking
from heatcheck.studies.localization.report.gallery import LocalizationGallery, telling_strip
from heatcheck.studies.localization.report.standing import NAMES, Standing, distance_from_readers, standing_on
from heatcheck.studies.localization.report.verdict import against_best_floor, against_floors, limits
from heatcheck.studies.localization.vocabulary import TESTED

USES = {"hit": "To point at findings", "iou": "To outline findings"}  # what each score is about, for a user
LIGHTS = {Answer.YES: Light.YES, Answer.NO: Light.NO, Answer.OPEN: Light.OPEN}
CHARTED = Shown(methods=4, floors=2)


def answer(evidence: Evidence, gallery: LocalizationGallery) -> FirstScreen | None:
    """The first screen; None while no method has a score."""
    standings = [standing for metric in TESTED if (standing := standing_on(evidence, metric))]
    if not standings:
        return None
    readers = [_near_readers(evidence, standings)] if evidence.has_readers else []
    statuses = (_beats_floors(evidence), *readers, _has_best(evidence, standings), _separates(evidence))
    enough = _enough_patients(evidence, standings)
    return FirstScreen(
        statuses=tuple(status for status in (*statuses, enough) if status),
        recommendation=_recommendation(evidence),
        picture=_picture(gallery),
        chart=_chart(evidence, standings),
        chart_keys=_chart_keys(evidence),
    )


Judged = Mapping[str, Mapping[Entrant, Answer]]  # by metric and method: whether it clearly beats every floor


def judged_against_floors(evidence: Evidence) -> Judged:
    """Whether each method clearly beats every floor over all findings, by each metric, the highest method first."""
    judged = {}
    for metric in TESTED:
        tests = against_floors(evidence, metric)
        ranked = sorted(tests, key=lambda method: -evidence.value(MEAN, metric, ALL_FINDINGS, method.name))
        judged[metric] = {method: both(*map(judgement_of, tests[method].values())).answer for method in ranked}
    return {metric: answers for metric, answers in judged.items() if answers}


def _beats_floors(evidence: Evidence) -> Status:
    question = "Better than a picture made without the model?"
    judged = judged_against_floors(evidence)
    if not judged:
        none = "No floor was run." if not evidence.floors else "No method was tested against a floor."
        return Status(question, Light.OPEN, "Not tested", none)
    winners = {metric: [m for m, each in answers.items() if each is Answer.YES] for metric, answers in judged.items()}
    methods = count(len(evidence.methods), "method")
    sentence = floors_in_short(evidence)
    if all(winners.values()):
        return Status(question, Light.YES, "Yes", sentence)
    if any(winners.values()):
        only = " and ".join(NAMES[metric] for metric, names in winners.items() if names)
        return Status(question, Light.PARTLY, f"On {only} only", sentence)
    if all(each is Answer.NO for answers in judged.values() for each in answers.values()):
        return Status(question, Light.NO, "No", f"None of {methods} beats every floor.")
    return Status(question, Light.OPEN, "Not shown", sentence)


def floors_in_short(evidence: Evidence) -> str:
    """How many methods clearly beat every floor, by each metric."""
    judged = judged_against_floors(evidence)
    parts = []
    for metric, answers in judged.items():
        winners = [method.label for method, each in answers.items() if each is Answer.YES]
        undecided, no = (sum(each is answer for each in answers.values()) for answer in (Answer.OPEN, Answer.NO))
        words = f"{few(winners)} on {NAMES[metric]}" if winners else f"no method on {NAMES[metric]}"
        rest = [f"for {count(undecided, 'method')} it is not shown"] if undecided else []
        rest += [f"{count(no, 'method')} {'does' if no == 1 else 'do'} not"] if no and (winners or undecided) else []
        parts.append(words + (f" ({', '.join(rest)})" if rest else ""))
    return f"Clearly better than every floor: {'; '.join(parts)}." if parts else ""


def _near_readers(evidence: Evidence, standings: Sequence[Standing]) -> Status:
    """Whether the leading method comes near the readers, by the metric on which it does best."""
    who = evidence.readers.label.lower()
    question = f"As good as the {who}?"
    rows = {each.metric: row for each in standings if (row := distance_from_readers(evidence, each))}
    rows = {metric: row for metric, row in rows.items() if not math.isnan(row.value)}
    if not rows:
        return Status(question, Light.OPEN, "Not compared", "No case has a score of both.")
    below = {metric: opposite_of(row) for metric, row in rows.items()}
    sentence = f"Highest method minus readers: {'; '.join(_distance(evidence, m, row) for m, row in rows.items())}."
    if all(each.is_yes for each in below.values()):
        return Status(question, Light.NO, "No", sentence)
    if all(each.is_no for each in below.values()):
        return Status(question, Light.YES, "Yes", sentence)
    if any(each.is_no for each in below.values()):
        near = " and ".join(NAMES[metric] for metric, each in below.items() if each.is_no)
        return Status(question, Light.PARTLY, f"On {near} only", sentence)
    return Status(question, Light.OPEN, "Not shown", sentence)


def _distance(evidence: Evidence, metric: str, row: Estimate) -> str:
    unit = difference_of(evidence.metrics[metric].unit)
    unit = unit.rounded(unit.decimals - 1)
    between = interval(row.low, row.high, unit, signed=True)
    return f"{NAMES[metric]} {number(row.value, unit, signed=True)}" + (f" ({between})" if between else "")


def _has_best(evidence: Evidence, standings: Sequence[Standing]) -> Status | None:
    question = "Is one method the best?"
    if len(evidence.methods) < 2:
        return None
    parts = [_candidates(each) for each in standings]
    if all(each.is_clear for each in standings) and len({each.leader for each in standings}) == 1:
        return Status(question, Light.YES, standings[0].leader.label, "Clearly above every other method.")
    if any(each.is_clear for each in standings):
        only = " and ".join(NAMES[each.metric] for each in standings if each.is_clear)
        return Status(question, Light.PARTLY, f"On {only} only", f"{'; '.join(parts)}.")
    return Status(question, Light.OPEN, "Not shown", f"{'; '.join(parts)}.")


def _candidates(standing: Standing) -> str:
    name, leader = NAMES[standing.metric], standing.leader.label
    if standing.is_clear:
        return f"{leader} has the best {name}"
    if len(standing.may_be_best) == 1:
        return f"{leader} has the best {name}, by less than matters"
    if not standing.is_tested:
        return f"{leader} has the highest {name}, untested"
    return f"{len(standing.may_be_best)} may have the best {name}, {leader} is highest"


def _separates(evidence: Evidence) -> Status | None:
    """Whether the model itself tells images with a finding from images without it."""
    row = evidence.find(AUROC, "auroc", ALL_FINDINGS)
    if row is None or math.isnan(row.value):
        return None
    judged = judge(row.value - GUESS, row.low - GUESS, row.high - GUESS, LEAST_AUROC)
    word = {Answer.YES: "Yes", Answer.NO: "No", Answer.OPEN: "Not shown"}[judged.answer]
    between = interval(row.low, row.high, SCORE.rounded(2))
    sentence = f"AUROC {number(row.value, SCORE.rounded(2))}{f' ({between})' if between else ''} over all findings."
    question, weak = "Does the model recognise the findings?", [name for name, _ in unrecognised(evidence)]
    if judged.answer is Answer.YES and weak:
        sentence = f"{sentence} Not shown to do better than guessing on {few(weak)}."
        known = len(evidence.findings) - len(weak)
        return Status(question, Light.PARTLY, f"{known} of {len(evidence.findings)}", sentence)
    return Status(question, LIGHTS[judged.answer], word, sentence)


def _enough_patients(evidence: Evidence, standings: Sequence[Standing]) -> Status | None:
    found = limits(evidence, standings)
    if not found.patients:
        return None
    question, patients = "Enough patients to tell?", count(found.patients, "patient")
    limited = f"{found.in_short}." if found.in_short else ""
    if found.is_thin:
        return Status(question, Light.PARTLY, "A first impression", f"{patients}; {limited}")
    if found.thin:
        word = f"For {found.findings - found.thin} of {count(found.findings, 'finding')}"
        return Status(question, Light.PARTLY, word, f"{patients}; {limited}")
    return Status(question, Light.YES, patients, f"{limited[:1].upper()}{limited[1:]}")


def _recommendation(evidence: Evidence) -> tuple[str, ...]:
    """What to show and what not, by the tests against floors; what would decide what is open."""
    judged = judged_against_floors(evidence)
    if not judged:
        return (
            "Before you show any map, compare it with floors (pictures made without the model): its worth is unknown.",
        )
    sentences = [_use(evidence, metric, answers) for metric, answers in sorted(judged.items())]
    return tuple(sentence for sentence in (*sentences, _by_finding(evidence), _next(evidence, judged)) if sentence)


def _use(evidence: Evidence, metric: str, answers: Mapping[Entrant, Answer]) -> str:
    """Which methods serve one use and on which findings they fail, or why none does."""
    advised = [method for method, each in answers.items() if each is Answer.YES]
    winners, name = [method.label for method in advised], NAMES[metric]
    if winners:
        beats = "beats" if len(winners) == 1 else "beat"
        use = f"{USES[metric]}, use {few(winners, 'or')}, which clearly {beats} every floor on {name} over all findings"
        return f"{use}{_fails(evidence, metric, advised)}."
    if all(each is Answer.NO for each in answers.values()):
        return f"{USES[metric]}, use none of these maps: over all findings no method beats every floor on {name}."
    return f"{USES[metric]}, no method can be recommended yet: that one beats every floor on {name} is not shown."


def _fails(evidence: Evidence, metric: str, advised: Sequence[Entrant]) -> str:
    """The findings on which an advised method is clearly below the best floor."""
    parts = []
    for finding in evidence.findings:
        tests = against_best_floor(evidence, metric, finding)
        below = [method.label for method in advised if opposite_of(tests.get(method)).is_yes]
        if below:
            parts.append(f"{finding} ({few(below)})")
    return f"; not on {few(parts)}: clearly below the best floor there" if parts else ""


def _by_finding(evidence: Evidence) -> str:
    """Which method clearly beats the best floor on which finding, and where none is shown to."""
    won = won_by_finding(evidence)
    if len(evidence.findings) < 2 or not won:
        return ""
    poor = [finding for finding, winners in won.items() if not winners]
    good = {finding: winners for finding, winners in won.items() if winners}
    parts: list[str] = []
    while good:  # the method that serves most of the findings still without one comes next
        methods = [method for winners in good.values() for method in winners]
        method = max(dict.fromkeys(methods), key=methods.count)
        served = [f"{f} ({' and '.join(winners[method])})" for f, winners in good.items() if method in winners]
        verb = "" if parts else " clearly beats the best floor"
        parts.append(f"{method.label}{verb} on {few(served)}")
        good = {finding: winners for finding, winners in good.items() if method not in winners}
    none = f"on {few(poor)} no method is shown to beat the best floor: show no map there" if poor else ""
    text = "; ".join(part for part in (*parts, none) if part)
    return f"Single findings: {text}."


Winners = Mapping[Entrant, Sequence[str]]  # the metrics by which a method clearly beats the best floor, in words


def won_by_finding(evidence: Evidence) -> Mapping[str, Winners]:
    """The methods that clearly beat the best floor on each finding; findings without a test are left out."""
    won: dict[str, dict[Entrant, list[str]]] = {}
    for finding in evidence.findings:
        for metric in TESTED:
            tests = against_best_floor(evidence, metric, finding)
            if tests:
                won.setdefault(finding, {})
            for method, row in tests.items():
                if judgement_of(row).is_yes:
                    won[finding].setdefault(method, []).append(NAMES[metric])
    return won


def _next(evidence: Evidence, judged: Judged) -> str:
    """How many patients would decide whether the leading method beats the floors, where that is open."""
    for metric, answers in judged.items():
        standing = standing_on(evidence, metric)
        if standing is None or answers.get(standing.leader) is not Answer.OPEN:
            continue
        rows = against_floors(evidence, metric)[standing.leader].values()
        undecided = [row for row in rows if row and judgement_of(row).answer is Answer.OPEN]
        needed = max((row for row in undecided if row.n_needed), key=lambda row: row.n_needed or 0, default=None)
        if needed is not None:
            about = would_decide(needed).removesuffix(" would decide it")
            return f"Next: {about} would decide whether {standing.leader.label} beats every floor by {NAMES[metric]}."
    return ""


def _picture(gallery: LocalizationGallery) -> FilmStrip | None:
    return telling_strip(gallery)


def _chart(evidence: Evidence, standings: Sequence[Standing]) -> Panel | None:
    """Readers, the highest methods and the highest floors, by the metric that the advice rests on."""
    judged = judged_against_floors(evidence)
    metrics = [standing.metric for standing in standings]
    advised = [metric for metric in metrics if Answer.YES in judged.get(metric, {}).values()]
    return ranking(evidence, (advised or metrics)[0], CHARTED)


def _chart_keys(evidence: Evidence) -> tuple[legend.Key, ...]:
    readers = (legend.readers(evidence.readers.label.lower()),) if evidence.has_readers else ()
    floors = (legend.floor_tick("floor: made without the model"),) if evidence.floors else ()
    return (legend.METHOD, *readers, *floors)
