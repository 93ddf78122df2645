"""How a trigger study looks for boxes: what a spec may set, what is tried beside it, and what run.json tells."""

import json
import math

import pandas as pd
import pytest
import yaml
from tests.studies.triggers.planted_material import SMALL_TRIGGERS

from heatcheck.core.errors import SpecError
from heatcheck.regions.detect import DetectionRule, preset_rule
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import checked, read_spec
from heatcheck.studies.triggers.estimates import mean_rows
from heatcheck.studies.triggers.plan import plan_triggers
from heatcheck.studies.triggers.scores import Detector
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.spec import DetectionPart, GatePart


def tried(part, method):
    """Everything that is varied for a method, as facts."""
    return [facts for facts, _ in Detector(part).variations(method)]


def test_numbers_that_a_spec_names_lead_and_the_preset_s_own_where_it_names_none():
    assert Detector(DetectionPart()).main("lime") == DetectionRule(2.0, 0.15)
    assert Detector(DetectionPart(sigma=0.0)).main("lime") == DetectionRule(0.0, 0.15)
    assert Detector(DetectionPart(threshold=0.3)).main("lime") == DetectionRule(2.0, 0.3)
    assert Detector(DetectionPart(preset="thresholded")).main("gradient") == preset_rule("thresholded", "gradient")


def test_the_preset_beside_the_leading_one_has_its_own_numbers():
    rules = Detector(DetectionPart(preset="thresholded")).presets("gradient")
    assert rules == {"": DetectionRule(0.0, 0.5, "range", "all"), "gradcam15": DetectionRule(2.0, 0.15)}


@pytest.mark.parametrize(
    ("part", "method", "expected"),
    [
        ({"sigma": 4.0}, "lime", [{"sigma": 0.0}, {"sigma": 1.0}]),
        ({"preset": "thresholded"}, "lime", [{"sigma": 1.0}, {"sigma": 4.0}]),
        ({"other_sigmas": (2.0, 3.0, 3.0)}, "lime", [{"sigma": 3.0}]),
    ],
)
def test_a_number_that_a_method_has_anyway_is_not_scored_again(part, method, expected):
    settings = DetectionPart(**{"other_thresholds": ()} | part)
    assert tried(settings, method) == expected


def test_each_method_leaves_out_its_own_threshold_only():
    part = DetectionPart(preset="thresholded", other_sigmas=(), other_thresholds=(0.3, 0.5, 0.9))
    assert tried(part, "gradient") == [{"threshold": 0.3}, {"threshold": 0.9}]
    assert tried(part, "lime") == [{"threshold": 0.3}, {"threshold": 0.5}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "thresholded", "sigma": 2}, "leave them out, or name the preset `gradcam15`"),
        ({"preset": "thresholded", "threshold": 0.2}, "leave them out, or name the preset `gradcam15`"),
        ({"preset": "gradcam"}, "must be one of gradcam15, thresholded, got 'gradcam'"),
        ({"sigma": -1}, "'sigma'"),
        ({"sigma": float("inf")}, "'sigma'"),
        ({"threshold": 1}, "'threshold'"),
        ({"other_thresholds": [0.1, 1.0]}, "'other_thresholds.1'"),
        ({"other_sigmas": [float("nan")]}, "'other_sigmas.0'"),
    ],
)
def test_what_would_be_ignored_or_cannot_be_is_refused_in_one_line(given, message):
    with pytest.raises(SpecError) as refused:
        checked(DetectionPart, given, "my.yaml")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_method_that_was_not_scored_under_a_number_has_no_mean_there():
    rule = TriggerSettings(
        ("square",),
        (),
        ("gradient", "lime"),
        "m",
        GatePart(attack_success=0.9, accuracy_drop=0.05, clean_target=0.5),
        draws=100,
        seed=0,
    )
    rows = [("square", 1, case, case, "lime", value) for case, value in (("a", 0.2), ("b", math.nan))]
    table = pd.DataFrame(rows, columns=["finding", "seed", "case", "patient", "method", "value"])
    rows = list(mean_rows(table, "trigger_iou", '{"threshold":0.5}', rule))
    assert {(row.method, row.value, row.n_undefined) for row in rows} == {("lime", 0.2, 1)}


@pytest.fixture
def facts_with(tmp_path):
    """A function from changes to a spec to what run.json will say."""

    def read_facts(**changes):
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump({**SMALL_TRIGGERS, **changes}))
        facts = plan_triggers(read_spec(str(path)), RunOptions(workers=1), tmp_path / "run").facts
        return json.loads(json.dumps(facts))

    return read_facts


def test_run_json_has_the_rule_that_led_for_each_method(facts_with):
    facts = facts_with(detection={"preset": "thresholded"})["detection"]
    assert facts["rules"] == {
        "gradient": {"smooth": 0.0, "threshold": 0.5},
        "grad_cam": {"smooth": 0.0, "threshold": 0.9},
        "random": {"smooth": 0.0, "threshold": 0.9},
    }
    assert [preset["name"] for preset in facts["presets"]] == ["thresholded", "gradcam15"]
    assert "guided Grad-CAM 0.75, any other 0.9" in facts["presets"][0]["summary"]
    assert "σ 2 pixels), what lies above 15\u00a0%" in facts["presets"][1]["summary"]


def test_run_json_tells_the_leading_preset_with_the_numbers_that_were_set(facts_with):
    facts = facts_with(detection={"sigma": 1, "threshold": 0.125})["detection"]
    assert facts["rules"]["grad_cam"] == {"smooth": 1.0, "threshold": 0.125}
    assert [preset["label"] for preset in facts["presets"]] == ["one rule for all", "own threshold"]
    assert "σ 1 pixels), what lies above 12.5\u00a0%" in facts["presets"][0]["summary"]


def test_run_json_has_every_trigger_with_its_settings(facts_with):
    triggers = ["tube", {"kind": "square", "size": 40, "grey": 1.0, "name": "scanner-7"}]
    tube, square = facts_with(triggers=triggers)["triggers"]
    assert square["size"] == 40
    assert "size" not in tube
    assert square["settings"] == {"place": "corner", "size": 40, "grey": 1.0, "corner": "bottom_right"}
