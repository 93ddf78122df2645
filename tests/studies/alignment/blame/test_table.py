"""The blame table from the estimates of a run: its readings and its sentences."""

import json
import math
from dataclasses import replace

import pytest

from heatcheck.core.records import ONE_VALUE, Estimate, Prediction
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.stats.resampling.nested import ONE_SEED
from heatcheck.studies.alignment.blame.readings import EstimateWithInterval
from heatcheck.studies.alignment.blame.table import blame_rows, interval_of
from heatcheck.studies.alignment.predictions import separation_rows
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import Base, network_key

RULE = AlignmentSettings(
    bases=(Base("net", "densenet_compact", "DenseNet", "given", False),),
    findings=("Edema",),
    methods=("gradient",),
    judged=("random",),
    through="gradient",
    seeds=(1, 2),
    metrics=("mass",),
    draws=100,
    seed=0,
    human="truth",
)
ALIGN, MISALIGN = {"arm": "align", "versus": "control"}, {"arm": "misalign", "versus": "control"}
NUMBERS = {  # statistic, metric, method, model: condition and (value, low, high)
    "reliance": ("mean", "reliance", "", "net", {"arm": "base"}, (0.8, 0.5, 1.1)),
    "placebo": ("mean", "reliance_placebo", "", "net", {"arm": "base"}, (0.0, -0.1, 0.1)),
    "separation": ("separation", "reliance", "", "net", {"arm": "base"}, (1.5, math.nan, math.nan)),
    "control": ("mean", "reliance", "", "net", {"arm": "control"}, (0.8, 0.5, 1.1)),
    "control placebo": ("mean", "reliance_placebo", "", "net", {"arm": "control"}, (0.0, -0.1, 0.1)),
    "control separation": ("separation", "reliance", "", "net", {"arm": "control"}, (1.5, math.nan, math.nan)),
    "floor": ("mean", "mass", "random", "", {"arm": "floor"}, (0.1, 0.08, 0.12)),
    "gain": ("difference", "mass", "gradient", "net", {"arm": "base", "versus": "floor"}, (0.3, 0.2, 0.4)),
    "control score": ("mean", "mass", "gradient", "net", {"arm": "control"}, (0.4, 0.3, 0.5)),
    "aligned": ("difference", "mass", "gradient", "net", ALIGN, (0.31, 0.2, 0.42)),
    "misaligned": ("difference", "mass", "gradient", "net", MISALIGN, (-0.25, -0.3, -0.2)),
    "aligned reliance": ("difference", "reliance", "gradient", "net", ALIGN, (0.4, 0.25, 0.55)),
    "misaligned reliance": ("difference", "reliance", "gradient", "net", MISALIGN, (-0.4, -0.55, -0.25)),
    "learned": ("difference", "mass", "gradient", "net", {**ALIGN, "split": "finetune"}, (0.4, 0.3, 0.5)),
    "random gain": ("difference", "mass", "random", "net", {"arm": "base", "versus": "floor"}, (0.01, -0.03, 0.05)),
    "random control": ("mean", "mass", "random", "net", {"arm": "control"}, (0.1, 0.08, 0.12)),
    "random aligned": ("difference", "mass", "random", "net", {**ALIGN, "through": "gradient"}, (0.0,)),
    "random misaligned": ("difference", "mass", "random", "net", {**MISALIGN, "through": "gradient"}, (0.0,)),
}

STILL = {"aligned": (0.02, -0.05, 0.09), "misaligned": (-0.01, -0.05, 0.03)}


def estimates(reasons=None, **changed):
    """Rows as a run has them; `changed` are numbers by name, None leaves a row out."""
    made = []
    for name, (statistic, metric, method, model, at, usual) in NUMBERS.items():
        numbers = changed.get(name.replace(" ", "_"), usual)
        if numbers is None:
            continue
        value, low, high = numbers if len(numbers) == 3 else (*numbers, math.nan, math.nan)
        reason = (reasons or {}).get(name, ONE_VALUE if len(numbers) == 1 else "")
        made.append(
            Estimate(
                statistic, metric, "Edema", method, model, value, low, high, condition=condition(**at), reason=reason,
                n_cases=40, n_patients=30,
            )
        )  # fmt: skip
    return made


