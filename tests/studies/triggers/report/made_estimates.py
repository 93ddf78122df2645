"""The numbers of a made-up trigger study: what the study would have estimated, drawn from a fixed seed."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import condition

MODEL = "vgg16"
IOU = {
    "gradient": 0.42, "guided_backprop": 0.61, "grad_cam": 0.12, "guided_grad_cam": 0.33, "occlusion": 0.38,
    "feature_ablation": 0.21, "lime": 0.52, "random": 0.012,
}  # fmt: skip
RECOVERED = {
    "gradient": 0.78, "guided_backprop": 0.91, "grad_cam": 0.55, "guided_grad_cam": 0.41, "occlusion": 0.66,
    "feature_ablation": 0.04, "lime": 0.83, "random": 0.03,
}  # fmt: skip
AREA = {
    "gradient": 0.021, "guided_backprop": 0.012, "grad_cam": 0.34, "guided_grad_cam": 0.03, "occlusion": 0.045,
    "feature_ablation": 0.05, "lime": 0.02, "random": 0.004,
}  # fmt: skip
OF_ARTEFACTS = ("trigger_iou", "trigger_mask_iou", "uncovered", "box_area")
SIZES = {"20": 0.008, "40": 0.032, "60": 0.072}
SIGMAS, THRESHOLDS = (0.0, 1.0, 2.0, 4.0, 8.0), (0.05, 0.1, 0.15, 0.3, 0.5)  # where not a method's own
OWN_THRESHOLDS = {"gradient": 0.5, "guided_backprop": 0.8, "guided_grad_cam": 0.75}
PAIRS = {
    "mutual_information": 0.45, "cross_correlation": 0.5, "ssim": 0.6, "normalised_mutual_information": 0.2,
    "ssim_global": 0.55,
}  # fmt: skip


def leading_rules(plan):
    """Each method's smoothing and threshold in the rule that leads."""
    if plan.preset == "gradcam15":
        return {name: {"smooth": 2.0, "threshold": 0.15} for name in plan.methods}
    return {name: {"smooth": 0.0, "threshold": OWN_THRESHOLDS.get(name, 0.9)} for name in plan.methods}


def all_estimates(plan):
    """Every row of the plan's run."""
    rng = np.random.default_rng(5)
    rows = attack(plan, rng)
    triggers = [name for name in plan.triggers if plan.graded_seeds(name)]
    if triggers:
        rows += detection(plan, triggers, rng)
        rows += pairs_of(plan, triggers) + agreement(plan, rng) + consensus(plan) if len(plan.methods) > 1 else []
    return rows + artefacts(plan, rng)


def attack(plan, rng):
    """Accuracy, attack success and grading, by seed and over seeds."""
    if not plan.triggers:
        return []
    rows = spread_over_seeds("cda", "baseline", [0.94 + rng.uniform(-0.005, 0.005) for _ in plan.seeds], plan)
    rows += calibration(plan)
    for name in plan.triggers:
        good = plan.graded_seeds(name)
        success = [rng.uniform(0.955, 1) if seed in good else 0.62 + 0.01 * seed for seed in plan.seeds]
        clean = [0.93 + rng.uniform(-0.01, 0.01) for _ in plan.seeds]
        rows += spread_over_seeds("asr", name, success, plan) + spread_over_seeds("cda", name, clean, plan)
        rows += spread_over_seeds("cda_drop", name, [0.94 - value for value in clean], plan)
        rows += spread_over_seeds("clean_target", name, [0.04 + 0.01 * i for i in range(len(plan.seeds))], plan)
        rows += spread_over_seeds("baseline_asr", name, [0.01 for _ in plan.seeds], plan)
        for seed, value in zip(plan.seeds, success, strict=True):
            why = "" if seed in good else f"attack success {value:.2f} is below 0.90"
            rows.append(Estimate("graded", "asr", name, "", MODEL, float(seed in good), condition=condition(seed=seed),
                                 reason=why))  # fmt: skip
        rows.append(Estimate("graded", "asr", name, "", MODEL, float(len(good)), n_cases=len(plan.seeds)))
    return rows


