"""Cases are cut by group, scored in batches, and one bad case costs no other its rows."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.records import (
    Case,
    CaseKey,
    CaseRecord,
    Prediction,
    RegionRecord,
    Score,
    ShardTables,
    Timing,
    TruthShape,
)
from heatcheck.running.case_stage import (
    CaseStage,
    Part,
    ShardRows,
    by_case,
    by_finding,
    cut,
    score_batches,
    score_read_cases,
    timings,
)
from heatcheck.running.failed_cases import failure

KEYS = [CaseKey(f"c{number}", f"p{number}", {"f": 1.0}) for number in range(5)]


class Films:
    """Five films, of which the fourth is damaged."""

    def load(self, key):
        if key.case == "c3":
            raise CaseError("the film is damaged")
        return Case(key, np.zeros((1, 2, 3), np.float32), {})


@dataclass(frozen=True)
class Scorer:
    """Gives every case one row; some cases spoil their batch, after the rows of the others were made."""

    bad: tuple[str, ...] = ()
    error: Exception = field(default_factory=lambda: CaseError("no map", stage="map"))
    batches: list[list[str]] = field(default_factory=list)

    def score(self, batch):
        names = [case.key.case for case in batch]
        self.batches.append(names)
        rows = tuple(score(name) for name in names)
        if set(names) & set(self.bad):
            raise self.error
        return ShardTables(rows, cases=tuple(CaseRecord(case.key.case, case.key.patient, "ok") for case in batch))

    def failed(self, case, error):
        return failure(case.key, error)


def score(case, finding="f", method="m", metric="iou", condition="{}", other=""):
    return Score(case, case.replace("c", "p"), finding, method, "net", metric, 0.5, condition, other)


def states(rows):
    return [(record.case, record.status, record.reason) for record in rows.cases]


def test_parts_hold_cases_of_one_group_and_keep_their_order():
    parts = cut([("first", [1, 2, 3]), ("none", []), ("second", [4, 5])], 2)
    assert parts == [Part("first", [1, 2]), Part("first", [3]), Part("second", [4, 5])]


def test_a_stage_has_a_shard_for_each_part():
    class Halves(CaseStage):
        @property
        def parts(self):
            return cut([("all", KEYS)], 3)

        def work(self, shard):
            return ShardTables(cases=(CaseRecord(self.parts[shard].cases[0].case, "", "ok"),))

    stage = Halves()
    assert stage.shards == 2
    assert [stage.cases_in(shard) for shard in range(2)] == [3, 2]


def test_a_bad_case_is_recorded_and_the_others_keep_their_rows_once():
    scorer = Scorer(bad=("c1",))
    rows = score_read_cases(Films(), KEYS, scorer, 3, 2)
    assert scorer.batches == [["c0", "c1", "c2"], ["c0"], ["c1"], ["c2"], ["c4"]]
    assert [row.case for row in rows.scores] == ["c0", "c2", "c4"]
    assert states(rows.sorted_tables()) == [
        ("c0", "ok", ""),
        ("c1", "failed", "no map"),
        ("c2", "ok", ""),
        ("c3", "failed", "the film is damaged"),
        ("c4", "ok", ""),
    ]


def test_an_error_of_the_input_ends_the_work():
    with pytest.raises(InputError, match="no such file"):
        score_read_cases(Films(), KEYS, Scorer(("c1",), InputError("no such file")), 2, 1)


def test_batches_may_be_of_anything_a_study_can_score():
    class Doubled:
        def score(self, batch):
            return ShardTables(timings=tuple(Timing(number * 2, "map", "m", 1, 0.0) for number in batch))

        failed = None  # nothing fails

    rows = ShardRows()
    score_batches([[1, 2], [3]], Doubled(), rows)
    assert [row.shard for row in rows.timings] == [2, 4, 6]


def test_rows_of_every_table_are_gathered():
    one = ShardTables(
        scores=(score("c1"),),
        predictions=(Prediction("c1", "p1", "f", "net", 1.0, 0.0, 0.5),),
        cases=(CaseRecord("c1", "p1", "ok"),),
        timings=(Timing(0, "map", "m", 1, 0.1),),
        shapes=(record_of(TruthShape, case="c1", finding="f"),),
        regions=(record_of(RegionRecord, case="c1", finding="f"),),
        maps={"c1/m": np.zeros((2, 2), np.float32)},
    )
    other = ShardTables(**{
        name: tuple(replace(row, **({} if name == "timings" else {"case": "c0"})) for row in getattr(one, name))
        for name in ("scores", "predictions", "cases", "timings", "shapes", "regions")
    }, maps={"c0/m": np.ones((2, 2), np.float32)})  # fmt: skip
    rows = ShardRows()
    rows.add(one)
    rows.add(other)
    assert set(rows.maps) == {"c0/m", "c1/m"}
    added, ordered = rows.tables(), rows.sorted_tables()
    for name in ("scores", "predictions", "cases", "shapes"):
        assert getattr(added, name) == (*getattr(one, name), *getattr(other, name)), name
        assert getattr(ordered, name) == (*getattr(other, name), *getattr(one, name)), name
    for name in ("timings", "regions"):
        assert getattr(ordered, name) == (*getattr(one, name), *getattr(other, name)), name


def record_of(record, **known):
    """A record whose other fields do not matter."""
    return record(**{name: known.get(name, 0) for name in record.__dataclass_fields__})


def test_scores_are_sorted_by_case_or_by_finding_and_then_by_everything_else():
    rows = [
        score("c0", "a"),
        score("c0", "a", other="n"),
        score("c0", "a", condition="{}{}"),
        score("c0", "a", metric="mass"),
        score("c0", "a", "n"),
        score("c0", "b"),
        score("c1", "a"),
    ]
    mixed = rows[::-1]
    assert sorted(mixed, key=by_case) == rows
    assert sorted(mixed, key=by_finding) == [*rows[:5], rows[6], rows[5]]


def test_each_method_has_its_time():
    assert timings(3, "map", {"cam": 0.5, "lrp": 2.0}, 4, "net") == (
        Timing(3, "map", "cam", 4, 0.5, "net"),
        Timing(3, "map", "lrp", 4, 2.0, "net"),
    )
