"""The blame table from the estimates of a run: its readings and its sentences."""

import json
import math
from dataclasses import replace

import pytest

from heatcheck.core.records import ALL_FINDINGS, ONE_VALUE, Estimate, Prediction
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.stats.resampling.nested import ONE_SEED
from heatcheck.studies.alignment.blame.evidence import EstimateWithInterval
from heatcheck.studies.alignment.blame.table import blame_rows, interval_of
from heatcheck.studies.alignment.estimating.predictions import separation_rows
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
    "added": ("mean", "reliance_added", "", "net", {"arm": "base"}, (0.1, -0.1, 0.3)),
    "untrained": ("difference", "reliance", "", "net", {"arm": "base", "versus": "untrained"}, (0.6, 0.3, 0.9)),
    "separation": ("separation", "reliance", "", "net", {"arm": "base"}, (1.6, math.nan, math.nan)),
    "control separation": ("separation", "reliance", "", "net", {"arm": "control"}, (1.6, math.nan, math.nan)),
    "random floor": ("mean", "mass", "random", "", {"arm": "floor"}, (0.2, 0.18, 0.22)),
    "usual floor": ("mean", "mass", "location_prior", "", {"arm": "floor"}, (0.4, 0.38, 0.42)),
    "above random": ("difference", "mass", "gradient", "net", {"arm": "base", "versus": "random"}, (0.5, 0.4, 0.6)),
    "gain": ("difference", "mass", "gradient", "net", {"arm": "base", "versus": "location_prior"}, (0.3, 0.2, 0.4)),
    "aligned": ("difference", "mass", "gradient", "net", ALIGN, (0.32, 0.2, 0.44)),
    "misaligned": ("difference", "mass", "gradient", "net", MISALIGN, (-0.24, -0.32, -0.16)),
    "aligned reliance": ("difference", "reliance", "gradient", "net", ALIGN, (0.4, 0.24, 0.56)),
    "misaligned reliance": ("difference", "reliance", "gradient", "net", MISALIGN, (-0.48, -0.56, -0.4)),
    "learned": ("difference", "mass", "gradient", "net", {**ALIGN, "split": "finetune"}, (0.4, 0.32, 0.48)),
    "random gain": ("difference", "mass", "random", "net", {"arm": "base", "versus": "random"}, (0.01, -0.03, 0.05)),
    "random aligned": ("difference", "mass", "random", "net", {**ALIGN, "through": "gradient"}, (0.0,)),
    "random misaligned": ("difference", "mass", "random", "net", {**MISALIGN, "through": "gradient"}, (0.0,)),
}
LOW = {"above_random": (0.01, -0.03, 0.05), "gain": (-0.19, -0.23, -0.15)}

STILL = {"aligned": (0.02, -0.04, 0.07), "misaligned": (-0.01, -0.04, 0.03)}


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
    assert len({(row.model, row.method, row.finding) for row in rows}) == len(rows) == 2 * 2 * 3
    assert all(row.statistic == "blame" and row.metric == "mass" and math.isnan(row.value) for row in rows)
    blank = [row for row in rows if (row.model, row.finding) != ("net", "Edema")]
    assert {row.condition for row in blank} == {condition(before="undecided", under="undecided")}
    assert all("there is no such estimate" in row.reason for row in blank)


def test_a_good_pipeline_in_words():
    row, codes = of_gradient()
    assert codes == {"before": "shows", "under": "follows"}
    assert row.reason.replace("\u00a0", " ") == (
        "The model uses the outlined area (reliance 0.80 of the separation of 1.60 = 50 %, 95 % 31 to 69 %), and the "
        "map marks it better than the usual place (mass accuracy minus that of the usual place: +0.30 of the room of "
        "0.60 = +50 %, 95 % +33 to +67 %). Fine-tuned toward the outlines and compared with the control, the map's "
        "score rose (+0.32 of the room of 0.80 = +40 %, 95 % +25 to +55 %) and reliance with it (+0.40 of the "
        "control's separation of 1.60 = +25 %, 95 % +15 to +35 %); away from them, the map's score fell (−0.24 of the "
        "room of 0.80 = −30 %, 95 % −40 to −20 %) and reliance with it (−0.48 of the control's separation of 1.60 = "
        "−30 %, 95 % −35 to −25 %). The map followed the model, in proportion."
    )
    assert (row.n_cases, row.n_patients) == (40, 30)


