"""The two presets differ in every switch, and every switch is explained."""

from dataclasses import asdict, fields

import pytest

from heatcheck.core.errors import InputError
from heatcheck.scoring.presets import CHEXLOCALIZE, PRESETS, RECOMMENDED, SWITCHES, Rules, rules_with, switch_facts


def test_every_rule_is_a_switch_in_which_the_presets_differ():
    assert {field.name for field in fields(Rules)} == set(SWITCHES)
    one, other = asdict(RECOMMENDED), asdict(CHEXLOCALIZE)
    assert not [name for name in one if one[name] == other[name]]
    assert PRESETS == {"recommended": RECOMMENDED, "chexlocalize": CHEXLOCALIZE}


def test_the_report_lists_what_was_used_and_why_it_matters():
    switches = {facts["name"]: facts for facts in switch_facts("chexlocalize", {})}
    assert switches["missing_map"]["used"] == switches["missing_map"]["chexlocalize"] == "counts as an empty region"
    assert (
        switches["ties"]["used"] == switches["ties"]["recommended"]
    )  # the tables of the page; it shows those of the paper too
    assert switch_facts("recommended", {})[0]["used"] == switch_facts("recommended", {})[0]["recommended"]
    assert all(facts["why"].endswith(".") for facts in switches.values())


def test_single_rules_can_be_set_to_the_other_presets():
    mixed = rules_with("recommended", {"ties": "chexlocalize", "resampling": "chexlocalize"})
    assert (mixed.ties, mixed.resampling, mixed.empty_region) == ("first", "images", "zero")
    assert rules_with("chexlocalize", {}) == CHEXLOCALIZE
    used = {facts["name"]: facts["used"] for facts in switch_facts("recommended", {"ties": "chexlocalize"})}
    assert used["ties"] == "the first one counts"
    with pytest.raises(InputError, match="did you mean 'ties'"):
        rules_with("recommended", {"tie": "chexlocalize"})
