"""The demonstration's spec: every method that can explain its model, and what it changes about them."""

from heatcheck.methods import METHODS, build_method, changed_settings
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.localization.plan import plan_localization


def test_demo_runs_every_method_but_those_for_transformers_alone(tmp_path):
    plan = plan_localization(read_spec("localization-demo"), RunOptions(limit=8), tmp_path / "run")
    assert set(METHODS) - set(plan.methods) == {"attention_rollout"}
    changed = {facts["name"]: facts["changed"] for facts in plan.facts["methods"]}
    assert {"name": "samples", "value": 32, "usual": 500} in changed["lime"]
    assert changed["grad_cam"] == changed["random"] == []


def test_setting_given_as_it_is_by_default_is_not_changed():
    method = build_method("feature_permutation", {"segments": {"kind": "grid", "cells": 8}})
    assert changed_settings("feature_permutation", method) == []
