"""The identity of a run in run.json: spec, weights, cases and options, which must not change when it is continued."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel

from heatcheck.core.contracts import Source
from heatcheck.core.records import CaseKey
from heatcheck.models import NetworkClassifier
from heatcheck.models.load import digest_of as weights_digest
from heatcheck.running.cases import digest_of as cases_digest
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import Envelope


@dataclass(frozen=True, slots=True)
class DataIdentity:
    """The cases of a run, and the stamp of the data they are read from."""

    cases: Sequence[CaseKey]
    stamp: str | list[str]  # one per source if there are several

    @classmethod
    def of_sources(cls, sources: Iterable[Source]) -> Self:
        """Every case of several sources."""
        listed = list(sources)
        return cls([key for source in listed for key in source.index()], [source.stamp() for source in listed])


def run_identity(
    spec: Mapping[str, Any], seed: int, weights_hash: str | list[str], data: DataIdentity
) -> dict[str, Any]:
    """The resolved spec, the weights and the cases, with their hashes."""
    text = json.dumps(spec, sort_keys=True)
    return {
        "spec": json.loads(text),
        "spec_hash": hashlib.sha256(text.encode()).hexdigest(),
        "weights_hash": weights_hash,
        "cases_hash": cases_digest(data.cases),
        "data_hash": data.stamp,
        "seed": seed,
    }


def study_identity(
    envelope: Envelope,
    body: BaseModel,
    options: RunOptions,
    weights_hash: str | list[str],
    contract: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    data: DataIdentity,
) -> dict[str, Any]:
    """The identity of a study's run: its spec, weights, model contracts, cases, and the options that change results."""
    common = envelope.model_dump(mode="json", exclude={"strict"})  # it changes no result, but stops the run
    spec = {**common, **body.model_dump(mode="json")}
    return {
        **run_identity(spec, envelope.seed, weights_hash, data),
        "contract": contract,
        "device": options.device,
        "limit": options.limit,
        "pseudonymised": options.pseudonymise,
    }


def rest_hash_of(source: Source, keys: Sequence[CaseKey], failed: Collection[str]) -> str:
    """A hash of the data without the files, labels and facts of these cases; empty where the source cannot say."""
    stamp_without = getattr(source, "stamp_without", None)
    stamp = stamp_without(failed) if stamp_without else ""
    if not stamp:
        return ""
    known = [[key.case] if key.case in failed else [key.case, key.patient, _facts(key)] for key in keys]
    return hashlib.sha256(json.dumps([stamp, known], default=str).encode()).hexdigest()


def _facts(key: CaseKey) -> list[object]:
    return [sorted(key.labels.items()), sorted(key.facts.items())]


def weights_hash_of(classifier: NetworkClassifier) -> str:
    """The hash of the weights file, or of the weights themselves if there is no file."""
    return classifier.weights_hash or weights_digest(classifier.module)
