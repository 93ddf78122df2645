import hashlib
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from heatcheck.core.records import UNCERTAIN
from heatcheck.sources.phantoms import phantom_chest
from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT
from heatcheck.sources.phantoms.chest.findings import FINDINGS, OPACITIES
from heatcheck.sources.phantoms.phantom_chest import Confounder, PhantomChest, PhantomChestSettings
from heatcheck.sources.phantoms.simulated_readers import READERS, read_case

IN_LUNGS = sorted(set(FINDINGS) - {"Cardiomegaly", "Enlarged Cardiomediastinum", "Support Devices"})


def phantom(**changes):
    return PhantomChest(PhantomChestSettings(**{"patients": 12, "size": 48, **changes}))


def digest(case):
    """A hash of everything in a case."""
    hashed = hashlib.sha256(case.image.tobytes())
    parts = [("truth", case.truth), *((reading.reader, reading.masks) for reading in case.readings)]
    for name, masks in parts:
        hashed.update(name.encode())
        for finding, mask in sorted(masks.items()):
            hashed.update(finding.encode() + mask.tobytes())
    for reading in case.readings:
        hashed.update(repr(sorted(reading.points.items())).encode())
    return hashed.hexdigest()


def binomial(share, count):
    """Four standard deviations of an observed share."""
    return 4 * np.sqrt(share * (1 - share) / count)


def test_same_seed_gives_the_same_case_whatever_was_loaded_before():
    source = phantom()
    keys = source.index()
    forwards = {key.case: digest(source.load(key)) for key in keys}
    backwards = {key.case: digest(phantom().load(key)) for key in reversed(keys)}
    assert forwards == backwards
    assert len(set(forwards.values())) == len(keys)


def test_same_seed_gives_the_same_case_in_another_process():
    key = phantom().index()[5]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_phantom_chest import digest, phantom; "
        "print(digest(phantom().load(phantom().index()[5])))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )
    assert answer.stdout.strip() == digest(phantom().load(key))


def test_another_seed_gives_other_labels_films_readers_and_views():
    one, other = (phantom(patients=40, shape="square", seed=seed, second_view=0.5) for seed in (20, 21))
    labels, again = (
        [key.labels for key in phantom(patients=40, second_view=0, seed=seed).index()] for seed in (20, 21)
    )
    assert labels != again
    assert [key.case for key in one.index()] != [key.case for key in other.index()]
    key = one.index()[0]
    first, second = one.load(key), other.load(key)
    assert np.mean(first.image == second.image) < 0.2
    reading, again = (read_case(first.truth, READERS[0], seed, key.case) for seed in (20, 21))
    assert first.truth
    assert reading.points == first.readings[0].points != again.points


def test_patient_does_not_depend_on_the_range_of_patients():
    full, part = phantom(patients=10), phantom(patients=3, first=4)
    wanted = {key.case: key for key in full.index()}
    for key in part.index():
        assert key == wanted[key.case]
        assert digest(part.load(key)) == digest(full.load(key))


@settings(deadline=None, max_examples=12)
@given(size=st.sampled_from([32, 33, 48, 97]), shape=st.sampled_from(["film", "square"]), first=st.integers(0, 10**7))
def test_film_of_any_size_and_format_is_finite_and_in_range_with_masks_on_its_grid(size, shape, first):
    source = phantom(patients=2, first=first, size=size, shape=shape)
    for key in source.index():
        case = source.load(key)
        assert case.key == key
        assert case.image.dtype == np.float32
        assert case.image.shape[:2] == (1, size)
        assert np.isfinite(case.image).all()
        assert 0 <= case.image.min() < case.image.max() <= 1
        assert case.image.std() > 0.1
        for masks in (case.truth, *(reading.masks for reading in case.readings)):
            assert all(mask.shape == case.image.shape[1:] and mask.dtype == bool for mask in masks.values())
        assert source.marker_mask(key).shape == case.image.shape[1:]


def test_film_at_the_size_of_the_demonstration_is_finite_and_in_range():
    source = phantom(patients=1, size=320)
    case = source.load(source.index()[0])
    assert case.image.shape[1] == 320
    assert np.isfinite(case.image).all()
    assert 0 <= case.image.min() < case.image.max() <= 1


