"""The demonstration's spec: methods of every kind, nearly all as usual; every method is in some demo."""

from heatcheck.methods import METHODS, build_method, changed_settings
from heatcheck.running.demo import demo_studies
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.localization.plan import plan_localization

FOR_TRANSFORMERS = "attention_rollout"


def methods_of(study):
    """The names in the demo spec of a study."""
    named = read_spec(f"{study}-demo").body["methods"]
    return {part if isinstance(part, str) else part["name"] for part in named}


def test_demo_runs_methods_of_every_kind_and_only_occlusion_is_not_as_usual(tmp_path):
    plan = plan_localization(read_spec("localization-demo"), RunOptions(limit=8), tmp_path / "run")
    families = {facts.family for name, facts in METHODS.items() if name != FOR_TRANSFORMERS}
    assert {METHODS[name].family for name in plan.methods} == families
    assert {name for name, facts in METHODS.items() if facts.family == "floor"} <= set(plan.methods)
    changed = {facts["name"]: facts["changed"] for facts in plan.facts["methods"] if facts["changed"]}
    assert changed == {"occlusion": [{"name": "window", "value": 32}]}  # it has no usual window


def test_every_method_that_can_explain_a_convolutional_network_is_in_some_demo():
    assert set(METHODS) - set().union(*map(methods_of, demo_studies())) == {FOR_TRANSFORMERS}


def test_setting_given_as_it_is_by_default_is_not_changed():
    method = build_method("feature_permutation", {"segments": {"kind": "grid", "cells": 8}})
    assert changed_settings("feature_permutation", method) == []
