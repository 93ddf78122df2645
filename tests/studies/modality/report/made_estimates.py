"""The numbers of a made-up modality study: what the study would have scored and estimated, drawn from a fixed seed."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from heatcheck.core.records import ALL_FINDINGS, Estimate, Score
from heatcheck.core.vocabulary import CRITICAL_DIFFERENCE, FRIEDMAN, MEAN_RANK, RANK_PAIR, condition

MODEL = "phantom_brain_vgg"
UNIFORM = 0.11  # the floor's MSFI
UNINFORMATIVE = "one map for all modalities says nothing about their order"
PHI = {  # by modality: mean over folds of whole modalities and of their lesions
    "phi_modality": {"T1": 0.004, "T1C": 0.31, "T2": -0.006, "FLAIR": 0.11},
    "phi_lesion": {"T1": 0.002, "T1C": 0.22, "T2": 0.001, "FLAIR": 0.07},
}
LEVELS = {  # method: MSFI, MI correlation, lesion share, IoU, ΔAUPC
    "gradient": (0.31, 0.35, 0.14, 0.05, 0.06), "guided_backprop": (0.55, 0.62, 0.31, 0.11, 0.14),
    "deconvolution": (0.09, 0.02, 0.04, 0.02, 0.0), "input_x_gradient": (0.38, 0.48, 0.2, 0.08, 0.09),
    "smooth_grad": (0.34, 0.4, 0.17, 0.06, 0.08), "integrated_gradients": (0.41, 0.52, 0.22, 0.09, 0.11),
    "gradient_shap": (0.4, 0.5, 0.21, 0.08, 0.1), "deep_lift": (0.49, 0.58, 0.27, 0.1, 0.13),
    "grad_cam": (0.26, 0.0, 0.12, 0.09, 0.03), "guided_grad_cam": (0.58, 0.55, 0.33, 0.12, 0.12),
    "occlusion": (0.29, 0.3, 0.13, 0.07, 0.05), "feature_ablation": (0.3, 0.36, 0.15, 0.08, 0.07),
    "shapley_value_sampling": (0.32, 0.42, 0.16, 0.08, 0.08), "kernel_shap": (0.12, 0.0, 0.06, 0.03, 0.01),
    "lime": (0.14, 0.04, 0.06, 0.04, 0.01), "feature_permutation": (0.1, 0.0, 0.05, 0.03, 0.0),
    "random": (0.11, 0.0, 0.05, 0.02, 0.0), "uniform": (UNIFORM, math.nan, 0.05, math.nan, math.nan),
}  # fmt: skip
METRICS = ("msfi", "mi_correlation", "lesion_share", "median_iou", "delta_aupc")
TAUS = (-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1)


def rng_of(*names):
    """A generator of its own for every purpose, so that plans that differ share what they have in common."""
    return np.random.default_rng([sum(map(ord, str(name))) for name in names])


def case_values(method, metric, n, fold):
    """One method's scores on a fold's cases; NaN where undefined."""
    level = LEVELS[method][METRICS.index(metric)]
    rng = rng_of(method, metric, fold)
    weak = 0.45 if fold == 3 and method != "uniform" else 1.0
    if metric == "mi_correlation":
        noisy = np.clip(level * weak + rng.normal(0, 0.45, n), -1, 1)
        return np.array([min(TAUS, key=lambda tau: abs(tau - value)) for value in noisy])
    if metric == "delta_aupc":
        return level * weak + rng.normal(0, 0.06, n)
    spread = 0.02 if method == "uniform" else 0.8 * min(level, 1 - level) ** 0.9
    return np.clip(level * weak + rng.normal(0, spread, n), 0, 1)


def scored(plan):
    """Every score of the maps."""
    rows = []
    for fold, cases in plan.cases_by_fold().items():
        for method in (*plan.methods, "uniform"):
            for metric in METRICS if method != "uniform" else ("msfi", "lesion_share"):
                rows += of_method(plan, method, metric, fold, cases)
    return rows


def of_method(plan, method, metric, fold, cases):
    """One method's and metric's scores on a fold, under every importance and weighting."""
    values = case_values(method, metric, len(cases), fold)
    if metric == "median_iou" and fold == 1:
        values[0] = math.nan
    further = [{}]
    if metric == "msfi":
        further = [{"importance": i, "weights": w} for i in plan.importances() for w in ("positive", "min_max")]
    shared = metric == "mi_correlation" and method in plan.shared
    less = {"min_max": 0.8}  # the weightings must not be mixed up unseen
    return [Score(case, patient, finding, method, MODEL, metric,
                  math.nan if shared else float(value) * less.get(facts.get("weights"), 1),
                  condition=condition(fold=fold, **facts),
                  reason=UNINFORMATIVE if shared else "the map is all zero" if math.isnan(value) else "")
            for facts in further for (case, patient, finding), value in zip(cases, values, strict=True)]  # fmt: skip


def all_estimates(plan):
    """Every row of the plan's run."""
    rows = [
        *shapley(plan),
        *networks(plan),
        *known(plan),
        *means(plan),
        *differences(plan),
        *orders(plan),
        *ranks(plan),
    ]
    rows += [Estimate("seconds", "seconds", ALL_FINDINGS, name, MODEL, seconds(name)) for name in plan.methods]
    return rows + (ratings(plan) if plan.ratings else [])