def of_gradient(reasons=None, rule=RULE, **changed):
    rows = blame_rows(estimates(reasons, **changed), rule)
    return rows[0], json.loads(rows[0].condition)


def test_there_is_a_row_for_every_model_method_and_finding():
    rule = replace(RULE, bases=(*RULE.bases, replace(RULE.bases[0], key="other")), findings=("Edema", "Fracture"))
    rows = blame_rows(estimates(), rule)
    assert len({(row.model, row.method, row.finding) for row in rows}) == len(rows) == 2 * 2 * 2
    assert all(row.statistic == "blame" and row.metric == "mass" and math.isnan(row.value) for row in rows)
    blank = [row for row in rows if (row.model, row.finding) != ("net", "Edema")]
    assert {row.condition for row in blank} == {condition(before="undecided", under="undecided")}
    assert all("there is no such estimate" in row.reason for row in blank)


def test_a_good_pipeline_in_words():
    row, codes = of_gradient()
    assert codes == {"before": "shows", "under": "follows"}
    assert row.reason == (
        "The model uses the outlined area (reliance 0.80, 95\u00a0% 0.50 to 1.10), and the map marks it better than "
        "chance (mass accuracy +0.30 against random maps, 95\u00a0% +0.20 to +0.40). Fine-tuned toward the outlines, "
        "the map's score rose (+0.31, 95\u00a0% +0.20 to +0.42) and reliance with it (+0.40, 95\u00a0% +0.25 to "
        "+0.55); away from them, the map's score fell (−0.25, 95\u00a0% −0.30 to −0.20) and reliance with it (−0.40, "
        "95\u00a0% −0.55 to −0.25). The map followed the model."
    )
    assert (row.n_cases, row.n_patients) == (40, 30)


@pytest.mark.parametrize(
    ("changed", "before", "words"),
    [
        ({"gain": (0.01, -0.03, 0.05)}, "method", "the method fails to show what the model uses"),
        (
            {"gain": (0.01, -0.03, 0.05), "reliance": (0.1, -0.1, 0.3)},
            "model",
            "(reliance 0.10, 95\u00a0% −0.10 to 0.30; 0.38 would matter)",
        ),
        ({"reliance": (0.1, -0.1, 0.3)}, "looks_elsewhere", "the map flatters the model"),
        ({"reliance": (0.0,)}, "looks_elsewhere", "reliance 0.00 on every image; 0.38 would matter"),
        ({"reliance": (0.7, -0.3, 1.7)}, "undecided", "uses the outlined area is not shown (reliance 0.70"),
        ({"reliance": (0.2, -0.1, 0.5)}, "undecided", "−0.10 to 0.50; 0.38 would matter)"),
        (
            {"reliance": (0.1, -0.1, 0.3), "separation": (-0.1, math.nan, math.nan)},
            "undecided",
            "does not distinguish images with the finding",
        ),
        ({"gain": (0.4, -0.2, 1.0)}, "undecided", "better than chance is not shown (mass accuracy +0.40"),
        ({"gain": (0.05, -0.01, 0.11)}, "undecided", "−0.01 to +0.11; 0.09 would matter)"),
        ({"floor": (1.0, 0.9, 1.1), "gain": (-0.1, -0.2, 0.1)}, "undecided", "not even a human's marks"),
    ],
)
def test_before_in_words(changed, before, words):
    row, codes = of_gradient(**changed)
    assert codes["before"] == before
    assert words in row.reason


