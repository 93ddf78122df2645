import math

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.studies.modality.made_tables import estimated, msfi_of, rule_of

from heatcheck.core.errors import InputError
from heatcheck.studies.modality.ratings import read_ratings, write_sheet
from heatcheck.studies.modality.vocabulary import ModalityEntry, ModalityMapsEntry

CASES, METHODS = ("c0", "c1", "c2"), ("gradient", "lime", "grad_cam")
HEADER = "reader,case,method,rating,comment\n"


def written(folder, text, header=HEADER):
    path = folder / "given.csv"
    path.write_text(header + text, encoding="utf-8")
    return path


def test_ratings_are_read_counted_and_kept(tmp_path):
    path = written(tmp_path, 'anna,c0,gradient,80,"clear, but wide"\nanna,c1,lime,0,\nben,c0,gradient,62.5,\n')
    seen = read_ratings(path, CASES, METHODS)
    assert seen.facts == {"ratings": {"readers": 2, "rows": 3, "comments": 1}}
    assert seen.rows[0].comment == "clear, but wide"
    saved = seen.save(tmp_path)
    assert saved.name == "ratings.csv"
    again = read_ratings(saved, CASES, METHODS)
    assert set(again.rows) == set(seen.rows)


def test_maps_that_were_not_rated_and_a_missing_column_of_comments_are_no_fault(tmp_path):
    path = written(tmp_path, "anna,c0,gradient,80\nanna,c0,lime,\n,c1,lime,\n", "reader,case,method,rating\n")
    assert len(read_ratings(path, CASES, METHODS).rows) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("anna,c0,gradient,101,", r"line 2: the rating must be a number from 0 to 100, got '101'"),
        ("anna,c0,gradient,-1,", "line 2: the rating must be a number"),
        ("anna,c0,gradient,good,", "got 'good'"),
        ("anna,c0,gradient,nan,", "got 'nan'"),
        (",c0,gradient,50,", "line 2: the reader is missing"),
        ("anna,c7,gradient,50,", "line 2: the run has no case 'c7'; did you mean"),
        ("anna,c0,gradients,50,", "line 2: the run has no method 'gradients'; did you mean 'gradient'"),
        ("anna,c0,gradient,50,\nanna,c0,gradient,60,", "line 3: anna rated gradient on c0 in line 2 already"),
        ("anna,c0,gradient,,", "has no rating; fill in"),
        ("anna,c0,gradient", "line 2: another number of cells"),
    ],
)
def test_line_that_cannot_be_used_is_named_with_its_remedy(tmp_path, line, said):
    with pytest.raises(InputError, match=said):
        read_ratings(written(tmp_path, line + "\n"), CASES, METHODS)


def test_lost_file_and_lost_columns_are_named(tmp_path):
    with pytest.raises(InputError, match=r"lost.csv does not exist; .*--sheet"):
        read_ratings(tmp_path / "lost.csv", CASES, METHODS)
    with pytest.raises(InputError, match="no column method, rating; its columns must be reader,case,method"):
        read_ratings(written(tmp_path, "", "reader,case\n"), CASES, METHODS)


def test_unknown_case_among_hundreds_does_not_list_them_all(tmp_path):
    cases = [f"BraTS20_Training_{n:03d}" for n in range(300)]
    with pytest.raises(InputError, match="it has 300 others"):
        read_ratings(written(tmp_path, "anna,zzzz,gradient,50,\n"), cases, METHODS)


SHOWN = tuple(
    ModalityMapsEntry(method=name, files={}, msfi=0.5, mi_correlation=None, lesion_share=0.2)
    for name in (*METHODS, "uniform")
)
ENTRIES = [ModalityEntry(id=c, case=c, finding="HGG", shape=(8, 8), images={}, maps=SHOWN) for c in CASES]


def test_sheet_has_a_row_for_every_map_of_the_gallery(tmp_path):
    target = tmp_path / "sheet.csv"
    assert write_sheet(target, ENTRIES, METHODS) == 9
    lines = target.read_text().splitlines()
    assert lines[0] + "\n" == HEADER
    assert lines[1] == ",c0,gradient,,"
    assert len(lines) == 10
    with pytest.raises(InputError, match="exists already"):
        write_sheet(target, ENTRIES, METHODS)
    with pytest.raises(InputError, match="not a folder"):
        write_sheet(tmp_path / "nowhere" / "sheet.csv", ENTRIES, METHODS)
    with pytest.raises(InputError, match="has no map"):
        write_sheet(tmp_path / "other.csv", [], METHODS)


def rated(folder, ratings, *scores, **changed):
    """The estimates of a run with these ratings: ratings[reader][case][method]."""
    lines = [
        f"{reader},c{case},{METHODS[method]},{value},"
        for reader, table in ratings.items()
        for case, row in enumerate(table)
        for method, value in enumerate(row)
        if not math.isnan(value)
    ]
    (folder / "ratings.csv").write_text(HEADER + "\n".join(lines) + "\n")
    return estimated(folder, rule_of(**changed), *scores)


ALL, CASE = {"with_metric": "msfi", "within": "all"}, {"with_metric": "msfi", "within": "case"}


