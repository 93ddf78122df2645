"""The report's words: a metric has one name, whoever speaks of it."""

from collections import Counter

import pytest

from heatcheck.metrics import METRIC_FACTS
from heatcheck.studies.alignment.report.sections import example as alignment_example
from heatcheck.studies.modality.report.sections import importance as modality_importance
from heatcheck.studies.modality.report.sections import networks as modality_networks
from heatcheck.studies.triggers.report.sections import agreement
from heatcheck.studies.triggers.report.sections import attack as trigger_attack

NAMED = {  # the report's own lists of names
    "agreement": {name: likeness.name for name, likeness in agreement.MEASURES.items()},
    "alignment example": {
        {"mutual_information": "mutual_information_label"}.get(name, name): heading  # as the paper's table calls it
        for name, heading in alignment_example.COLUMNS.items()
    },
    "importances": modality_importance.NAMES,
    "networks": modality_networks.COLUMNS,
    "attack": trigger_attack.COLUMNS,
}


@pytest.mark.parametrize("name", sorted(METRIC_FACTS))
def test_report_calls_a_metric_what_the_registry_calls_it(name):
    facts = METRIC_FACTS[name]
    for where, names in NAMED.items():
        assert names.get(name, facts.label) == facts.label, where


def test_no_two_metrics_share_a_name():
    assert [label for label, n in Counter(facts.label for facts in METRIC_FACTS.values()).items() if n > 1] == []