def calibration(plan):
    """Calibration errors, what chance gives, and how much too sure the models are, before and after."""
    errors = {"ece": 0.05, "ece_stamped": 0.93, "baseline_ece_stamped": 0.04}
    rows = [Estimate("calibration", "ece", "baseline", "", MODEL, 0.03, n_cases=1589)]
    rows += [Estimate("chance_calibration", "ece", "baseline", "", MODEL, 0.01, 0.0, 0.02, n_cases=1589)]
    rows += [Estimate("attack", "overconfidence", "baseline", "", MODEL, 0.02, 0.01, 0.03)]
    for name in (*plan.triggers, ALL_FINDINGS):
        for metric, value in errors.items():
            rows.append(Estimate("calibration", metric, name, "", MODEL, value, n_cases=1589))
            rows.append(Estimate("chance_calibration", metric, name, "", MODEL, 0.015, 0.0, 0.025, n_cases=1589))
        if name != ALL_FINDINGS:
            rows.append(Estimate("attack", "overconfidence", name, "", MODEL, 0.04, 0.03, 0.05))
            rows.append(Estimate("attack", "overconfidence_stamped", name, "", MODEL, 0.93, 0.9, 0.96))
    size = 0.1 if len(plan.seeds) > 1 else math.nan
    for metric, value in (("overconfidence", 0.02), ("overconfidence_stamped", 0.9)):
        rows.append(Estimate("difference", metric, ALL_FINDINGS, "", MODEL, value, value - 0.03, value + 0.03,
                             other_method="baseline", size=size))  # fmt: skip
    return rows


def spread_over_seeds(metric, finding, values, plan):
    """The metric of each seed, and their mean."""
    each = [Estimate("attack", metric, finding, "", MODEL, value, condition=condition(seed=seed), n_cases=3179)
            for seed, value in zip(plan.seeds, values, strict=True)]  # fmt: skip
    middle = float(np.mean(values))
    return [*each, Estimate("attack", metric, finding, "", MODEL, middle, middle - 0.008, middle + 0.008, n_cases=3179)]


def detection(plan, triggers, rng):
    """Means under every rule, and differences from the random boxes."""
    rows = []
    other = "thresholded" if plan.preset == "gradcam15" else "gradcam15"
    for name in plan.methods:
        by_trigger = {trigger: measured(name, trigger, rng) for trigger in triggers}
        by_trigger[ALL_FINDINGS] = {m: float(np.mean([v[m] for v in by_trigger.values()]))
                                    for m in next(iter(by_trigger.values()))}  # fmt: skip
        for trigger, values in by_trigger.items():
            n = plan.images * (len(triggers) if trigger == ALL_FINDINGS else 1)
            rows += [mean(metric, trigger, name, value, n) for metric, value in values.items()]
            rows += [mean(metric, trigger, name, value * 0.8, n, preset=other)
                     for metric, value in values.items()]  # fmt: skip
            for metric in ("trigger_iou", "recovered", "uncovered"):
                gap = values[metric] - values[f"{metric}_floor"]
                size = 0.1 * (1 - values[f"{metric}_floor"]) if len(plan.seeds) > 1 else math.nan
                rows.append(Estimate("difference", metric, trigger, name, MODEL, gap, gap - 0.05, gap + 0.05,
                                     other_method="random_box", n_cases=n, n_patients=plan.images,
                                     size=size))  # fmt: skip
            if trigger == ALL_FINDINGS:
                gap = values["trigger_iou"] - values["trigger_iou_on_baseline"]
                size = 0.1 * (1 - values["trigger_iou_on_baseline"]) if len(plan.seeds) > 1 else math.nan
                rows.append(Estimate("difference", "trigger_iou", trigger, name, MODEL, gap, gap - 0.05, gap + 0.05,
                                     other_method="baseline", n_cases=n, n_patients=plan.images,
                                     size=size))  # fmt: skip
                gap = values["recovered"] - 0.5
                rows.append(Estimate("difference", "recovered", trigger, name, MODEL, gap, gap - 0.1, gap + 0.1,
                                     other_method="half", size=0.0 if len(plan.seeds) > 1 else math.nan))  # fmt: skip
            rows += variations(plan, trigger, name, values, n)
    return rows


def variations(plan, finding, method, values, n, metrics=("trigger_iou", "box_area"), **kind):
    """Means with one number of the rule changed; a method is undefined at its own number, which others try."""
    rules = leading_rules(plan)
    rows = []
    for fact, setting, tried in (("sigma", "smooth", SIGMAS), ("threshold", "threshold", THRESHOLDS)):
        leading = rules[method][setting]
        for value in tried:
            fall = math.exp(-0.1 * abs(value - leading))
            if value != leading:
                rows += [mean(m, finding, method, values[m] * fall, n, **kind, **{fact: value}) for m in metrics]
            elif any(rule[setting] != value for rule in rules.values()):
                rows += [mean(m, finding, method, math.nan, n, **kind, **{fact: value}) for m in metrics]
    return rows


def measured(method, trigger, rng):
    """One method's means on one trigger."""
    size = SIZES.get(trigger.split("-")[-1], 0.01)
    iou = float(np.clip(IOU[method] + rng.uniform(-0.08, 0.08) * (IOU[method] > 0.1), 0, 1))
    recovered = float(np.clip(RECOVERED[method] + rng.uniform(-0.05, 0.05), 0.01, 0.99))
    uncovered = float(np.clip(1 - recovered + 0.1, 0, 1))
    area = AREA[method] * (1 + 3 * size)
    return {
        "trigger_iou": iou, "trigger_iou_on_baseline": 0.03, "trigger_mask_iou": iou * 0.8,
        "overlap_difference": uncovered * size,
        "uncovered": uncovered, "box_area": area, "recovered": recovered, "recovered_by_baseline": recovered * 0.97,
        "trigger_iou_floor": min(area, 0.02), "trigger_mask_iou_floor": min(area, 0.015), "uncovered_floor": 1 - area,
        "overlap_difference_floor": size * (1 - area), "recovered_floor": area * 0.7,
    }  # fmt: skip