@pytest.mark.parametrize(
    ("changed", "before", "words"),
    [
        (
            LOW,
            "method",
            (
                "but the map hardly marks it better than random maps (mass accuracy minus that of random maps: +0.01 "
                "of the room of 0.80 = +1 %"
            ),
        ),
        (LOW, "method", ": the method fails to show what the model uses."),
        (
            {**LOW, "reliance": (0.1, -0.1, 0.3)},
            "model",
            "(reliance 0.10 of the separation of 1.60 = 6 %, 95 % −6 to 19 %; put on images",
        ),
        (
            {**LOW, "reliance": (0.06, 0.03, 0.09)},
            "model",
            "reliance 0.06 of the separation of 1.60 = 4 %",
        ),  # above 0, and no blame
        ({"reliance": (0.1, -0.1, 0.3)}, "looks_elsewhere", "the map flatters the model"),
        ({"reliance": (0.0,)}, "looks_elsewhere", "reliance 0.00 of the separation of 1.60 = 0 % on every image"),
        (
            {"reliance": (0.7, -0.3, 1.7)},
            "undecided",
            "uses the outlined area is not shown (reliance 0.70 of the separation of 1.60 = 44",
        ),
        ({"reliance": (0.7, 0.4, 1.0), "untrained": (0.1, -0.2, 0.4)}, "undecided", "that of untrained networks"),
        ({"reliance": (0.7, 0.4, 1.0), "untrained": None}, "shows", "The model uses the outlined area"),
        (
            {"reliance": (-0.7, -1.0, -0.4)},
            "against",
            "Hiding the outlined area raises the model's score (reliance −0.7",
        ),
        (
            {"reliance": (0.1, -0.1, 0.3), "added": (1.5, 1.2, 1.8)},
            "redundant",
            (
                "it gives that score (1.50 of the separation of 1.60 = 94 %, 95 % 75 to 112 %): another area may serve "
                "the model as well"
            ),
        ),
        ({"reliance": (0.1, -0.1, 0.3), "added": (0.4, -0.2, 1.0)}, "undecided", "gives that score to images without"),
        (
            {"gain": (0.01, -0.03, 0.05)},
            "usual",
            (
                "+75 %), but no better than the usual place, made without the model (mass accuracy minus that of the "
                "usual place: +0.01"
            ),
        ),
        (
            {"reliance": (0.1, -0.1, 0.3), "separation": (-0.1, math.nan, math.nan)},
            "undecided",
            "does not distinguish images with the finding",
        ),
        (
            {"gain": (0.4, -0.2, 1.0)},
            "undecided",
            "is not shown (mass accuracy minus that of the usual place: +0.40 of the room of 0.6",
        ),
        (
            {"usual_floor": (1.0, 0.9, 1.1), "gain": (-0.1, -0.2, 0.1)},
            "undecided",
            (
                "cannot be decided (mass accuracy minus that of the usual place: −0.10, 95 % −0.20 to +0.10): not even "
                "a perfect map's marks score above the usual place (1.00 against 1.00), so no map can be shown to be "
                "better"
            ),
        ),
    ],
)
def test_before_in_words(changed, before, words):
    row, codes = of_gradient(**changed)
    assert codes["before"] == before
    assert words in row.reason.replace("\u00a0", " ")


def test_map_made_without_the_model_is_not_called_a_failing_method():
    row = blame_rows(estimates(), RULE)[1]
    assert (row.method, json.loads(row.condition)["before"]) == ("random", "method")
    assert "): so it should be, for this map was made without the model. " in row.reason
    assert "the method fails" not in row.reason


def test_readers_below_the_best_floor_are_named_with_their_scores():
    human = Estimate("mean", "mass", "Edema", "human", "", 0.79, 0.7, 0.8, condition=condition(arm="human"))
    changed = {"usual_floor": (0.82, 0.8, 0.84), "gain": (-0.5, -0.54, -0.46)}
    rule = replace(RULE, human="readers")
    assert (
        "not even the readers' marks score above the usual place (0.79 against 0.82), so no map can be shown to be "
        "better" in blame_rows([*estimates(**changed), human], rule)[0].reason
    )
    assert (
        "how the readers' marks and the usual place score is not known"
        in blame_rows(estimates(**changed), rule)[0].reason
    )


def test_a_share_of_next_to_nothing_is_not_given_in_percent():
    """The usual place may be nearly as good as a perfect map, and a map far below it."""
    row, codes = of_gradient(usual_floor=(0.98, 0.97, 0.99), gain=(-0.5, -0.6, -0.4))
    assert codes["before"] == "usual"
    assert (
        "(mass accuracy minus that of the usual place: −0.50 next to the room of 0.02, 95 % −0.60 to −0.40)"
        in row.reason.replace("\u00a0", " ")
    )


def test_the_patients_that_would_decide_are_said_and_stored():
    rows = [
        replace(row, n_needed=170) if row.metric == "reliance" else row for row in estimates(reliance=(0.7, -0.3, 1.7))
    ]
    row = blame_rows(rows, RULE)[0]
    assert "; about 170 patients would decide it" in row.reason
    assert row.n_needed == 170


