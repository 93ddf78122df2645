"""The order of modalities by importance, with its ties."""

import pytest

from heatcheck.studies.modality.report.order import first_among, order_in_words


def values_of(names):
    """Values that fall in the order of the names."""
    return {name: 0.5 - 0.01 * index for index, name in enumerate(names)}


def pairs(text):
    """Pairs such as "AB AC": A is clearly above B and C."""
    return {(pair[0], pair[1]) for pair in text.split()}


@pytest.mark.parametrize(
    ("above", "words", "first"),
    [
        ("AB AC AD BC BD", "A > B > C = D", ("A",)),
        ("AB", "A > B; C is tied with A, B; D is tied with A, B, C", ("A", "C", "D")),
        ("AC AD", "A = B; C is below A and tied with B; D is below A and tied with B, C", ("A", "B")),
        ("AC AD BD", "A = B > D; C is below A and tied with B, D", ("A", "B")),
        ("AC AD BD CD", "A = B > D; C is below A and above D and tied with B", ("A", "B")),
        ("", "A = B = C = D", ("A", "B", "C", "D")),
        ("BD CD", "A = B = C; D is below B, C and tied with A", ("A", "B", "C")),
        ("BC", "A = B = D; C is below B and tied with A, D", ("A", "B", "D")),
    ],
)
def test_every_tie_is_named_not_only_that_of_neighbours(above, words, first):
    assert order_in_words(values_of("ABCD"), pairs(above)) == words
    assert first_among(values_of("ABCD"), pairs(above)) == first


def test_name_that_reads_like_an_order_stands_in_quotation_marks():
    names = ("DWI b = 1000", "T1", "T2 > T1")
    above = {(names[0], names[1]), (names[0], names[2])}
    assert order_in_words(values_of(names), above) == "“DWI b = 1000” > T1 = “T2 > T1”"


def test_order_of_values_alone_is_none():
    """The highest value is not the first: nothing says that it is clearly above the others."""
    assert order_in_words({"a": 0.0, "b": 0.5}, ()) == "b = a"
    assert first_among({"a": 0.0, "b": 0.5}, ()) == ("b", "a")
