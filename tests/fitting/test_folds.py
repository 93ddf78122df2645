from collections import Counter

import pytest

from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import CaseKey
from heatcheck.fitting.folds import read_folds, stratified_folds

CLASSES = ("LGG", "HGG")


def cases(low=76, high=293, views=1):
    """Cases as in BraTS 2020, or with several time points per patient."""
    grades = ["LGG"] * low + ["HGG"] * high
    return [
        CaseKey(f"case{number:03d}-{view}", f"patient{number:03d}", {name: float(name == grade) for name in CLASSES})
        for number, grade in enumerate(grades)
        for view in range(views)
    ]


def grades_of(keys, positions):
    return Counter("LGG" if keys[position].labels["LGG"] else "HGG" for position in positions)


@pytest.mark.parametrize("views", [1, 3])
def test_every_case_is_tested_once_and_never_with_its_own_patient_in_training(views):
    keys = cases(views=views)
    folds = stratified_folds(keys, CLASSES, 5, seed=1)
    assert [fold.number for fold in folds] == [1, 2, 3, 4, 5]
    assert sorted(position for fold in folds for position in fold.test) == list(range(len(keys)))
    for fold in folds:
        parts = [{keys[position].patient for position in part} for part in (fold.training, fold.validation, fold.test)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 369
        assert len(fold.training) + len(fold.validation) + len(fold.test) == len(keys)


def test_folds_have_the_classes_shares_and_a_fifth_of_the_rest_for_validation():
    keys = cases()
    folds = stratified_folds(keys, CLASSES, 5, seed=1)
    assert {len(fold.test) for fold in folds} == {73, 74}
    for fold in folds:
        assert grades_of(keys, fold.test)["LGG"] in (15, 16)
        assert grades_of(keys, fold.validation)["LGG"] == 12
        assert grades_of(keys, fold.validation)["HGG"] in (46, 47)


def test_folds_depend_on_the_seed_and_on_nothing_else():
    keys = cases()
    assert stratified_folds(keys, CLASSES, 5, seed=1) == stratified_folds(keys, CLASSES, 5, seed=1)
    assert stratified_folds(keys, CLASSES, 5, seed=1)[0].test != stratified_folds(keys, CLASSES, 5, seed=2)[0].test
    more = stratified_folds(keys, CLASSES, 5, seed=1, validation=0.5)
    assert [fold.test for fold in more] == [fold.test for fold in stratified_folds(keys, CLASSES, 5, seed=1)]


@pytest.mark.parametrize(
    ("low", "folds", "message"),
    [
        (4, 5, "fold . of 5 has 0 patients of class LGG to test"),
        (2, 2, "has 1 patients of class LGG to test and 1 for training and validation"),
        (0, 2, "has 0 patients of class LGG"),
        (9, 1, "there must be two folds or more"),
    ],
)
def test_too_few_patients_of_a_class_are_refused_by_its_name(low, folds, message):
    with pytest.raises(SpecError, match=message):
        stratified_folds(cases(low, 20), CLASSES, folds, seed=1)


def test_case_of_no_class_and_a_share_that_is_none_are_refused():
    with pytest.raises(SpecError, match="case odd has none of the classes LGG, HGG"):
        stratified_folds([*cases(), CaseKey("odd", "odd", {"LGG": 0.0, "HGG": 0.0})], CLASSES, 5, seed=1)
    with pytest.raises(SpecError, match="validation_share"):
        stratified_folds(cases(), CLASSES, 5, seed=1, validation=1.0)


def written(folder, rows):
    path = folder / "folds.csv"
    path.write_text("\n".join(["case,fold", *rows]) + "\n")
    return path


def rows_of(keys, folds=3):
    return [f"{key.case},{int(key.patient[7:]) % folds + 1}" for key in keys]


def test_folds_of_a_file_are_as_it_says(tmp_path):
    keys = cases(6, 9, views=2)
    path = written(tmp_path, [*rows_of(keys), "another,2"])
    folds = read_folds(path, keys, CLASSES, seed=1)
    for fold in folds:
        assert {int(keys[position].patient[7:]) % 3 + 1 for position in fold.test} == {fold.number}
        assert len(fold.training) + len(fold.validation) + len(fold.test) == 30
        assert grades_of(keys, fold.validation) == {"LGG": 2, "HGG": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, "case003-0,2"], r"folds.csv: case case003-0 is in two folds, 1 and 2; keep one"),
        (lambda rows: [*rows, rows[0]], r"folds.csv: case case000-0 is listed twice"),
        (lambda rows: rows[1:], r"does not say in which fold case case000-0 is tested"),
        (lambda rows: [rows[0].replace(",1", ",2"), *rows[1:]], "patient patient000 is in two folds, with case"),
        (lambda rows: [*rows[:-1], rows[-1].split(",")[0] + ",x"], r"line 31: fold is 'x'; folds are numbered from 1"),
        (lambda rows: [row.replace(",3", ",4") for row in rows], "without a gap, got 1, 2, 4"),
    ],
)  # fmt: skip
def test_file_of_folds_that_cannot_be_is_refused_in_one_line(tmp_path, change, message):
    keys = cases(6, 9, views=2)
    with pytest.raises(InputError, match=message) as refused:
        read_folds(written(tmp_path, change(rows_of(keys))), keys, CLASSES, seed=1)
    assert "\n" not in str(refused.value)


def test_file_of_folds_that_is_missing_or_has_other_columns_is_refused(tmp_path):
    with pytest.raises(SpecError, match="no such file of folds"):
        read_folds(tmp_path / "nowhere.csv", cases(), CLASSES, seed=1)
    (tmp_path / "folds.csv").write_text("case,part\na,1\n")
    with pytest.raises(SpecError, match="has no column 'fold'; its columns are case, part"):
        read_folds(tmp_path / "folds.csv", cases(), CLASSES, seed=1)
