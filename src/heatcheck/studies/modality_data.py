"""The cases of a modality study: which are tested in which fold, and what each is called in the run's tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path

from heatcheck.core.contracts import Source
from heatcheck.core.records import CaseKey
from heatcheck.fitting.folds import Fold
from heatcheck.running.pseudonyms import pseudonymous


@dataclass(frozen=True)
class ModalData:
    """The sources of a study, with the folds as places in the source's index."""

    source: Source
    known: Mapping[str, Source]  # by modality: cases on which it alone tells the class
    folds: tuple[Fold, ...]
    names: Mapping[str, str]  # what each case of the source is called in the run, by its own name


def data_of(source: Source, known: Mapping[str, Source], folds: Sequence[Fold], limit: int | None) -> ModalData:
    """The sources with at most `limit` cases to test in each fold, and as many on which a modality is known."""
    keys = source.index()

    def shortened(fold: Fold) -> Fold:
        kept = {key.case for key in limited([keys[place] for place in fold.test], source.findings, limit)}
        return replace(fold, test=tuple(place for place in fold.test if keys[place].case in kept))

    return ModalData(source, known, tuple(map(shortened, folds)), {key.case: key.case for key in keys})


def under_pseudonyms(data: ModalData, out: Path, limit: int | None) -> ModalData:
    """The same cases in the same folds under other names, and so in another order."""
    keys = data.source.index()
    hidden, renamed = pseudonymous(data.source, keys, out)
    names = {original.case: name for name, original in hidden.originals.items()}
    now_at = {key.case: place for place, key in enumerate(renamed)}
    folds = tuple(fold.moved([now_at[names[key.case]] for key in keys]) for fold in data.folds)
    known = {
        modality: pseudonymous(source, limited(source.index(), source.findings, limit), out)[0]
        for modality, source in data.known.items()
    }
    return ModalData(hidden, known, folds, names)


def limited(keys: Sequence[CaseKey], classes: Sequence[str], limit: int | None) -> Sequence[CaseKey]:
    """At most so many of the cases, in their order: the first of each class in turn, so that none is lost."""
    if limit is None:
        return keys
    by_class = [[place for place, key in enumerate(keys) if key.labels.get(name) == 1] for name in classes]
    in_turn = [place for place in chain.from_iterable(zip_longest(*by_class)) if place is not None]
    return [keys[place] for place in sorted(in_turn[:limit])]
