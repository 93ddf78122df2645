import math

import pytest

from heatcheck.training.selection import Candidate, Check, best_candidate, best_checks, members, merit

NAN = math.nan


def check(step, loss=0.5, **auroc):
    return Check(step, 0, 0.6, loss, auroc)


def test_checks_rank_by_loss_or_by_mean_auroc_over_the_findings_named():
    low, high = check(1, 0.3, a=0.9, b=0.1, c=0.9), check(2, 0.4, a=0.7, b=0.7, c=0.1)
    assert best_checks([low, high], (), 1) == [low]
    assert best_checks([low, high], ("a", "b"), 1) == [high]
    assert merit(low, ("a", "b")) == pytest.approx(0.5)


def test_of_equals_the_later_is_kept_and_a_nan_never():
    checks = [check(1, 0.4), check(2, 0.4), check(3, NAN), check(4, 0.5)]
    assert [one.step for one in best_checks(checks, (), 2)] == [2, 1]
    assert [one.step for one in best_checks(checks, (), 9)] == [2, 1, 4]
    assert merit(check(1, a=NAN), ("a",)) == -math.inf
    assert merit(check(1, a=NAN, b=0.6), ("a", "b")) == pytest.approx(0.6)


def test_members_of_a_finding_have_its_highest_auroc_whatever_their_strategy():
    one, two, three = (
        Candidate("ignore", 1, check(10, a=0.9, b=0.6, c=NAN)),
        Candidate("ones", 1, check(20, a=0.8, b=0.9, c=NAN)),
        Candidate("ones", 2, check(30, a=0.7, b=0.9, c=NAN)),
    )
    every = [one, two, three]
    assert members(every, "a", ("a", "b"), 2) == [one, two]
    assert members(every, "b", ("a", "b"), 2) == [two, three]  # a tie is decided by the mean
    assert members(every, "c", ("a", "b"), 1) == [two]  # its AUROC is undefined: the best overall
    assert best_candidate(every, ("a", "b")) == two
    assert one.name == "ignore-1-000010.safetensors"
