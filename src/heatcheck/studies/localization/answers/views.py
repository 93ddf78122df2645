"""Several views of one examination as one answer: a finding is as probable as in the view that shows it most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.contracts import Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.batch import Explained
from heatcheck.explaining.study_models import CaseExplainer
from heatcheck.studies.localization.settings import LocalizationSettings

JOINED = (
    "Several views of one study give one answer, the highest probability among them: AUROC and calibration count "
    "studies, and cutoffs and confidence take this probability for each of the views."
)
_ANSWER = ("probability", "logit", "scaled")  # columns that the views of an examination share


@dataclass(frozen=True, slots=True)
class Views:
    """Which examination each image is a view of; tables of answers are those of one model."""

    examination: Mapping[str, str]  # by case

    def joined(self, answers: pd.DataFrame) -> pd.DataFrame:
        """One row per examination and finding, in place of the case: its highest probability, and label.

        A finding is present if it is in one view, and unknown if it is unknown in all.
        """
        rows = self._named(answers).sort_values(["finding", "examination", "probability", "case"])
        groups = rows.groupby(["finding", "examination"], sort=False, observed=True)
        joined = groups.tail(1).assign(label=groups["label"].max().to_numpy())
        return joined.assign(case=joined["examination"]).drop(columns="examination").reset_index(drop=True)

    def on_images(self, joined: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
        """The answers image by image, each with the probability of its examination."""
        shared = [name for name in _ANSWER if name in joined]
        known = joined[["finding", "case", *shared]].rename(columns={"case": "examination"})
        kept = self._named(answers).drop(columns=[name for name in shared if name in answers])
        return kept.merge(known, on=["finding", "examination"], how="left").drop(columns="examination")

    def spread(self, answers: pd.DataFrame) -> pd.DataFrame:
        """The answers image by image, each with the highest probability of its examination."""
        return self.on_images(self.joined(answers), answers)

    def _named(self, answers: pd.DataFrame) -> pd.DataFrame:
        words = answers.astype(dict.fromkeys(("case", "finding"), object))
        return words.assign(examination=[self.examination[case] for case in words["case"]])


def views_in(folder: Path, settings: LocalizationSettings) -> Views | None:
    """The examinations of the images whose tables are in this folder; None if each image is its own answer."""
    if settings.views == "each":
        return None
    cases = pq.read_table(folder / "cases.parquet", columns=["case", "examination"]).to_pylist()
    return Views({row["case"]: row["examination"] or row["case"] for row in cases})


def require_examinations(keys: Sequence[CaseKey], where: str) -> None:
    """Refuse to join views where no image says which examination it belongs to."""
    if not any(key.examination for key in keys):
        raise SpecError(
            f"{where}: `views: max` joins the views of a study, but no image says which study it belongs to; add a "
            "column `study` to the labels, name images like patient1_study1_view1, or leave it out"
        )


@dataclass(frozen=True, slots=True)
class OtherViews:
    """Asks a model about the other views of a case's examination, which may be in another shard."""

    source: Source
    by_examination: Mapping[str, Sequence[CaseKey]]
    said: dict[str, tuple[float, ...]] = field(default_factory=dict)  # probabilities by case

    def joined(self, explained: Sequence[Explained], explainer: CaseExplainer) -> list[Explained]:
        """The explained cases, each with the highest probability of its examination."""
        self.said.update({each.case.key.case: each.probabilities for each in explained})
        views = [view for each in explained for view in self._views(each)]
        self._ask({view.case: view for view in views if view.case not in self.said}, explainer)
        return [replace(each, probabilities=self._highest(each)) for each in explained]

    def _views(self, each: Explained) -> Sequence[CaseKey]:
        key = each.case.key
        return self.by_examination.get(key.examination, ()) if key.examination else ()

    def _highest(self, each: Explained) -> tuple[float, ...]:
        said = [each.probabilities, *(self.said[view.case] for view in self._views(each))]
        return tuple(np.max([probabilities for probabilities in said if probabilities], axis=0).tolist())

    def _ask(self, missing: Mapping[str, CaseKey], explainer: CaseExplainer) -> None:
        """Add the probabilities of these views; none of an image that cannot be used, whose turn records why.

        They are asked about together, since an ensemble reads each of its members every time.
        """
        self.said.update(dict.fromkeys(missing, ()))
        loaded = [case for key in missing.values() if (case := self._loaded(key)) is not None]
        if loaded:
            self._answer(loaded, replace(explainer, methods={}))

    def _loaded(self, key: CaseKey) -> Case | None:
        try:
            return self.source.load(key)
        except InputError:
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with it must not fail another view
            return None

    def _answer(self, cases: Sequence[Case], explainer: CaseExplainer) -> None:
        try:
            answered, _ = explainer(cases)
        except InputError:
            raise
        except Exception:  # noqa: BLE001 - one of them spoils it for the others
            for case in cases if len(cases) > 1 else ():
                self._answer([case], explainer)
        else:
            self.said.update({each.case.key.case: each.probabilities for each in answered})


def other_views(source: Source, keys: Sequence[CaseKey]) -> OtherViews:
    """The views of every examination among these cases."""
    by_examination: dict[str, list[CaseKey]] = {}
    for key in keys:
        if key.examination:
            by_examination.setdefault(key.examination, []).append(key)
    return OtherViews(source, by_examination)