def seconds(method):
    """How long a map takes."""
    return 0.002 * 1.8 ** list(LEVELS).index(method)


def shapley(plan):
    """Values of subsets and Shapley values."""
    rows = []
    for filled in plan.fills:
        for measure, name in (("balanced", "balanced_accuracy"), ("accuracy", "accuracy")):
            for metric in PHI:
                rows += of_game(plan, metric, {"filled": filled, "measure": measure}, name)
    return rows


def of_game(plan, metric, facts, name):
    """One game of one fold after the other, and their mean."""
    rows, rng = [], rng_of(metric, facts["filled"], facts["measure"])
    each = {}
    for fold in plan.fold_numbers:
        small = 0.15 if fold == 3 else 1.0
        each[fold] = {m: PHI[metric][m] * small + rng.uniform(-0.02, 0.02) for m in plan.modalities}
        worst = 0.5 if facts["measure"] == "balanced" else 0.62
        ablated = "modality" if metric == "phi_modality" else "lesion"
        for size in range(len(plan.modalities) + 1):
            for shown in combinations(plan.modalities, size):
                value = worst + sum(each[fold][m] for m in shown)
                at = condition(ablated=ablated, filled=facts["filled"], fold=fold, shown="+".join(shown))
                rows.append(Estimate("value", name, ALL_FINDINGS, "", MODEL, value, value - 0.05, value + 0.05,
                                     condition=at, n_cases=plan.cases, n_patients=plan.cases))  # fmt: skip
    each["all"] = {m: float(np.mean([each[fold][m] for fold in plan.fold_numbers])) for m in plan.modalities}
    for fold, values in each.items():
        width = 0.025 if fold == "all" else 0.055
        size = 0.1 * sum(values.values())
        for modality, value in values.items():
            rows.append(Estimate("shapley", metric, ALL_FINDINGS, "", MODEL, value, value - width, value + width,
                                 condition=condition(**facts, fold=fold, modality=modality), n_cases=plan.cases,
                                 n_patients=plan.cases, size=size))  # fmt: skip
        for one, other in combinations(values, 2):
            gap = values[one] - values[other]
            rows.append(Estimate("difference", metric, ALL_FINDINGS, "", MODEL, gap, gap - width, gap + width,
                                 condition=condition(**facts, fold=fold, modality=one, versus=other),
                                 n_cases=plan.cases, n_patients=plan.cases, size=size))  # fmt: skip
    return rows


def networks(plan):
    """How well the networks do on intact cases."""
    rows = []
    for metric, level in (("accuracy", 0.92), ("balanced_accuracy", 0.9)):
        for fold in (*plan.fold_numbers, "all"):
            value = level - (0.12 if fold == 3 else 0)
            rows.append(Estimate("mean", metric, ALL_FINDINGS, "", MODEL, value, value - 0.05, value + 0.04,
                                 condition=condition(fold=fold), n_cases=plan.cases,
                                 n_patients=plan.cases))  # fmt: skip
    return rows


def known(plan):
    """Accuracy where one modality alone tells the truth."""
    levels = {"T1C": 0.97, "FLAIR": 0.06}
    return [Estimate("known", "known_importance", ALL_FINDINGS, "", MODEL, levels[name], levels[name] - 0.04,
                     min(1, levels[name] + 0.03), condition=condition(fold=fold, modality=name), n_cases=40)
            for name in plan.known for fold in (*plan.fold_numbers, "all")]  # fmt: skip


def means(plan):
    """The mean of every score, by fold and over all folds."""
    rows, together = [], {}
    for score in scored(plan):
        facts = score.condition
        for at in (facts, facts.replace(f'"fold":{plan.fold_of(facts)}', '"fold":"all"')):
            together.setdefault((score.metric, score.method, at), []).append(score.value)
    for (metric, method, at), values in together.items():
        defined = [value for value in values if not math.isnan(value)]
        if not defined:
            rows.append(Estimate("mean", metric, ALL_FINDINGS, method, MODEL, math.nan, condition=at,
                                 n_undefined=len(values), reason=UNINFORMATIVE))  # fmt: skip
            continue
        middle, width = float(np.mean(defined)), 1.96 * float(np.std(defined)) / math.sqrt(len(defined))
        rows.append(Estimate("mean", metric, ALL_FINDINGS, method, MODEL, middle, middle - width, middle + width,
                             condition=at, n_cases=len(defined), n_patients=len(defined),
                             n_undefined=len(values) - len(defined)))  # fmt: skip
    return rows + shares(plan)