def test_the_map_is_compared_with_the_best_of_the_floors_whichever_that_is():
    """Of four floors the edges score most here: above the others, the map is not above them."""
    edge = [
        Estimate("mean", "mass", "Edema", "edge", "", 0.68, 0.6, 0.7, condition=condition(arm="floor")),
        Estimate(
            "difference", "mass", "Edema", "gradient", "net", 0.01, -0.01, 0.02,
            condition=condition(arm="base", versus="edge"),
        ),
    ]  # fmt: skip
    row = blame_rows([*estimates(), *edge], RULE)[0]
    assert json.loads(row.condition)["before"] == "usual"
    assert "no better than the image's edges" in row.reason


@pytest.mark.parametrize(
    ("changed", "under", "words"),
    [
        (
            {"aligned_reliance": (0.03, 0.01, 0.05)},
            "foolable",
            (
                "rose (+0.32 of the room of 0.80 = +40 %, 95 % +25 to +55 %) while reliance changed by less than "
                "matters (+0.03 of the control's separation of 1.60 = +2 %, 95 % +1 to"
            ),
        ),
        (
            {"aligned_reliance": (0.03, 0.01, 0.05)},
            "foolable",
            "even though it followed the model in the other direction: by",
        ),
        ({"aligned_reliance": (-0.5, -0.6, -0.3)}, "foolable", "while reliance went the other way (−0.50"),
        ({"misaligned_reliance": (-0.1, -0.5, 0.3)}, "undecided", "whether reliance did is not shown (−0.10"),
        ({"misaligned_reliance": None}, "undecided", "and the change of reliance is not known"),
        ({"misaligned": None}, "undecided", "away from them, the change of the map's score is not known"),
        (
            {"misaligned": (-0.01, -0.04, 0.03)},
            "undecided",
            (
                "the map's score changed by less than matters (−0.01 of the room of 0.80 = −1 %, 95 % −5 to +4 %), "
                "although reliance fell (−0.48"
            ),
        ),
        (
            {"misaligned": (-0.01, -0.04, 0.03)},
            "undecided",
            "The map followed the model in one direction and missed its change in the other: whether it shows",
        ),
        (
            {"misaligned": (-0.01, -0.04, 0.03), "misaligned_reliance": (-0.05, -0.2, 0.1)},
            "follows",
            "in proportion, and neither changed by as much as matters in the other direction.",
        ),
        (
            {"misaligned": (-0.01, -0.04, 0.03), "misaligned_reliance": (-0.1, -0.5, 0.3)},
            "undecided",
            (
                "and whether reliance changed is not shown (−0.10 of the control's separation of 1.60 = −6 %, 95 % −31 "
                "to +19 %). What that says"
            ),
        ),
        (
            {"misaligned": (-0.05, -0.2, 0.1)},
            "undecided",
            (
                "whether the map's score changed by as much as matters is not shown (−0.05 of the room of 0.80 = −6 %, "
                "95 % −25 to +12 %), and reliance fell"
            ),
        ),
        (
            {"aligned": (0.02, -0.05, 0.07), "misaligned": (0.2, 0.15, 0.3)},
            "foolable",
            (
                "rose nevertheless (+0.20 of the room of 0.80 = +25 %, 95 % +19 to +37 %) while reliance went the "
                "other way (−0.48"
            ),
        ),
        (
            {"misaligned": (0.2, 0.15, 0.3), "misaligned_reliance": (-0.05, -0.2, 0.05)},
            "foolable",
            (
                "rose nevertheless (+0.20 of the room of 0.80 = +25 %, 95 % +19 to +37 %) while reliance changed by "
                "less than matters (−0.05"
            ),
        ),
        (
            {"misaligned": (0.2, 0.1, 0.3), "misaligned_reliance": (0.4, 0.25, 0.55)},
            "follows",
            "rose nevertheless (+0.20 of the room of 0.80 = +25 %, 95 % +12 to +37 %) and reliance with it (+0.40",
        ),
        (
            {"aligned": (0.1, -0.1, 0.3), "misaligned": (-0.01, -0.04, 0.03)},
            "undecided",
            "Where the map changed by less than matters, it missed a change of the model; what the rest says",
        ),
        (STILL, "unmoved", "The model changed and the map did not: it missed that change."),
        (
            {**STILL, "aligned_reliance": (0.05, -0.1, 0.2), "misaligned_reliance": (0.05, -0.1, 0.2)},
            "unmoved",
            (
                "rose on the images learned from (+0.40 of the room of 0.80 = +50 %, 95 % +40 to +60 %), which does "
                "not generalise"
            ),
        ),
        (
            {**STILL, "aligned_reliance": None, "misaligned_reliance": None, "learned": (0.0, -0.07, 0.07)},
            "failed",
            (
                "not known. It hardly rose on the images learned from either (0.00 of the room of 0.80 = 0 %, 95 % −9 "
                "to +9 %): fine"
            ),
        ),
    ],
)
def test_under_fine_tuning_in_words(changed, under, words):
    row, codes = of_gradient(**changed)
    assert codes["under"] == under
    assert words in row.reason.replace("\u00a0", " ")