def test_films_have_many_formats_and_square_ones_have_one():
    films = {phantom().marker_mask(key).shape for key in phantom().index()}
    assert len(films) > 4
    assert all(0.8 < columns / rows < 1.2 for rows, columns in films)
    assert {phantom(shape="square").marker_mask(key).shape for key in phantom().index()} == {(48, 48)}


@pytest.mark.parametrize("size", [32, 97])
def test_labelled_findings_have_a_mask_and_no_others_do(size):
    source = phantom(patients=150, size=size)
    for key in source.index():
        truth = source.truth(key)
        assert set(truth) == {finding for finding, label in key.labels.items() if label == 1}
        assert all(mask.any() for mask in truth.values())
        assert set(key.labels.values()) <= {0.0, 1.0}


def test_truth_alone_equals_the_truth_of_the_whole_case():
    source = phantom()
    for key in source.index():
        alone, loaded = source.truth(key), source.load(key).truth
        assert list(alone) == list(loaded)
        for finding, mask in alone.items():
            np.testing.assert_array_equal(mask, loaded[finding])


def test_masks_at_two_sizes_agree():
    small, large = phantom(size=96, shape="square", patients=40), phantom(size=288, shape="square", patients=40)
    overlaps = {finding: [] for finding in FINDINGS}
    for key in small.index():
        fine = large.truth(key)
        for finding, mask in small.truth(key).items():
            shrunk = cv2.resize(fine[finding].astype(np.float32), (96, 96), interpolation=cv2.INTER_AREA) > 0.5
            overlaps[finding].append((shrunk & mask).sum() / (shrunk | mask).sum())
    broad = {"Airspace Opacity", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum"}
    for finding, values in overlaps.items():
        assert np.mean(values) > (0.9 if finding in broad else 0.65), finding


def test_findings_of_the_lung_lie_in_the_lung_fields_of_their_view():
    source = phantom(patients=30)
    for key in source.index():
        scene, truth = source._draw(key)
        fields = scene.lungs[RIGHT] | scene.lungs[LEFT]
        assert not any((truth[finding] & ~fields).any() for finding in IN_LUNGS if finding in truth)


@pytest.mark.parametrize("finding", OPACITIES)
def test_airspace_opacity_includes_its_other_kinds(finding):
    source = phantom(patients=80, size=32, second_view=0)
    positives = [key for key in source.index() if key.labels[finding] == 1]
    assert len(positives) > 5
    for key in positives:
        truth = source.truth(key)
        assert key.labels["Airspace Opacity"] == 1
        assert not (truth[finding] & ~truth["Airspace Opacity"]).any()


def test_airspace_opacity_also_occurs_by_itself():
    alone = [key for key in phantom(patients=200).index() if key.labels["Airspace Opacity"] == 1]
    assert any(all(key.labels[finding] == 0 for finding in OPACITIES) for key in alone)


def test_two_views_of_a_patient_share_labels_and_findings_but_not_pixels():
    source = phantom(patients=20, second_view=1)
    keys = source.index()
    assert len(keys) == 40
    for first, second in zip(keys[::2], keys[1::2], strict=True):
        assert first.patient == second.patient
        assert first.labels == second.labels
        one, two = source.load(first), source.load(second)
        assert one.image.shape == two.image.shape
        assert not np.array_equal(one.image, two.image)
        for finding in one.truth:
            assert not np.array_equal(one.truth[finding], two.truth[finding]), "the patient has moved"
            sizes = one.truth[finding].sum(), two.truth[finding].sum()
            assert min(sizes) > 0.4 * max(sizes)


@pytest.mark.parametrize("share", [0, 0.35, 1])
def test_about_the_set_share_of_patients_has_two_views(share):
    keys = phantom(patients=800, second_view=share).index()
    assert len({key.patient for key in keys}) == 800
    assert len(keys) / 800 - 1 == pytest.approx(share, abs=binomial(share, 800) + 1e-9)


def test_prevalences_are_those_of_the_findings():
    keys = phantom(patients=3000, second_view=0).index()
    healthy = 0.08  # this share of patients has no findings at all
    drawn = {finding: facts.prevalence for finding, facts in FINDINGS.items()}
    spared = np.prod([1 - drawn[finding] for finding in ("Airspace Opacity", *OPACITIES)])
    for finding, chance in {**drawn, "Airspace Opacity": 1 - spared}.items():
        share = chance * (1 - healthy)
        observed = np.mean([key.labels[finding] for key in keys])
        assert observed == pytest.approx(share, abs=binomial(share, 3000)), finding
    nothing = healthy + (1 - healthy) * np.prod([1 - share for share in drawn.values()])
    observed = np.mean([not any(key.labels.values()) for key in keys])
    assert observed == pytest.approx(nothing, abs=binomial(nothing, 3000))


def test_prevalence_of_a_finding_can_be_set_and_leaves_the_other_findings_as_they_are():
    usual, rare = phantom(patients=2000).index(), phantom(patients=2000, prevalence={"Edema": 0.02}).index()
    observed = np.mean([key.labels["Edema"] for key in rare])
    assert observed == pytest.approx(0.02 * 0.92, abs=binomial(0.02 * 0.92, 2000))
    others = [name for name in FINDINGS if name not in ("Edema", "Airspace Opacity")]  # an edema is an opacity too
    assert [[a.labels[name] for name in others] for a in usual] == [[b.labels[name] for name in others] for b in rare]


def test_patient_who_has_a_finding_at_two_prevalences_has_the_same_film():
    usual, common = phantom(), phantom(prevalence={"Edema": 1.0})
    keys = [(a, b) for a, b in zip(usual.index(), common.index(), strict=True) if a.labels == b.labels]
    assert any(key.labels["Edema"] for key, _ in keys)
    assert all(digest(usual.load(a)) == digest(common.load(b)) for a, b in keys)


def test_prevalence_of_an_unknown_finding_is_refused_with_a_suggestion():
    with pytest.raises(ValueError, match="prevalence names the finding 'Edma', which is unknown; did you mean 'Edema'"):
        phantom(prevalence={"Edma": 0.1})


@pytest.mark.parametrize("first", [0, 999_995, 5_000_000])
def test_index_is_sorted_by_id_and_names_each_case_once(first):
    cases = [key.case for key in phantom(patients=12, first=first, second_view=0.5).index()]
    assert cases == sorted(set(cases))


def test_index_draws_nothing_and_truth_exposes_no_film(monkeypatch):
    source = phantom()

    def never(*_):
        raise AssertionError("the film was drawn")

    monkeypatch.setattr(phantom_chest, "expose", never)
    assert source.truth(source.index()[0]) is not None
    monkeypatch.setattr(phantom_chest, "new_scene", never)
    assert len(source.index()) >= 12


def test_index_draws_the_labels_of_a_patient_once(monkeypatch):
    patients = []
    labels = PhantomChest._labels
    monkeypatch.setattr(
        PhantomChest, "_labels", lambda self, patient: patients.append(patient) or labels(self, patient)
    )
    phantom().index()
    assert len(patients) == 12


@pytest.mark.parametrize("readers", [0, 1, 2])
def test_the_set_number_of_readers_reads(readers):
    case = phantom(readers=readers).load(phantom().index()[0])
    assert [reading.reader for reading in case.readings] == ["reader 1", "reader 2"][:readers]


def test_number_of_readers_does_not_change_the_film():
    key = phantom().index()[3]
    np.testing.assert_array_equal(phantom(readers=0).load(key).image, phantom().load(key).image)


def test_marker_mask_covers_bright_pixels_of_the_film():
    source = phantom(patients=20, size=96)
    marked = [key for key in source.index() if source.marker_mask(key).any()]
    assert len(marked) > 5
    for key in marked:
        film, mask = source.load(key).image[0], source.marker_mask(key)
        around = cv2.dilate(mask.astype(np.uint8), np.ones((7, 7), np.uint8)).astype(bool) & ~mask
        assert film[mask].mean() > 0.75
        assert film[mask].mean() > film[around].mean() + 0.15


def test_film_without_a_marker_is_not_changed(monkeypatch):
    source = phantom(patients=20)
    plain = next(key for key in source.index() if not source.marker_mask(key).any())
    marked = next(key for key in source.index() if source.marker_mask(key).any())
    before = {key.case: source.load(key).image for key in (plain, marked)}
    monkeypatch.setattr(phantom_chest, "add_marker", lambda *_: None)
    np.testing.assert_array_equal(source.load(plain).image, before[plain.case])
    assert not np.array_equal(source.load(marked).image, before[marked.case])


def test_markers_are_random_on_either_side_and_on_some_films_only():
    source = phantom(patients=300, size=32, second_view=0)
    letters = [source._marker(key) for key in source.index()]
    assert np.mean([bool(letter) for letter in letters]) == pytest.approx(0.6, abs=binomial(0.6, 300))
    assert {"R", "L", ""} == set(letters)


def test_perfect_confounder_marks_the_positives_and_nobody_else():
    source = phantom(patients=60, confounder=Confounder(finding="Edema", strength=1))
    keys = source.index()
    assert 0 < sum(key.labels["Edema"] for key in keys) < len(keys)
    for key in keys:
        assert source.marker_mask(key).any() == (key.labels["Edema"] == 1)


@pytest.mark.parametrize("strength", [0.5, 0.8])
def test_weaker_confounder_agrees_with_the_label_as_often_as_set(strength):
    source = phantom(patients=500, size=32, second_view=0, confounder=Confounder(finding="Edema", strength=strength))
    agree = [source.marker_mask(key).any() == (key.labels["Edema"] == 1) for key in source.index()]
    assert np.mean(agree) == pytest.approx(strength, abs=binomial(strength, 500))


def test_confounder_changes_nothing_but_the_marker():
    plain, planted = phantom(), phantom(confounder=Confounder(finding="Edema", strength=1))
    for key in plain.index()[:6]:
        elsewhere = np.ones(plain.marker_mask(key).shape, bool)
        elsewhere[: 48 // 3] = False
        np.testing.assert_array_equal(plain.load(key).image[0][elsewhere], planted.load(key).image[0][elsewhere])


def test_confounder_with_an_unknown_finding_is_refused_with_a_suggestion():
    with pytest.raises(ValueError, match="confounder finding 'Edma' is unknown; did you mean 'Edema'"):
        phantom(confounder=Confounder(finding="Edma"))


@pytest.mark.parametrize(
    "wrong",
    [{"size": 31}, {"patients": 0}, {"first": -1}, {"second_view": 1.1}, {"readers": 3}, {"shape": "round"},
     {"prevalence": {"Edema": 1.1}},
     {"confounder": {"finding": "Edema", "strength": 0.4}}, {"confounder": {"finding": "Edema", "power": 1}}],
)  # fmt: skip
def test_setting_out_of_range_is_refused(wrong):
    with pytest.raises(ValidationError):
        PhantomChestSettings.model_validate(wrong)


def test_source_has_the_ten_findings():
    assert phantom().findings == tuple(FINDINGS)
    assert all(tuple(key.labels) == phantom().findings for key in phantom().index())


def test_uncertain_labels_hide_a_share_of_the_truth_and_do_not_change_the_films():
    planted = Confounder(finding="Edema", strength=1)
    sure, unsure = phantom(patients=150, confounder=planted), phantom(patients=150, confounder=planted, uncertain=0.3)
    labels = [(a.labels[f], b.labels[f]) for a, b in zip(sure.index(), unsure.index(), strict=True) for f in FINDINGS]
    hidden = [before for before, after in labels if after == UNCERTAIN]
    assert all(before == after for before, after in labels if after != UNCERTAIN)
    assert len(hidden) / len(labels) == pytest.approx(0.3, abs=binomial(0.3, len(labels)) * 1.5)  # views go together
    assert {0.0, 1.0} == set(hidden)
    shown = next(key for key in unsure.index() if key.labels["Edema"] == UNCERTAIN)
    same = next(key for key in sure.index() if key.case == shown.case)
    assert digest(unsure.load(shown)) == digest(sure.load(same))
    for key in unsure.index():
        assert unsure.marker_mask(key).any() == ("Edema" in unsure._labels(key.patient))


def test_every_film_states_sex_age_and_its_marker():
    source = PhantomChest(PhantomChestSettings(patients=30, size=64, second_view=1.0, readers=0))
    keys = source.index()
    assert {key.facts["sex"] for key in keys} == {"F", "M"}
    assert {key.facts["marker"] for key in keys} == {"L", "R", "none"}
    assert all(20 <= int(key.facts["age"]) <= 92 for key in keys)
    for first, second in zip(keys[::2], keys[1::2], strict=True):
        assert (first.facts["sex"], first.facts["age"]) == (second.facts["sex"], second.facts["age"])
    assert all(source.marker_mask(key).any() == (key.facts["marker"] != "none") for key in keys[:6])