def shares(plan):
    """How each method's heat is shared between modalities, and how much of each lies inside its mask."""
    rows = []
    for method in plan.methods:
        tilt = LEVELS[method][1]
        weights = {m: 0.25 + tilt * (PHI["phi_modality"][m] - 0.1) for m in plan.modalities}
        for modality, weight in weights.items():
            share = 0.25 if method in plan.shared else weight / sum(weights.values())
            at = condition(fold="all", modality=modality)
            inside = LEVELS[method][2]
            rows.append(Estimate("mean", "modality_sum", ALL_FINDINGS, method, MODEL, share, share - 0.03, share + 0.03,
                                 condition=at, n_cases=plan.cases))  # fmt: skip
            rows.append(Estimate("mean", "inside_share", ALL_FINDINGS, method, MODEL, inside, inside - 0.02,
                                 inside + 0.02, condition=at, n_cases=plan.cases))  # fmt: skip
    return rows


def differences(plan):
    """Every method against the uniform map."""
    rows = []
    for metric, floor in (("msfi", UNIFORM), ("lesion_share", 0.05)):
        for method in plan.methods:
            gap = LEVELS[method][METRICS.index(metric)] - floor
            sure = gap > 0.04
            rows.append(Estimate("difference", metric, ALL_FINDINGS, method, MODEL, gap, gap - 0.04, gap + 0.04,
                                 p_value=0.0001 if sure else 0.4, p_adjusted=0.0016 if sure else 1.0,
                                 family=f"{metric}: each method against the uniform map",
                                 condition=condition(versus="uniform"), n_cases=plan.total,
                                 n_patients=plan.total, size=0.1 * (1 - floor)))  # fmt: skip
    return rows


def orders(plan):
    """How far each method's heat has the order of the clear pairs, and how much better for its own network."""
    rows = []
    for method in plan.methods:
        if method in plan.shared:
            continue
        level, at = LEVELS[method][1], condition(fold="all")
        rows.append(Estimate("agreement", "mi_correlation", ALL_FINDINGS, method, MODEL, level, level - 0.05,
                             min(1, level + 0.05), condition=at, n_patients=plan.total, size=0.1))  # fmt: skip
        gain = (0.05, -0.3, 0.4) if len(plan.fold_numbers) > 1 else (math.nan,) * 3
        rows.append(Estimate("following", "mi_correlation", ALL_FINDINGS, method, MODEL, *gain, condition=at, size=0.1,
                             reason="" if len(plan.fold_numbers) > 1 else "one network"))  # fmt: skip
    return rows


def ranks(plan):
    """Friedman's test, the critical difference, mean ranks, and Nemenyi's test of each pair."""
    if len(plan.methods) < 3:
        return []
    rows = []
    for i, metric in enumerate(METRICS):
        names = sorted(plan.methods, key=lambda name, i=i: -LEVELS[name][i])
        place = {name: 2.5 + (len(names) - 4) * k / len(names) for k, name in enumerate(names)}
        counts = {"n_cases": plan.total - 3, "n_patients": plan.total - 3, "n_undefined": 3}
        template = Estimate(FRIEDMAN, metric, ALL_FINDINGS, "", MODEL, 812.4, p_value=1e-12, **counts)
        rows += [template, replace(template, statistic=CRITICAL_DIFFERENCE, value=2.2, p_value=math.nan)]
        rows += [Estimate(MEAN_RANK, metric, ALL_FINDINGS, name, MODEL, place[name], **counts) for name in names]
        for one, other in combinations(plan.methods, 2):
            gap = place[one] - place[other]
            rows.append(Estimate(RANK_PAIR, metric, ALL_FINDINGS, one, MODEL, gap, other_method=other,
                                 p_value=0.001 if abs(gap) >= 2.2 else 0.3, **counts))  # fmt: skip
    return rows


def ratings(plan):
    """What readers' ratings have to do with MSFI."""
    rows = [Estimate("alpha", "rating", ALL_FINDINGS, "", MODEL, 0.61, 0.4, 0.76, n_cases=32)]
    for within, value in (("all", 0.48), ("case", 0.55), ("maps", 0.48)):
        rows.append(Estimate("correlation", "rating", ALL_FINDINGS, "", MODEL, value, value - 0.15, value + 0.13,
                             p_value=0.0123 if within == "maps" else 0.0004,
                             condition=condition(with_metric="msfi", within=within),
                             n_cases=2 if within == "case" else 32))  # fmt: skip
    for name in plan.methods:
        value = 100 * LEVELS[name][0]
        rows.append(Estimate("mean", "rating", ALL_FINDINGS, name, MODEL, value, value - 12, value + 12, n_cases=4))
    return rows
