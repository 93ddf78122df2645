"""The methods that a spec lists, by name, with settings or as a set, and what is left of them on its models."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from heatcheck.core.contracts import Method
from heatcheck.core.errors import ModelError, SpecError, UnknownNameError
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import listed
from heatcheck.methods import METHODS, build_method
from heatcheck.methods.registry import MethodFacts
from heatcheck.methods.sets import FAST, RECOMMENDED, SETS, is_fast, members_of, one_of_each_family, stand_ins
from heatcheck.runs.manifest import SkippedEntry


def _by_name(value: object) -> object:
    """One method or several, with names as mappings without settings; anything else stays as it is."""
    several = listed(value)
    if not isinstance(several, list | tuple):
        return several
    return [{"name": item} if isinstance(item, str) else item for item in several]


MethodParts = Annotated[tuple[dict[str, Any], ...], BeforeValidator(_by_name)]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method that a run does without, since it cannot explain this model."""

    name: str
    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class MethodRules:
    """What a study allows: methods in sets, keys of a method that are the study's own, methods that must run."""

    in_sets: Callable[[MethodFacts], bool] = lambda _: True
    own_keys: Sequence[str] = ()
    strict: bool = False  # a method that the spec names and that cannot explain a model stops the run


@dataclass(frozen=True)
class MethodChoice:
    """The methods that a spec asks for; on each of its models, those that cannot explain it are left out."""

    parts: tuple[dict[str, Any], ...]  # one per method as a spec writes it, in the order of the report
    methods: Mapping[str, Method]
    named: frozenset[str]  # by the spec itself; the others are members of sets
    members: Mapping[str, frozenset[str]]  # by set
    strict: bool = False
    skipped: tuple[Skipped, ...] = ()

    def affordable(self, shape: tuple[int, ...]) -> "MethodChoice":
        """The choice with those members of `fast` that need few passes for an image of this shape."""
        if FAST not in self.members:
            return self
        fast = frozenset(name for name in self.members[FAST] if is_fast(name, self.methods[name], shape))
        return self.only({**self.members, FAST: fast})

    def without(self, skipped: Sequence[Skipped]) -> "MethodChoice":
        """The choice without methods that cannot explain a model."""
        return replace(self, skipped=(*self.skipped, *skipped)).only(self.members)

    def settled(self, *, required: bool = True) -> "MethodChoice":
        """The choice after every model was tried: of what is recommended, one method of each family.

        If methods are required, and none is left but floors, that is refused.
        """
        chosen = self._best_of_each_family() if RECOMMENDED in self.members else self
        lost = [each for each in chosen.skipped if not METHODS[each.name].is_floor]
        if required and lost and all(METHODS[name].is_floor for name in chosen.methods):
            raise ModelError(f"no method is left to explain model {lost[0].model}; {in_words(chosen.skipped)}")
        return chosen

    def _best_of_each_family(self) -> "MethodChoice":
        best = one_of_each_family(sorted(self.members[RECOMMENDED]), self.methods)
        others = self.named.union(*(members for name, members in self.members.items() if name != RECOMMENDED))
        idle = {other for name in best for other in stand_ins(name)} - others  # a better one of their family runs
        skipped = tuple(each for each in self.skipped if each.name not in idle)
        return replace(self.only({**self.members, RECOMMENDED: best}), skipped=skipped)

    def only(self, members: Mapping[str, frozenset[str]]) -> "MethodChoice":
        """The choice with these members of its sets, without what is skipped."""
        kept = self.named.union(*members.values()) - {each.name for each in self.skipped}
        parts = tuple(part for part in self.parts if part["name"] in kept)
        methods = {name: method for name, method in self.methods.items() if name in kept}
        return replace(self, parts=parts, methods=methods, members=members)


def in_words(skipped: Sequence[Skipped]) -> str:
    """Each method with the reason for which it is skipped."""
    return "; ".join(f"{METHODS[each.name].label}: {each.reason}" for each in skipped)


def skipped_facts(skipped: Sequence[Skipped]) -> dict[str, Any]:
    """What run.json says of methods that are skipped; nothing where there are none."""
    entries = [
        SkippedEntry(name=each.name, label=METHODS[each.name].label, model=each.model, reason=each.reason)
        for each in skipped
    ]
    return {"skipped": [entry.facts() for entry in entries]} if entries else {}


def chosen_methods(parts: Sequence[Mapping[str, Any]], where: str, rules: MethodRules = MethodRules()) -> MethodChoice:
    """The methods with their settings, in order, before they are tried on a model; a set stands for its members."""
    named: dict[str, dict[str, Any]] = {}
    sets: dict[str, tuple[str, ...]] = {}
    for part in parts:
        name = _name_of(part, where)
        if name in named or name in sets:
            raise SpecError(f"{where}: method {name!r} is named twice; remove one")
        if name in SETS:
            sets[name] = members_of(name, rules.in_sets)
        else:
            named[name] = dict(part)
    every = {name: named.get(name, {"name": name}) for name in _in_order(parts, sets, named)}
    return MethodChoice(
        parts=tuple(every.values()),
        methods={name: _built(part, rules.own_keys) for name, part in every.items()},
        named=frozenset(named),
        members={name: frozenset(members) for name, members in sets.items()},
        strict=rules.strict,
    )


def _name_of(part: Mapping[str, Any], where: str) -> str:
    name = part.get("name")
    if not isinstance(name, str):
        raise SpecError(f"{where}: each of `methods` must be a name, or a mapping with a `name` and settings")
    if name not in METHODS and name not in SETS:
        raise UnknownNameError(f"unknown method {name!r}; {suggest(name, [*METHODS, *SETS])}")
    if name in SETS and len(part) > 1:
        raise SpecError(f"{where}: {name!r} stands for several methods, which have no settings in common; name them")
    return name


def _in_order(
    parts: Sequence[Mapping[str, Any]], sets: Mapping[str, tuple[str, ...]], named: Collection[str]
) -> Iterator[str]:
    """Every method where the spec names it, or has the set of which it is a member."""
    for part in parts:
        yield from (name for name in sets.get(part["name"], ()) if name not in named)
        yield from [part["name"]] if part["name"] in named else []


def _built(part: Mapping[str, Any], own_keys: Sequence[str]) -> Method:
    settings = {key: value for key, value in part.items() if key not in {"name", *own_keys}}
    return build_method(part["name"], settings)
