"""The models, methods, metrics and source of a run as run.json describes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from heatcheck.core.contracts import Method
from heatcheck.methods import METHODS, changed_settings, plain_settings
from heatcheck.metrics import METRIC_FACTS
from heatcheck.models import MODELS, ModelSettings, Preprocessing
from heatcheck.runs.manifest import MethodEntry, MetricEntry, ModelEntry, ModelKind, SettingEntry, SourceEntry
from heatcheck.sources import SOURCES

RESIZED = "A map is resized once, straight from the method's own grid to the image: each further resize would blur it."


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """One of the run's models."""

    name: str  # in the tables
    label: str
    description: str
    architecture: str
    weights_hash: str
    contract: Preprocessing
    kind: ModelKind = "single"
    members: int = 1
    details: Mapping[str, Any] = field(default_factory=dict)  # facts that only this study records
    cautions: tuple[str, ...] = ()  # of a first look at what it makes of the images


def study_facts(
    findings: Iterable[str],
    methods: Mapping[str, Method],
    metrics: Iterable[str],
    source: str,
    notes: Iterable[str],
    cautions: Iterable[str] = (),
) -> dict[str, Any]:
    """The findings, methods, metrics, data and notes of a study, and cautions if there are any; none are empty."""
    said = list(dict.fromkeys(cautions))
    return {
        "findings": list(findings),
        "methods": [method_facts(*each) for each in methods.items()],
        "metrics": [metric_facts(name) for name in dict.fromkeys(metrics)],
        "source": source_facts(source),
        "notes": [note for note in notes if note],
        **({"cautions": said} if said else {}),
    }


def models_facts(models: Sequence[ModelRecord], primary: str) -> dict[str, Any]:
    """Every model, and the one whose results come first."""
    first = next(model for model in models if model.name == primary)
    entry = ModelEntry(name=first.name, description=first.description, outputs=first.contract.outputs)
    return {
        "models": [model_facts(model, primary=model is first) for model in models],
        "model": entry.model_dump(mode="json", include={"name", "description", "outputs"}),
    }


def model_facts(model: ModelRecord, *, primary: bool) -> dict[str, Any]:
    """A model's names, kind and weights."""
    entry = ModelEntry(
        name=model.name,
        label=model.label,
        description=model.description,
        architecture=model.architecture,
        kind=model.kind,
        members=model.members,
        weights_hash=model.weights_hash,
        primary=primary,
    )
    return {**entry.facts(), **model.details}


def architecture_label(name: str) -> str:
    """The name of the architecture for people; one that is not registered is the user's."""
    return MODELS[name].label if name in MODELS else "A model of your own"


def describe_model(settings: ModelSettings, origin: str = "") -> str:
    """The architecture and the origin of its weights; without folders, since reports are shared."""
    file = f"weights {settings.weights.name}" if settings.weights else ""
    return ", ".join(filter(None, (architecture_label(settings.name), origin or file)))


def method_facts(name: str, method: Method) -> dict[str, Any]:
    """A method's names, kind and settings."""
    facts = METHODS[name]
    entry = MethodEntry(
        name=name,
        label=facts.label,
        family=facts.family,
        kind="floor" if facts.is_floor else "method",
        note="the same map for every finding" if facts.same_for_all_targets else "",
        summary=facts.summary,
        changed=tuple(SettingEntry(**asdict(setting)) for setting in changed_settings(name, method)),
        settings=plain_settings(method),
        paper=facts.paper,
    )
    return entry.model_dump(mode="json")  # `facts` would leave out settings that are null


def stored_method_facts(name: str) -> dict[str, Any]:
    """A method whose maps were made elsewhere, described as the registered method of the same name if there is one."""
    if name not in METHODS:
        return MethodEntry(name=name, summary="Maps made elsewhere").model_dump(mode="json")
    facts = METHODS[name]
    words = {"label": facts.label, "family": facts.family, "summary": facts.summary, "paper": facts.paper}
    return MethodEntry(name=name, **words).model_dump(mode="json")


def metric_facts(name: str) -> dict[str, Any]:
    """A metric's names and meaning."""
    facts = METRIC_FACTS[name]
    return MetricEntry(
        name=name,
        label=facts.label,
        summary=facts.summary,
        higher_is_better=facts.higher_is_better,
        unit=facts.unit,
    ).facts()


def source_facts(name: str) -> dict[str, Any]:
    """A source's name and meaning."""
    facts = SOURCES[name]
    return SourceEntry(name=name, description=facts.summary, drawn=facts.drawn, published_as=facts.published_as).facts()