def mean(metric, finding, method, value, n=240, width=0.04, **facts):
    """A mean with its interval."""
    reach = width * min(1, 4 * value)
    low, high = max(0.0, value - reach), min(1.0, value + reach)
    return Estimate("mean", metric, finding, method, MODEL, value, low, high, n_cases=n, n_patients=n,
                    condition=condition(**facts))  # fmt: skip


def pairs_of(plan, triggers):
    """Every two methods, the higher one first; with one seed nothing is judged."""
    names = [name for name in plan.methods if name != "random"]
    size = math.nan if len(plan.seeds) == 1 else 0.05
    rows = []
    for metric, level in (("trigger_iou", IOU), ("recovered", RECOVERED)):
        for one, other in combinations(sorted(names, key=lambda name: -level[name]), 2):
            gap = level[one] - level[other]
            rows.append(Estimate("difference", metric, ALL_FINDINGS, one, MODEL, gap, gap - 0.1, gap + 0.1,
                                 p_adjusted=0.001 if gap > 0.1 else 0.4, other_method=other, size=size,
                                 n_cases=len(triggers) * plan.images, n_patients=plan.images))  # fmt: skip
    return rows


def agreement(plan, rng):
    """How alike every two methods' maps are; each method's mean over the others has no other method."""
    rows = []
    for metric, level in PAIRS.items():
        means = {pair: level * rng.uniform(-0.1, 1) for pair in combinations(plan.methods, 2)}
        if "guided_grad_cam" in plan.methods:
            means["guided_backprop", "guided_grad_cam"] = level * 1.6
        rows += [Estimate("pair_mean", metric, ALL_FINDINGS, one, MODEL, value, value - 0.02, value + 0.02,
                          other_method=other, n_cases=240) for (one, other), value in means.items()]  # fmt: skip
        for name in plan.methods:
            middle = float(np.mean([value for pair, value in means.items() if name in pair]))
            rows.append(Estimate("pair_mean", metric, ALL_FINDINGS, name, MODEL, middle, middle - 0.01, middle + 0.01,
                                 n_cases=240))  # fmt: skip
    return rows


def consensus(plan):
    """Places by agreement and by overlap, and how much both orders agree."""
    names = [name for name in plan.methods if name != "random"]
    several = len(plan.seeds) > 1
    rows, by_truth = [], sorted(names, key=lambda name: -IOU[name])
    for place, name in enumerate(names, 1):
        share = (len(names) - place) / max(1, len(names) - 1)
        rows.append(Estimate("consensus", "consensus", ALL_FINDINGS, name, MODEL, share, share - 0.1, share + 0.1))
        for metric, value in (("consensus_rank", place), ("truth_rank", by_truth.index(name) + 1)):
            low, high = max(1, value - 1), min(len(names), value + 1)
            rows.append(Estimate("consensus", metric, ALL_FINDINGS, name, MODEL, value, low, high))
    tau = Estimate("consensus", "rank_agreement", ALL_FINDINGS, "", MODEL, 0.14, -0.3, 0.6)
    measures = ("mutual_information", "cross_correlation", "ssim")
    rows += [replace(tau, condition=condition(measure=measure)) for measure in measures]
    return [*rows, replace(tau, size=0.5 if several else math.nan)]


def artefacts(plan, rng):
    """How well the maps mark artefacts that were there before, each of them and all; nothing can be recovered."""
    rows = []
    other = "thresholded" if plan.preset == "gradcam15" else "gradcam15"
    for name in plan.methods if plan.artefacts else ():
        means = {finding: measured(name, "text", rng) for finding in plan.artefacts}
        means[ALL_FINDINGS] = {m: float(np.mean([v[m] for v in means.values()])) for m in means[plan.artefacts[0]]}
        for finding, every in means.items():
            values = {metric: value for metric, value in every.items() if metric.removesuffix("_floor") in OF_ARTEFACTS}
            rows += [mean(metric, finding, name, value, 12, kind="artefact") for metric, value in values.items()]
            rows += [mean(metric, finding, name, value * 0.7, 12, kind="artefact", preset=other)
                     for metric, value in values.items()]  # fmt: skip
            rows += variations(plan, finding, name, values, 12, kind="artefact")
    at = condition(kind="artefact")
    pairs = agreement(plan, rng) if plan.artefacts and len(plan.methods) > 1 else []
    return rows + [replace(row, condition=at, n_cases=12) for row in pairs]
