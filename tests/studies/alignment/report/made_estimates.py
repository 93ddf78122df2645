"""The numbers of a made-up alignment study: scores drawn around known levels, and what the study makes of them."""

import math
import zlib
from dataclasses import replace

import numpy as np

from heatcheck.core.records import ALL_FINDINGS, Estimate, Score
from heatcheck.core.vocabulary import condition
from heatcheck.studies.alignment.vocabulary import ONE_TRAINING

FLOOR, HUMAN_READERS = 0.10, 0.70
SIZE = 0.09  # a tenth of the room above the floor
MAP_METRICS = ("mass", "rank", "hit", "iou")
OFFSET = {"mass": 0.0, "rank": 0.02, "hit": 0.15, "iou": -0.03}
# by place of the model and of the method: mass of base, control, aligned and misaligned; reliance of the last two
LEVELS = {
    (0, 0): (0.24, 0.25, 0.62, 0.06, 1.50, 0.40), (0, 1): (0.55, 0.56, 0.80, 0.12, 0.95, 0.92),
    (1, 0): (0.12, 0.13, 0.50, 0.05, 0.60, 0.02), (1, 1): (0.20, 0.21, 0.23, 0.19, 0.04, 0.03),
}  # fmt: skip
RELIANCE = (0.90, 0.03)  # of the base models
ARMS = ("base", "control", "align", "misalign")
READINGS = {(0, 0): ("method", "follows"), (0, 1): ("shows", "foolable"), (1, 0): ("model", "follows"),
            (1, 1): ("undecided", "unmoved")}  # fmt: skip
SENTENCES = {
    ("method", "follows"): "The model relies on the region, but the map does not show it: the method’s fault.",
    ("shows", "foolable"): "The map moved while the model stayed as it was: do not trust it as evidence.",
    ("model", "follows"): (
        "Hiding the outlined area lowers the model's score no more than hiding other places (reliance 0.03, 95 % −0.12 "
        "to 0.18, out of 1.80), and the map does not mark it better than chance (mass accuracy +0.02, 95 % −0.01 to "
        "+0.05 against random maps): a truthful map would look like this, so the low score is the model's. Fine-tuned "
        "toward the outlines, the map's score rose (+0.38, 95 % +0.34 to +0.41) and reliance with it (+0.57, 95 % "
        "+0.41 to +0.72); away from them, the map's score fell (−0.08, 95 % −0.12 to −0.05) and whether reliance did "
        "is not clear (−0.01, 95 % −0.15 to +0.14). The map followed the model."
    ),
    ("undecided", "unmoved"): "The intervals are too wide to tell.",
}
PAIRS = (
    ("mass_align", "rank_align"), ("mass_misalign", "rank_misalign"), ("mass_align", "mass_misalign"),
    ("rank_align", "rank_misalign"), ("rank_align", "mass_misalign"), ("mass_align", "rank_misalign"),
)  # fmt: skip
FAILED = "the loss is not a number after epoch 2"


def places(plan):
    """Every pair of a model and a trained method, with its place in the levels."""
    return [((i % 2, k % 2), model, method) for i, model in enumerate(plan.models)
            for k, method in enumerate(plan.methods)]  # fmt: skip


def under(arm, seed=None, **facts):
    """The condition of one network."""
    return condition(arm=arm, **({} if seed is None or arm == "base" else {"seed": seed}), **facts)


def drawn(plan, level, *names):
    """One value a case around the level, the same for the same names."""
    rng = np.random.default_rng(zlib.crc32("/".join(map(str, names)).encode()))
    return np.clip(level + rng.normal(0, 0.05, plan.cases), 0, 1)


