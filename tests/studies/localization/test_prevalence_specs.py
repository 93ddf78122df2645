"""The shipped study of prevalence: each finding is rare in one training and common in the other, all else alike."""

from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import read_spec

TRAININGS = ("phantom-prevalence-1", "phantom-prevalence-2")


def test_trainings_differ_in_nothing_but_which_findings_are_rare():
    first, second = (read_spec(name).body for name in TRAININGS)
    one, other = (body["training"]["prevalence"] for body in (first, second))
    assert set(one) == set(other)
    assert {(one[finding], other[finding]) for finding in one} == {(0.02, 0.3), (0.3, 0.02)}

    def without(body):
        parts = ("training", "validation", "test")
        return {
            key: {name: value for name, value in part.items() if name != "prevalence"} if key in parts else part
            for key, part in body.items()
            if key != "title"
        }

    assert without(first) == without(second)


def test_study_scores_both_on_films_of_other_patients():
    study = read_spec("localization-prevalence").body
    folders = [f"training/{name.removeprefix('phantom-')}" for name in TRAININGS]
    assert [model["ensemble"] for model in study["models"]] == folders
    assert set(study["findings"]) == set(read_spec(TRAININGS[0]).body["training"]["prevalence"])
    scored = {key.patient for key in open_source(study["source"], None, "study").index()}
    for name in TRAININGS:
        body = read_spec(name).body
        for part in ("training", "validation"):
            source = body[part]
            trained = range(source.get("first", 0), source.get("first", 0) + source["patients"])
            assert not scored & {f"phantom{number:06d}" for number in trained}