def drawn(seed, cases=20):
    """Scores of three methods and ratings of two readers that go with them."""
    generator = np.random.default_rng(seed)
    values = generator.random((cases, 3))
    ratings = {name: np.clip(100 * values + generator.normal(0, 15, values.shape), 0, 100) for name in ("anna", "ben")}
    return values, ratings


def test_correlation_is_scipys_over_the_readers_mean(tmp_path):
    values, ratings = drawn(1)
    scores = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    found = rated(tmp_path, ratings, *scores)
    mean = (ratings["anna"] + ratings["ben"]) / 2
    whole = found.one("correlation", "rating", **ALL)
    assert whole.value == pytest.approx(spearmanr(mean.ravel(), values.ravel()).statistic)
    assert (whole.n_cases, whole.n_patients) == (60, 20)
    assert whole.low < whole.value < whole.high
    for place, method in enumerate(METHODS):
        one = found.one("correlation", "rating", method, **ALL)
        assert one.value == pytest.approx(spearmanr(mean[:, place], values[:, place]).statistic)
    within = found.one("correlation", "rating", **CASE)
    each = [spearmanr(mean[case], values[case]).statistic for case in range(20)]
    assert within.value == pytest.approx(np.mean(each))
    assert within.low < within.value < within.high


@pytest.mark.parametrize(("noise", "cases"), [(15, 20), (120, 12), (400, 40)])
def test_p_values_come_with_their_intervals_and_the_papers_is_scipys(tmp_path, noise, cases):
    generator = np.random.default_rng(noise)
    values = generator.random((cases, 3))
    ratings = {"anna": np.clip(50 + 30 * values + generator.normal(0, noise, values.shape) / 4, 0, 100)}
    scores = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    found = rated(tmp_path, ratings, *scores, draws=999)
    for condition in (ALL, CASE):
        row = found.one("correlation", "rating", **condition)
        assert (row.p_value < 0.05) == (row.low > 0 or row.high < 0)
        assert 0 < row.p_value <= 1
    plain = found.one("correlation", "rating", with_metric="msfi", within="maps")
    wanted = spearmanr(ratings["anna"].ravel(), values.ravel())
    assert (plain.value, plain.p_value) == pytest.approx((wanted.statistic, wanted.pvalue))
    assert (plain.n_cases, plain.n_patients) == (3 * cases, cases)


def test_maps_of_one_patient_make_the_papers_p_value_too_small(tmp_path):
    """Three maps of each patient with the same rating and score are one observation, not three."""
    generator = np.random.default_rng(4)
    value = generator.random((24, 1)).repeat(3, 1)
    ratings = {"anna": np.clip(30 + 12 * value + generator.normal(0, 8, (24, 1)), 0, 100)}
    scores = [msfi_of(column, method) for method, column in zip(METHODS, value.T, strict=True)]
    found = rated(tmp_path, ratings, *scores, draws=999)
    alone = spearmanr(ratings["anna"][:, 0], value[:, 0]).pvalue
    assert found.one("correlation", "rating", with_metric="msfi", within="maps").p_value < 0.2 * alone
    assert found.one("correlation", "rating", **ALL).p_value == pytest.approx(alone, abs=0.06)


def test_methods_have_their_mean_rating_and_readers_their_agreement(tmp_path):
    values, ratings = drawn(2)
    scores = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    found = rated(tmp_path, ratings, *scores)
    one = found.one("mean", "rating", "lime")
    assert one.value == pytest.approx((ratings["anna"] + ratings["ben"])[:, 1].mean() / 2)
    assert one.low < one.value < one.high
    alpha = found.one("alpha", "rating")
    assert 0.5 < alpha.low < alpha.value < alpha.high < 1
    assert (alpha.n_cases, alpha.n_patients) == (60, 20)


def test_one_reader_alone_has_no_agreement_and_few_maps_no_order(tmp_path):
    values, ratings = drawn(3, cases=4)
    alone = {"anna": ratings["anna"][:, :2]}
    scores = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    found = rated(tmp_path, alone, *scores)
    assert found.one("alpha", "rating").reason == "nothing was rated by two readers"
    within = found.one("correlation", "rating", **CASE)
    assert math.isnan(within.value)
    assert "three rated methods" in within.reason
    assert not found.all(statistic="mean", metric="rating", method="grad_cam")


def test_maps_without_a_score_keep_their_rating_and_leave_the_correlation(tmp_path):
    values, ratings = drawn(4, cases=6)
    values[2, 0] = math.nan
    scores = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    found = rated(tmp_path, ratings, *scores)
    assert found.one("correlation", "rating", **ALL).n_cases == 17
    assert found.one("correlation", "rating", **ALL).n_undefined == 1
    assert found.one("mean", "rating", "gradient").n_cases == 6


def test_ratings_are_compared_with_the_primary_score_alone(tmp_path):
    values, ratings = drawn(5, cases=6)
    scores = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    scores += [msfi_of(1 - column, method, weights="min_max") for method, column in zip(METHODS, values.T, strict=True)]
    found = rated(tmp_path, ratings, *scores)
    assert found.one("correlation", "rating", **ALL).value > 0.5
