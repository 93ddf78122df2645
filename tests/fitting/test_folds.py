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


HEADER = "Grade,BraTS_2019_subject_ID,BraTS_2020_subject_ID"


def published(folder, keys, others=()):
    """Folds in the files that Jin et al. published, with validation cases that no seed of ours would draw."""
    folder.mkdir()
    for number in (1, 2, 3):
        parts = {"train": [], "val": [], "test": []}
        for key in keys:
            place = (int(key.patient[7:]) - number) % 3
            parts["test" if place == 0 else "val" if place == 1 else "train"].append(key.case)
        for part, names in parts.items():
            rows = [f"HGG,,{name}" for name in (*names, *others)]
            (folder / f"{part}_fold_{number}.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return folder


def test_published_folds_are_read_as_they_are_with_their_validation_cases(tmp_path):
    keys = cases(6, 9, views=2)
    folder = published(tmp_path / "Grade", keys, ["of another copy", "NA", "NA"])
    for seed in (1, 2):  # nothing is drawn
        folds = read_folds(folder, keys, CLASSES, seed, validation=0.5)
        assert [fold.number for fold in folds] == [1, 2, 3]
        for fold in folds:
            for place, part in ((0, fold.test), (1, fold.validation), (2, fold.training)):
                wanted = [i for i, key in enumerate(keys) if (int(key.patient[7:]) - fold.number) % 3 == place]
                assert list(part) == wanted


def moved(folder, names, number, source, target):
    """Take cases out of one file of a fold, and put them into another."""
    lines = [f"HGG,,{name}" for name in names]
    if source:
        path = folder / f"{source}_fold_{number}.csv"
        path.write_text("\n".join(line for line in path.read_text().splitlines() if line not in lines) + "\n")
    if target:
        path = folder / f"{target}_fold_{number}.csv"
        path.write_text("\n".join([*path.read_text().splitlines(), *lines]) + "\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((["case000-0"], 3, "", "val"), "Grade: in fold 3 case case000-0 is in val and in test; put it in one of them"),
        ((["case001-0"], 1, "test", ""), "Grade: in fold 1 case case001-0 is in none of its files; put it in one"),
        ((["case001-1"], 1, "test", "train"), "in fold 1 patient patient001 is in test and train; put all cases in"),
        ((["case001-0"], 1, "", "test"), r"test_fold_1.csv: case case001-0 is listed twice; keep one row"),
        ((["case002-0", "case002-1", "case005-0", "case005-1"], 1, "val", "train"),
         r"val_fold_1.csv names no case of class LGG; correct it or add cases"),
    ],
)  # fmt: skip
def test_published_folds_that_cannot_be_are_refused_in_one_line(tmp_path, change, message):
    keys = cases(6, 9, views=2)
    folder = published(tmp_path / "Grade", keys)
    moved(folder, *change)
    with pytest.raises(InputError, match=message) as refused:
        read_folds(folder, keys, CLASSES, seed=1)
    assert "\n" not in str(refused.value)


def test_published_folds_without_a_part_or_with_a_case_tested_twice_are_refused(tmp_path):
    keys = cases(6, 9)
    folder = published(tmp_path / "Grade", keys)
    for part in ("train", "val", "test"):
        text = (folder / f"{part}_fold_1.csv").read_text()
        (folder / f"{part}_fold_4.csv").write_text(text)
    with pytest.raises(SpecError, match="case case001-0 is tested in two folds, 1 and 4"):
        read_folds(folder, keys, CLASSES, seed=1)
    for part in ("train", "val", "test"):
        (folder / f"{part}_fold_4.csv").unlink()
        (folder / f"{part}_fold_3.csv").unlink()
    with pytest.raises(SpecError, match="case case000-0 is tested in no fold"):
        read_folds(folder, keys, CLASSES, seed=1)
    (folder / "val_fold_2.csv").unlink()
    with pytest.raises(SpecError, match=r"val_fold_2.csv: no such file; a fold has a train, a val and a test file"):
        read_folds(folder, keys, CLASSES, seed=1)
    (folder / "test_fold_2.csv").unlink()
    with pytest.raises(SpecError, match=r"needs the files test_fold_1.csv and test_fold_2.csv or more"):
        read_folds(folder, keys, CLASSES, seed=1)