@pytest.mark.parametrize(
    ("changed", "under", "words"),
    [
        (
            {"aligned_reliance": (0.05, -0.1, 0.2)},
            "foolable",
            "rose (+0.31, 95\u00a0% +0.20 to +0.42) while reliance held (+0.05, 95\u00a0% −0.10 to +0.20)",
        ),
        (
            {"aligned_reliance": (0.05, -0.1, 0.2)},
            "foolable",
            "even though it followed the model in the other direction: by",
        ),
        ({"aligned_reliance": (-0.3, -0.5, -0.2)}, "foolable", "while reliance went the other way (−0.30"),
        ({"misaligned_reliance": (-0.1, -0.5, 0.3)}, "undecided", "whether reliance did is unclear (−0.10"),
        (
            {"control": (0.8, 0.79, 0.81), "aligned_reliance": (0.04, 0.02, 0.06)},
            "undecided",
            "and reliance hardly more than for other areas (+0.040, 95\u00a0% +0.020 to +0.060)",
        ),
        ({"misaligned_reliance": None}, "undecided", "and the change of reliance is not known"),
        ({"misaligned": None}, "undecided", "away from them, the change of the map's score is not known"),
        (
            {"misaligned": (-0.01, -0.05, 0.03)},
            "undecided",
            "stayed within the control's interval (−0.010, 95\u00a0% −0.050 to +0.030), although reliance fell (−0.40",
        ),
        (
            {"misaligned": (-0.01, -0.05, 0.03)},
            "undecided",
            "The map followed the model in one direction and missed its change in the other: whether it shows",
        ),
        (
            {"misaligned": (-0.01, -0.05, 0.03), "misaligned_reliance": (-0.05, -0.2, 0.1)},
            "follows",
            "+0.10). The map followed the model, and stood still where the model's reliance held.",
        ),
        (
            {"misaligned": (-0.01, -0.05, 0.03), "misaligned_reliance": (-0.1, -0.5, 0.3)},
            "undecided",
            "and whether reliance moved is unclear (−0.10, 95\u00a0% −0.50 to +0.30). What that says",
        ),
        (
            {"misaligned": (-0.05, -0.08, -0.02)},
            "undecided",
            "fell no further than the control's interval (−0.050, 95",
        ),
        ({"misaligned": (0.05, 0.02, 0.08)}, "undecided", "score rose no further than the control's interval (+0.050"),
        (
            {"misaligned": (-0.05, -0.2, 0.1)},
            "undecided",
            "whether the map's score moved is unclear (−0.05, 95\u00a0% −0.20 to +0.10), and reliance fell",
        ),
        (
            {"aligned": (0.02, -0.05, 0.09), "misaligned": (0.2, 0.15, 0.3)},
            "foolable",
            "rose nevertheless (+0.20, 95\u00a0% +0.15 to +0.30) while reliance went the other way (−0.40",
        ),
        (
            {"misaligned": (0.2, 0.15, 0.3), "misaligned_reliance": (-0.05, -0.2, 0.1)},
            "foolable",
            "rose nevertheless (+0.20, 95\u00a0% +0.15 to +0.30) while reliance held (−0.05",
        ),
        (
            {"misaligned": (0.2, 0.1, 0.3), "misaligned_reliance": (0.4, 0.25, 0.55)},
            "follows",
            "rose nevertheless (+0.20, 95\u00a0% +0.10 to +0.30) and reliance with it (+0.40",
        ),
        (
            {"aligned": (0.1, -0.1, 0.3), "misaligned": (-0.01, -0.05, 0.03)},
            "undecided",
            "Where the map stood still, it missed a change of the model; what the rest says about it cannot be decid",
        ),
        (
            STILL,
            "unmoved",
            "The model changed and the map did not: it missed that change.",
        ),
        (
            {**STILL, "aligned_reliance": (0.05, -0.1, 0.2), "misaligned_reliance": (0.05, -0.1, 0.2)},
            "unmoved",
            "rose on the images learned from (+0.40, 95\u00a0% +0.30 to +0.50), which does not generalise",
        ),
        (
            {**STILL, "aligned_reliance": None, "misaligned_reliance": None, "learned": (0.0, -0.1, 0.1)},
            "failed",
            "not known. It did not rise on the images learned from either (0.00, 95\u00a0% −0.10 to +0.10): fine-tun",
        ),
    ],
)
def test_under_fine_tuning_in_words(changed, under, words):
    row, codes = of_gradient(**changed)
    assert codes["under"] == under
    assert words in row.reason


def test_what_is_missing_is_said_with_its_reason():
    nothing = {"reliance": (math.nan,) * 3, "aligned": (math.nan,) * 3, "misaligned": (math.nan,) * 3}
    reasons = {"reliance": "no room", "aligned": "the loss turned NaN", "misaligned": "the loss turned NaN"}
    row, codes = of_gradient(reasons, **nothing)
    assert codes == {"before": "undecided", "under": "undecided"}
    assert "What the model uses is not known: no room." in row.reason
    assert row.reason.endswith("What fine-tuning does to the map is not known: the loss turned NaN.")


