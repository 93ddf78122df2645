"""Which cases a limited run takes."""

from heatcheck.core.records import CaseKey
from heatcheck.running.cases import limited


def case_of(patient, *findings, number=0):
    """A case of a patient with these findings."""
    labels = {name: float(name in findings) for name in ("common", "rare", "never")}
    return CaseKey(f"{patient}-{number}", patient, labels)


def test_a_limit_takes_patients_with_all_their_cases_and_spreads_them_over_the_findings():
    keys = [case_of(f"c{number}", "common", number=view) for number in range(8) for view in range(2)]
    keys += [case_of("r0", "rare"), case_of("r1", "rare"), case_of("n0"), case_of("n1"), case_of("n2")]
    findings = ("common", "rare", "never")
    taken = limited(keys, findings, 4)
    assert list(dict.fromkeys(key.patient for key in taken)) == ["c0", "r0", "r1", "n0"]  # of equals, the rarest twice
    assert [key.case for key in taken[:2]] == ["c0-0", "c0-1"]
    assert [key for key in keys if key in taken] == taken
    assert limited(keys, findings, 1) == [case_of("r0", "rare")]
    assert limited(keys, findings, 99) == limited(keys, findings, None) == keys


def test_a_patient_with_two_findings_counts_for_both():
    keys = [case_of("a", "rare", "common"), case_of("b", "rare"), case_of("c", "common"), case_of("d"), case_of("e")]
    assert [key.patient for key in limited(keys, ("common", "rare"), 2)] == ["a", "d"]
