"""The identity of a run: each of its parts distinguishes two runs, and nothing else does."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from heatcheck.core.records import CaseKey
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import digest_of
from heatcheck.running.identity import DataIdentity, run_identity, study_identity, weights_hash_of
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Envelope
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings

KEYS = (CaseKey("a", "p", {"Edema": 1}), CaseKey("b", "q", {"Edema": 0}))
DATA = DataIdentity(KEYS, "stamp")
OPTIONS = RunOptions(device="cpu", limit=3)


class Body(BaseModel):
    """The part of a spec that is the study's."""

    weights: Path = Path("films/ward.pt")
    sizes: tuple[int, ...] = (3, 4)


ENVELOPE, BODY = Envelope(study="my", seed=7), Body()


def of_study(envelope=ENVELOPE, body=BODY, options=OPTIONS, data=DATA, weights="w"):
    return study_identity(envelope, body, options, weights, {"size": [8, 8]}, data)


def test_spec_is_stored_as_json_reads_it_and_hashed_whatever_the_order_of_its_keys():
    identity = run_identity({"b": (1, 2), "a": None}, 0, "", DATA)
    assert identity["spec"] == {"a": None, "b": [1, 2]}
    assert identity["spec_hash"] == hashlib.sha256(b'{"a": null, "b": [1, 2]}').hexdigest()
    assert identity["spec_hash"] == run_identity({"a": None, "b": [1, 2]}, 0, "", DATA)["spec_hash"]


def test_identity_of_a_study_holds_the_whole_spec_the_models_the_data_and_the_options():
    identity = of_study()
    assert (
        identity["spec"] | {"study": "my", "seed": 7, "weights": "films/ward.pt", "sizes": [3, 4]} == identity["spec"]
    )
    stops = {"strict"}  # a run, but changes no result
    assert identity["spec"].keys() == {*Envelope.model_fields, *Body.model_fields} - stops
    hashes = {key: identity.pop(key) for key in ("spec", "spec_hash", "cases_hash")}
    assert hashes["spec_hash"] == hashlib.sha256(json.dumps(hashes["spec"], sort_keys=True).encode()).hexdigest()
    assert identity == {
        "weights_hash": "w",
        "contract": {"size": [8, 8]},
        "data_hash": "stamp",
        "seed": 7,
        "device": "cpu",
        "limit": 3,
        "pseudonymised": False,
    }


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"envelope": Envelope(study="my", seed=8)}, {"spec", "spec_hash", "seed"}),
        ({"body": Body(sizes=(5,))}, {"spec", "spec_hash"}),
        ({"weights": ["w", "v"]}, {"weights_hash"}),
        ({"data": replace(DATA, cases=KEYS[:1])}, {"cases_hash"}),
        ({"data": replace(DATA, cases=(KEYS[0], replace(KEYS[1], labels={"Edema": 1})))}, {"cases_hash"}),
        ({"data": replace(DATA, stamp="other")}, {"data_hash"}),
        ({"options": replace(OPTIONS, device="cuda")}, {"device"}),
        ({"options": replace(OPTIONS, limit=None)}, {"limit"}),
        ({"options": replace(OPTIONS, pseudonymise=True)}, {"pseudonymised"}),
        ({"options": replace(OPTIONS, workers=5, trust_code=True)}, set()),
    ],
)
def test_a_change_alters_the_part_it_concerns_and_no_other(changes, named):
    before, after = of_study(), of_study(**changes)
    assert {key for key in before if before[key] != after[key]} == named


def test_data_of_several_sources_are_the_cases_and_the_stamp_of_each():
    sources = [PhantomChest(PhantomChestSettings(patients=2, size=32, first=first)) for first in (0, 50)]
    data = DataIdentity.of_sources(iter(sources))
    assert list(data.cases) == [*sources[0].index(), *sources[1].index()]
    assert data.stamp == [source.stamp() for source in sources]


def test_weights_are_named_by_their_file_and_without_one_by_their_values():
    contract = Preprocessing(outputs=("Edema",), size=(32, 32), channels=1, mean=(0.0,), std=(1.0,))
    module = MODELS["vgg_compact"].build(1, contract.answers, contract.size)
    network = NetworkClassifier("network", module, contract)
    assert weights_hash_of(network) == digest_of(module)
    assert weights_hash_of(replace(network, weights_hash="file")) == "file"
