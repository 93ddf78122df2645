"""Which group a case belongs to, and what is refused."""

import math

import pytest
from pydantic import ValidationError

from heatcheck.core.errors import SpecError
from heatcheck.core.records import CaseKey
from heatcheck.studies.localization.subgroups.groups import Subgroup, by_column, subgroups_of


def keys_of(**facts):
    """A case per value, named c0, c1 …"""
    rows = zip(*facts.values(), strict=True)
    return [
        CaseKey(f"c{n}", f"p{n}", {"Edema": float(n % 2)}, dict(zip(facts, row, strict=True)))
        for n, row in enumerate(rows)
    ]


def grouped(keys, *asked):
    subgroups = [Subgroup.model_validate(one) for one in by_column(list(asked))]
    return subgroups_of(subgroups, keys, "study")


def test_words_are_groups_whatever_their_case_and_a_missing_one_is_its_own():
    (sex,) = grouped(keys_of(sex=["M", "f", "F", "", "nan", "m"]), "Sex")
    assert (sex.column, sex.names) == ("sex", ("F", "M", "not stated"))
    assert list(sex.of_case.values()) == ["M", "F", "F", "not stated", "not stated", "M"]


def test_ages_are_cut_at_40_60_and_80_also_in_the_form_of_dicom():
    (age,) = grouped(keys_of(age=["39", "40", "059Y", "60", "79.5", "80", "006M", "?"[:0]]), "age")
    assert age.names == ("under 40", "40–59", "60–79", "80 and over", "not stated")
    assert list(age.of_case.values()) == [
        "under 40", "40–59", "40–59", "60–79", "60–79", "80 and over", "under 40", "not stated",
    ]  # fmt: skip


def test_the_edges_may_be_given():
    (age,) = grouped(keys_of(age=["10", "64", "65", "90"]), {"age": [18, 65]})
    assert list(age.of_case.values()) == ["under 18", "18–64", "65 and over", "65 and over"]
    (dose,) = grouped(keys_of(dose=["0.1", "0.5", "1.5"]), {"dose": [0.5, 1.0]})
    assert list(dose.of_case.values()) == ["under 0.5", "0.5 to below 1", "1 and over"]


def test_few_numbers_are_groups_in_their_order():
    (site,) = grouped(keys_of(site=["10", "2", "2", "1"]), "site")
    assert site.names == ("1", "2", "10")


def test_another_finding_divides_too():
    keys = [CaseKey(name, name, {"Edema": label}) for name, label in zip("abcd", (1, 0, -1, math.nan), strict=True)]
    (edema,) = grouped(keys, "Edema")
    assert list(edema.of_case.values()) == ["present", "absent", "uncertain", "not stated"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["view"], "study: there is no column 'view' to divide cases by; the columns are sex, weight, id, Edema"),
        (["sex", "Sex"], "names 'sex' twice"),
        (["weight"], "has 30 different numbers; say where to cut them, e.g. `{weight: [65]}`"),
        (["id"], "has 30 different values"),
        ([{"sex": [40]}], "'F', which no number can cut"),
    ],
)
def test_what_cannot_divide_is_refused_in_one_line(asked, said):
    keys = keys_of(sex=["F"] * 30, weight=[str(50 + n) for n in range(30)], id=[f"x{n}" for n in range(30)])
    with pytest.raises(SpecError) as refused:
        grouped(keys, *asked)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_edges_must_rise():
    with pytest.raises(ValidationError, match="must rise"):
        Subgroup(column="age", edges=(60, 40))