def all_scores(plan):
    """The scores of every network, as the study leaves them."""
    rows = []
    for finding in plan.findings:
        for metric in MAP_METRICS:
            rows += scored(plan, (finding, "random", "", metric), under("floor"), FLOOR + OFFSET[metric] / 2)
            if plan.human == "readers":
                rows += scored(plan, (finding, "human", "", metric), under("human"), HUMAN_READERS)
    for place, model, method in places(plan):
        for finding in plan.findings:
            for arm, level in zip(ARMS, LEVELS[place], strict=False):
                for seed in (None,) if arm == "base" else plan.seeds:
                    failed = (model, method, finding, arm, seed) in plan.failed
                    for metric in MAP_METRICS:
                        value = math.nan if failed else level + OFFSET[metric]
                        of = (finding, method, model, metric)
                        rows += scored(plan, of, under(arm, seed), value)
                        rows += scored(plan, of, under(arm, seed, split="finetune"), value + 0.15)
    return rows


def scored(plan, of, where, level):
    """A score a case, of a finding, method, model and metric; undefined where the level is."""
    values = drawn(plan, 0.3 if math.isnan(level) else level, *of, where)
    return [Score(f"{of[0]}-{i}", f"p{i // 2}", *of, math.nan if math.isnan(level) else float(value), condition=where,
                  reason=FAILED if math.isnan(level) else "") for i, value in enumerate(values)]  # fmt: skip


def all_estimates(plan):
    """Every row of the plan's run."""
    rows = [row for finding in plan.findings for row in ends(plan, finding)]
    for place, model, method in places(plan):
        rows += of_pair(plan, place, model, method)
    for i, model in enumerate(plan.models):
        rows += [made("separation", "reliance", finding, "", model, 1.8, arm="base") for finding in plan.findings]
        rows += predictions(plan, model, "", dict.fromkeys(("base", "control"), 0.80 - 0.05 * i))
        rows += reliances(plan, model, "", {"base": RELIANCE[i % 2], "control": RELIANCE[i % 2] + 0.01})
        rows += [made("mean", "reliance_added", f, "", model, 0.7, arm="base") for f in plan.findings]
        rows += [made("mean", "reliance", f, "", model, 0.12, arm="untrained") for f in plan.findings]
    return rows + compared(plan) + regressions(plan) + correlations(plan)


def made(
    statistic, metric, finding, method, model, value, *,
    width=0.03, n=24, p_value=math.nan, size=math.nan, other_method="", reason="", **facts,
):  # fmt: skip
    """An estimate with its interval."""
    return Estimate(statistic, metric, finding, method, model, value, value - width, value + width, n_cases=n,
                    n_patients=n // 2, condition=condition(**facts), p_value=p_value, size=size,
                    other_method=other_method, reason=reason)  # fmt: skip


def claimed(plan):
    """The size that matters; none where networks were trained once."""
    return {"size": SIZE} if len(plan.seeds) > 1 else {"reason": ONE_TRAINING}


def compared(plan):
    """How much further each pair of model and method was pushed than each later one."""
    pushed = [(LEVELS[place][2] - LEVELS[place][3], model, method) for place, model, method in places(plan)]
    return [
        made("robustness", "mass", ALL_FINDINGS, method, model, push - less, other_method=other_method,
             other_model=other_model, **claimed(plan))
        for k, (push, model, method) in enumerate(pushed) for less, other_model, other_method in pushed[k + 1:]
    ]  # fmt: skip


def ends(plan, finding):
    """Floor and, where there are readers, the human level."""
    above = {"random": 0.0, "center_prior": 0.03, "edge": 0.01, "location_prior": 0.09}
    rows = [made("mean", m, finding, floor, "", FLOOR + more + OFFSET[m] / 2, arm="floor")
            for m in MAP_METRICS for floor, more in above.items()]  # fmt: skip
    if plan.human == "readers":
        rows += [made("mean", m, finding, "human", "", HUMAN_READERS, arm="human") for m in MAP_METRICS]
    return rows