def test_networks_that_were_trained_once_support_no_claim_about_the_method():
    words = "Each network was trained once: this is what these networks did, and no claim about the method rests on it."
    row, codes = of_gradient(dict.fromkeys(("aligned", "misaligned"), f"{ONE_SEED}; over 1 of 2 seeds"))
    assert row.reason.endswith(words)
    assert codes["under"] == "undecided"
    row, codes = of_gradient(rule=replace(RULE, seeds=(1,)))
    assert row.reason.endswith(words)
    assert codes == {"before": "shows", "under": "undecided"}  # the base is the network that is asked about
    row, _ = of_gradient(dict.fromkeys(("reliance", "gain"), ONE_SEED))  # a base is always one
    assert "trained once" not in row.reason


def test_a_judged_method_is_read_on_the_networks_of_the_other_method():
    row = blame_rows(estimates(), RULE)[1]
    assert (row.method, json.loads(row.condition)) == ("random", {"before": "method", "under": "unmoved"})
    assert (
        "Fine-tuned through Gradient toward the outlines, the map's score stayed within the control's interval (0.00 "
        "on every image), although reliance rose (+0.40, 95\u00a0% +0.25 to +0.55)" in row.reason
    )
    assert row.reason.endswith("The model changed and the map did not: it missed that change.")
    held = {"aligned_reliance": (0.05, -0.1, 0.2), "misaligned_reliance": (0.05, -0.1, 0.2)}
    assert blame_rows(estimates(**held), RULE)[1].reason.endswith("The map stood still, and so did the model.")
    held["aligned_reliance"] = (0.2, -0.1, 0.5)
    assert blame_rows(estimates(**held), RULE)[1].reason.endswith("The map stood still.")


def test_a_judged_map_that_rose_where_networks_were_trained_away_from_the_outlines_moved():
    changed = {"random_misaligned": (0.62, 0.57, 0.66), "misaligned_reliance": (-0.05, -0.2, 0.1)}
    row = blame_rows(estimates(**changed), RULE)[1]
    assert json.loads(row.condition)["under"] == "foolable"
    assert "away from them, the map's score rose nevertheless (+0.62, 95\u00a0% +0.57 to +0.66)" in row.reason


def test_readers_are_the_top_of_the_scale_where_there_are_readers():
    """What matters depends on what the readers score."""
    wide = {"gain": (0.03, -0.02, 0.08)}
    assert of_gradient(**wide)[1]["before"] == "method"
    human = Estimate("mean", "mass", "Edema", "human", "", 0.5, 0.4, 0.6, condition=condition(arm="human"))
    rows = blame_rows([*estimates(**wide), human], replace(RULE, human="readers"))
    assert json.loads(rows[0].condition)["before"] == "undecided"


def test_only_a_0_on_every_image_needs_no_interval():
    row = Estimate("mean", "reliance", "Edema", "", "net", 0.0, reason=ONE_VALUE)
    assert interval_of(row) == EstimateWithInterval(0.0, 0.0, 0.0)
    assert not interval_of(replace(row, value=0.3)).known
    assert not interval_of(replace(row, reason="one patient")).known


def test_separation_is_that_of_the_base_and_the_mean_of_the_controls(tmp_path):
    logits = {
        network_key("net", "base"): [0.0, 0.0, 2.0, 2.0],
        network_key("net", "control", 1): [0.0, 2.0, 0.0, 2.0],
        network_key("net", "control", 2): [0.0, 0.0, 5.0, 5.0],
        network_key("net", "align", 1, "gradient"): [9.0, 0.0, 0.0, 0.0],
    }
    rows = [
        Prediction(f"c{number}", f"p{number}", "Edema", model, float(number > 1), logit, 0.5)
        for model, values in logits.items()
        for number, logit in enumerate(values)
    ]
    write_table(tmp_path / "predictions.parquet", Prediction, rows)
    found = {row.condition: row for row in separation_rows(tmp_path, RULE)}
    assert found[condition(arm="base")].value == pytest.approx(2.0)
    assert found[condition(arm="control")].value == pytest.approx((0.0 + 2.0) / 2)
    assert found[condition(arm="base")].n_cases == 4
    missing = separation_rows(tmp_path, replace(RULE, findings=("Fracture",)))
    assert all(math.isnan(row.value) and row.reason for row in missing)
