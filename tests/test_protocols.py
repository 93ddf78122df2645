"""Every shipped spec is run to its end by `make protocols`, at a size that its study accepts."""

import pytest
import yaml
from benchmarks.protocols.run import MAIN, PROTOCOLS, merged

from heatcheck.fitting.spec import TrainingBody
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.studies.alignment.spec import AlignmentBody
from heatcheck.studies.localization.spec import LocalizationBody
from heatcheck.studies.modality.spec import ModalityBody
from heatcheck.studies.triggers.spec import TriggersBody

BODIES = {
    "alignment": AlignmentBody,
    "localization": LocalizationBody,
    "modality": ModalityBody,
    "training": TrainingBody,
    "triggers": TriggersBody,
}


def test_every_shipped_spec_has_a_protocol():
    assert set(PROTOCOLS) == set(shipped_specs())


def test_what_a_protocol_reads_is_run_before_it():
    order = list(PROTOCOLS)
    for name, protocol in PROTOCOLS.items():
        assert all(order.index(earlier) < order.index(name) for earlier in protocol.after)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_reduced_spec_is_valid(name, tmp_path):
    shipped = yaml.safe_load(shipped_specs()[name].read_text())
    reduced = tmp_path / f"{name}.yaml"
    reduced.write_text(yaml.safe_dump(merged(shipped, PROTOCOLS[name].changes), sort_keys=False))
    read_spec(str(reduced)).checked_body(BODIES[shipped["study"]])
    assert shipped["study"] in {*MAIN, "training"}