def test_what_is_missing_is_said_with_its_reason():
    nothing = {"reliance": (math.nan,) * 3, "aligned": (math.nan,) * 3, "misaligned": (math.nan,) * 3}
    reasons = {"reliance": "no room", "aligned": "the loss turned NaN", "misaligned": "the loss turned NaN"}
    row, codes = of_gradient(reasons, **nothing)
    assert codes == {"before": "undecided", "under": "undecided"}
    assert "What the model uses is not known: no room; the map marks it" in row.reason
    assert row.reason.endswith("What fine-tuning does to the map is not known: the loss turned NaN.")


def test_networks_that_were_trained_once_support_no_claim_about_the_method():
    words = (
        "Each network was trained once: this is what these networks did, and nothing is claimed of how the method "
        "behaves under fine-tuning."
    )
    row, codes = of_gradient(dict.fromkeys(("aligned", "misaligned"), f"{ONE_SEED}; over 1 of 2 seeds"))
    assert row.reason.endswith(words)
    assert codes["under"] == "undecided"
    row, codes = of_gradient(rule=replace(RULE, seeds=(1,)))
    assert row.reason.endswith(words)
    assert codes == {"before": "shows", "under": "undecided"}  # the base is the network that is asked about
    row, _ = of_gradient(dict.fromkeys(("reliance", "gain"), ONE_SEED))  # a base is always one
    assert "trained once" not in row.reason


def test_a_judged_method_is_read_on_the_networks_of_the_other_method():
    alone = [row for row in estimates() if row.method != "location_prior"]
    row = blame_rows(alone, RULE)[1]
    assert (row.method, json.loads(row.condition)) == ("random", {"before": "method", "under": "unmoved"})
    assert (
        "Fine-tuned through Gradient toward the outlines and compared with the control, the map's score changed by "
        "less than matters (0.00 of the room of 0.80 = 0 % on every image), although reliance rose (+0.40 of the "
        "control's separation of 1.60 = +25 %" in row.reason.replace("\u00a0", " ")
    )
    assert row.reason.endswith("The model changed and the map did not: it missed that change.")
    held = {"aligned_reliance": (0.05, -0.1, 0.2), "misaligned_reliance": (0.05, -0.1, 0.2)}
    assert blame_rows(estimates(**held), RULE)[1].reason.endswith(
        "The map changed by less than matters, and so did the model."
    )
    held["aligned_reliance"] = (0.2, -0.1, 0.5)
    assert blame_rows(estimates(**held), RULE)[1].reason.endswith("The map changed by less than matters.")


def test_a_judged_map_that_rose_where_networks_were_trained_away_from_the_outlines_moved():
    changed = {"random_misaligned": (0.62, 0.57, 0.66), "misaligned_reliance": (-0.05, -0.2, 0.1)}
    row = blame_rows(estimates(**changed), RULE)[1]
    assert json.loads(row.condition)["under"] == "foolable"
    assert "away from them, the map's score rose nevertheless (+0.62 of the room of 0.80" in row.reason


def test_readers_are_the_top_of_the_scale_where_there_are_readers():
    """What matters depends on what the readers score."""
    wide = {"above_random": (0.03, -0.02, 0.07), "gain": (-0.17, -0.22, -0.12)}
    assert of_gradient(**wide)[1]["before"] == "method"
    human = Estimate("mean", "mass", "Edema", "human", "", 0.7, 0.6, 0.8, condition=condition(arm="human"))
    rows = blame_rows([*estimates(**wide), human], replace(RULE, human="readers"))
    assert json.loads(rows[0].condition)["before"] == "undecided"


def test_all_findings_are_read_together_where_there_are_several():
    rule = replace(RULE, findings=("Edema", "Fracture"))
    pooled = [replace(row, finding=ALL_FINDINGS) for row in estimates()]
    rows = [row for row in blame_rows([*estimates(), *pooled], rule) if row.finding == ALL_FINDINGS]
    assert [json.loads(row.condition)["before"] for row in rows] == ["shows", "method"]
    assert not [row for row in blame_rows(estimates(), RULE) if row.finding == ALL_FINDINGS]


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