def of_pair(plan, place, model, method):
    """Means, scaled scores, robustness, differences, reliance, predictions and blame of one model and method."""
    rows = []
    levels = dict(zip(ARMS, LEVELS[place], strict=False))
    human = HUMAN_READERS if plan.human == "readers" else 1.0
    for f, finding in enumerate((ALL_FINDINGS, *plan.findings)):
        shift = 0.01 * f  # so that no two findings share a number
        for metric in MAP_METRICS:
            floor = FLOOR + OFFSET[metric] / 2
            values = {arm: level + OFFSET[metric] + shift * (arm != "misalign") for arm, level in levels.items()}
            rows += [made("mean", metric, finding, method, model, v, arm=arm) for arm, v in values.items()]
            rows += [made("scaled", metric, finding, method, model, (v - floor) / (human - floor), arm=arm)
                     for arm, v in values.items() if finding != ALL_FINDINGS]  # fmt: skip
            push = values["align"] - values["misalign"]
            rows.append(made("robustness", metric, finding, method, model, push, **claimed(plan)))
            if finding == ALL_FINDINGS:
                rows.append(made("robustness", metric, finding, method, model, push + 0.001, pooled="images",
                                 **claimed(plan)))  # fmt: skip
            for arm, versus in (("align", "control"), ("misalign", "control"), ("base", "floor")):
                less = values.get(versus, floor)
                rows.append(made("difference", metric, finding, method, model, values[arm] - less, arm=arm,
                                 versus=versus))  # fmt: skip
        if finding != ALL_FINDINGS:
            before, after = READINGS[place]
            rows.append(Estimate("blame", "mass", finding, method, model, math.nan,
                                 condition=condition(before=before, under=after),
                                 reason=SENTENCES[before, after]))  # fmt: skip
    align, misalign = LEVELS[place][4:]
    rows += reliances(plan, model, method, {"align": align, "misalign": misalign})
    return rows + predictions(plan, model, method, {"align": 0.79, "misalign": 0.77})


def reliances(plan, model, method, values):
    """Reliance of some networks, by finding."""
    return [made("mean", metric, finding, method, model, value * factor, width=0.15, arm=arm)
            for finding in (ALL_FINDINGS, *plan.findings) for arm, value in values.items()
            for metric, factor in (("reliance", 1.0), ("reliance_placebo", 0.05))]  # fmt: skip


def predictions(plan, model, method, values):
    """AUROC and mutual information of some networks, by finding."""
    rows = []
    for f, finding in enumerate((ALL_FINDINGS, *plan.findings)):
        for arm, value in values.items():
            rows.append(made("auroc", "auroc", finding, method, model, value + 0.01 * f, n=120, arm=arm))
            if finding != ALL_FINDINGS and arm == "base":
                above = value + 0.01 * f - 0.5
                rows.append(made("difference", "auroc", finding, method, model, above, size=0.05, arm=arm,
                                 versus="guessing"))  # fmt: skip
            if finding != ALL_FINDINGS and arm in {"align", "misalign"}:
                rows.append(made("difference", "auroc", finding, method, model, 0.01, arm=arm, versus="control",
                                 size=0.05 if len(plan.seeds) > 1 else math.nan))  # fmt: skip
            rows.append(made("mutual_information", "mutual_information_label", finding, method, model, value / 5, n=120,
                             arm=arm))  # fmt: skip
    return rows


def regressions(plan):
    """Both regressions with both kinds of errors; a factor with one level is undefined."""
    terms = {"intercept": 0.40, "pretrained": -0.02, "architecture:ViT": -0.11}
    terms |= {f"method:{name}": 0.05 for name in plan.methods[1:]}
    rows = []
    for metric in ("mass", "rank"):
        for errors, width in (("classical", 0.02), ("networks", 0.05)):
            for term, value in terms.items():
                row = made("regression", metric, ALL_FINDINGS, "", "", value, width=width, n=96, p_value=0.004,
                           errors=errors, term=term)  # fmt: skip
                row = replace(row, error=width / 2)
                if term == "architecture:ViT" and len(plan.models) == 1:
                    row = Estimate("regression", metric, ALL_FINDINGS, "", "", math.nan, condition=row.condition,
                                   reason="every network has the same architecture")  # fmt: skip
                rows.append(row)
    return rows


def correlations(_plan):
    """The six pairs, both kinds."""
    return [made("correlation", left.split("_")[0], ALL_FINDINGS, "", "", 0.9 - 0.1 * i - 0.01 * (kind == "spearman"),
                 kind=kind, left=left, right=right)
            for kind in ("pearson", "spearman") for i, (left, right) in enumerate(PAIRS)]  # fmt: skip
