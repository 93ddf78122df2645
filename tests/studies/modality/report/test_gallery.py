"""Cards of cases with all modalities: strips of slices, one scale, outlines along the strip, and a slider."""

import base64
import io
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image
from tests.report.page_reading import outline as elements_of
from tests.report.page_reading import section_text

from heatcheck.report.blocks.pictures import PictureError, SliceStrip
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.modality.report import gallery as module
from heatcheck.studies.modality.report.facts import prepared
from heatcheck.studies.modality.report.gallery import PictureDetail, kept_slices, modality_gallery, outline

FEW = {"methods": ("guided_backprop", "gradient", "grad_cam"), "folds": 1, "cases": 30, "ratings": False}


def gallery(folder, room=10**8):
    return modality_gallery(prepared(evidence_of(read_run(folder))), room)


def changed(folder, change):
    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    change(index["items"])
    path.write_text(json.dumps(index))
    return folder


def pixels(uri, mode="RGBA"):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))).convert(mode))


def test_card_tells_class_answer_fold_orientation_and_scores(modality_run):
    card, other = gallery(modality_run(**FEW, gallery=2)).cards
    assert (card.case, card.finding, card.said, card.probability) == ("BraTS20_Training_001", "HGG", "HGG", "93\u00a0%")
    assert (card.group, other.group) == ("correct", "misclassified")
    assert card.fold == ""  # one network has no folds
    assert gallery(modality_run(**FEW | {"folds": 2}, gallery=1)).cards[0].fold == "1"
    assert (card.orientation, card.sides) == ("axial, patient\u2019s right on the left", ("R", "L"))
    assert [view.modality for view in card.views] == ["T1", "T1C", "T2", "FLAIR"]
    assert re.fullmatch(r"0\.2\d", card.views[1].importance)
    best, last = card.trials[0], card.trials[-1]
    assert (best.label, best.msfi, best.correlation, best.share) == ("Guided backprop", "0.55", "0.62", "31\u00a0%")
    assert (last.label, last.is_shared, last.correlation) == ("Grad-CAM", True, "–")


def test_every_method_is_drawn_over_every_modality_with_its_outline(modality_run):
    text = section_text(build_report(modality_run(**FEW, gallery=1)).read_text(), "pictures")
    films = [facts for tag, facts in elements_of(text).elements if tag == "svg" and facts.get("class") == "film"]
    assert len(films) == 4 + 3 * 4
    assert text.count('<use class="truth"') == 16
    assert "Guided backprop over T1C of case BraTS20_Training_001" in text
    assert len(re.findall(r'"data:image/jpeg', text)) == 4
    assert len(re.findall(r'"data:image/png', text)) == 2 * 4 + 1  # one map for all is there once
    assert text.count('<use class="heat"') == 4
    defined = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'<use (?:class="\w+" )?href="#([^"]+)"', text)) <= defined


def test_picture_of_one_slice_needs_neither_slider_nor_script(modality_run):
    text = section_text(build_report(modality_run(**FEW, gallery=1)).read_text(), "pictures")
    assert "slicer" not in text
    assert "Slice" not in text


def test_volume_has_a_slider_with_the_numbers_of_its_slices_and_shows_the_lesion_first(modality_run):
    text = section_text(build_report(modality_run(**FEW, gallery=1, slices=7, side=24)).read_text(), "pictures")
    assert 'data-slices="21 25 29 33 37 41 45"' in text
    assert "--slice: 3; --across: 24; --columns: 4" in text
    assert "<output>33</output>" in text
    assert "Move the slider" in text
    assert 'width="168"' in text  # of the whole strip


def test_maps_of_all_modalities_share_one_scale(modality_run):
    folder = modality_run(**FEW, gallery=1)
    for name, level in (("T1", 0), ("T1C", 255), ("T2", 120), ("FLAIR", 60)):
        Image.fromarray(np.full((72, 72), level, np.uint8)).save(folder / f"gallery/000-map-gradient-{name}.png")
    trial = gallery(folder).cards[0].trials[1]
    colours = {name: tuple(pixels(uri)[10, 10]) for name, uri in trial.maps.items()}
    assert colours["T1"][3] == 0
    assert colours["T1C"] == (252, 255, 164, 255)
    assert 0 < colours["FLAIR"][3] < colours["T2"][3] < 255
    assert len(set(colours.values())) == 4


def test_hottest_colour_begins_at_the_hottest_half_per_cent_of_all_modalities_and_slices(modality_run):
    """One hot pixel in one modality does not hide the heat of the others."""
    folder = modality_run(**FEW, gallery=1)
    for name, level in (("T1", 100), ("T1C", 100), ("T2", 50), ("FLAIR", 0)):
        grey = np.full((72, 72), level, np.uint8)
        if name == "T1":
            grey[3, 3] = 255
        Image.fromarray(grey).save(folder / f"gallery/000-map-gradient-{name}.png")
    maps = gallery(folder).cards[0].trials[1].maps
    brightest = (252, 255, 164, 255)
    assert tuple(pixels(maps["T1C"])[10, 10]) == tuple(pixels(maps["T1"])[3, 3]) == brightest
    assert tuple(pixels(maps["T2"])[10, 10]) != brightest
    assert pixels(maps["T2"])[10, 10, 3] > 0
    assert pixels(maps["FLAIR"])[10, 10, 3] == 0


def test_many_methods_are_shown_over_one_modality_at_a_time(modality_run):
    folder = modality_run(gallery=2, folds=1)
    card = gallery(folder).cards[0]
    assert card.one_view
    assert card.views[card.first_view].modality == "T1C"  # the most important one
    text = section_text(build_report(folder).read_text(), "pictures")
    elements = elements_of(text).elements
    figures = [facts for tag, facts in elements if tag == "figure" and "data-map" in facts]
    assert len(figures) == 2 * 16 * 4
    assert [facts["data-map"] for facts in figures if "hidden" not in facts] == ["1"] * 32
    choices = [facts for tag, facts in elements if tag == "input" and facts.get("type") == "radio"]
    assert [facts["data-method"] for facts in choices] == ["T1", "T1C", "T2", "FLAIR"] * 2
    assert [facts["value"] for facts in choices if "checked" in facts] == ["1", "1"]
    assert len({facts["name"] for facts in choices}) == 2  # each card's choice is its own
    assert "<option selected>T1C</option>" in text


def test_few_methods_are_shown_over_all_modalities_at_once(modality_run):
    folder = modality_run(**FEW, gallery=1)
    assert not gallery(folder).cards[0].one_view
    text = section_text(build_report(folder).read_text(), "pictures")
    assert "data-map" not in text
    assert "Maps over" not in text


def test_sides_are_lettered_where_they_are_known_and_said_to_be_unknown_where_not(modality_run):
    folder = modality_run(**FEW, gallery=1)
    text = section_text(build_report(folder).read_text(), "pictures")
    assert text.count('class="sides"') == 16
    assert re.search(r'id="sides-1"[^>]*><text x="1.4"[^>]*>R</text><text x="70.6"[^>]*>L</text>', text)
    assert 'data-layer="sides"' in text
    changed(folder, lambda items: items[0].update(plane="", sides=""))
    text = section_text(build_report(folder).read_text(), "pictures")
    assert 'class="sides"' not in text
    assert "left and right as in the file" in text
    drawn = modality_run(**FEW | {"source": "phantom_brain"}, gallery=1)
    changed(drawn, lambda items: items[0].update(plane="", sides=""))
    text = section_text(build_report(drawn).read_text(), "pictures")
    assert "drawn: no side is the patient’s left or right" in text
    assert "(R) on the left" not in text
    assert "one of low grade may look like a ring-enhancing metastasis" in text


def test_heat_and_outline_can_be_switched_and_every_layer_has_its_style(modality_run):
    text = build_report(modality_run(**FEW, gallery=1)).read_text()
    layers = [facts["data-layer"] for _, facts in elements_of(text).elements if "data-layer" in facts]
    assert layers == ["heat", "truth", "sides"]
    assert all(f".no-{layer} .film .{layer} {{ display: none; }}" in text for layer in layers)


def test_outlines_of_all_slices_lie_along_the_strip():
    square = [[1, 1], [3, 1], [3, 3], [1, 3]]
    slices = [[], [square], [[[0, 0], [1, 0], [1, 1]]]]
    assert outline(slices, (0, 1, 2), 10) == "M11.5 1.5L13.5 1.5L13.5 3.5L11.5 3.5ZM20.5 0.5L21.5 0.5L21.5 1.5Z"
    assert outline(slices, (1,), 10) == "M1.5 1.5L3.5 1.5L3.5 3.5L1.5 3.5Z"
    assert outline([], (0, 1), 10) == ""


@pytest.mark.parametrize(("slices", "start", "most", "kept"), [
    (1, 0, 1, (0,)), (5, 2, 8, (0, 1, 2, 3, 4)), (10, 5, 4, (2, 5, 8)), (16, 15, 8, (1, 3, 5, 7, 9, 11, 13, 15)),
])  # fmt: skip
def test_kept_slices_are_evenly_spaced_and_hold_the_first_one_shown(slices, start, most, kept):
    assert kept_slices(slices, start, most) == kept
    assert start in kept


def test_start_outside_the_strip_costs_the_card(modality_run):
    folder = changed(modality_run(**FEW, gallery=2), lambda items: items[0].update(start=4))
    made = gallery(folder)
    assert len(made.cards) == 1
    assert made.left_out == ("1 case could not be shown because a picture is missing or damaged.",)


def test_strip_scales_each_slice_by_itself(tmp_path):
    values = np.concatenate([np.full((40, 40), level, np.uint8) for level in (0, 255, 0, 90)], axis=1)
    Image.fromarray(values).save(tmp_path / "strip.png")
    drawn = pixels(SliceStrip(4, (1, 2, 3), 10).image_uri(tmp_path, "strip.png"), "L")
    assert drawn.shape == (10, 30)
    assert drawn[5, 3] > 250
    assert drawn[5, 15] < 5
    heat = pixels(SliceStrip(4, (0, 1), 10, levels=16).map_uri(tmp_path, "strip.png"))
    assert heat[5, 9, 3] == 0
    assert tuple(heat[5, 10]) == (252, 255, 164, 255)


def test_strip_of_another_number_of_slices_is_refused(tmp_path):
    Image.fromarray(np.zeros((4, 10), np.uint8)).save(tmp_path / "strip.png")
    with pytest.raises(PictureError, match="not a strip of 3 slices"):
        SliceStrip(3, (0,), 4).image_uri(tmp_path, "strip.png")


def test_volumes_become_coarser_before_cases_are_left_out(modality_run, monkeypatch):
    monkeypatch.setattr(module, "STACK", (PictureDetail(64, 64, 64, 8), PictureDetail(32, 16, 16, 4)))
    folder = modality_run(**FEW, gallery=3, slices=8, side=64, noise=True)
    fine = gallery(folder)
    assert len(fine.cards[0].numbers) == 8
    coarse = gallery(folder, sum(card.weight for card in fine.cards) // 2)
    assert (len(coarse.cards), coarse.left_out) == (3, ())
    assert len(coarse.cards[0].numbers) == 4
    assert coarse.cards[0].numbers[coarse.cards[0].start] == fine.cards[0].numbers[fine.cards[0].start]


def test_weight_of_a_card_is_about_what_it_adds_to_the_page(modality_run, monkeypatch):
    folder = modality_run(**FEW, gallery=2, slices=6, side=48)
    weight = sum(card.weight for card in gallery(folder).cards)
    full = build_report(folder).stat().st_size
    monkeypatch.setattr(module, "MOST", 0)
    assert 0.7 * weight < full - build_report(folder).stat().st_size < 1.3 * weight


def test_picture_outside_the_gallery_is_never_read(modality_run):
    folder = modality_run(**FEW, gallery=1)
    shutil.copy(folder / "gallery" / "000-image-T1.png", folder / "secret.png")
    assert gallery(changed(folder, lambda items: items[0]["images"].update(T1="../secret.png"))).cards == ()


def test_item_without_maps_answers_or_outlines_still_gets_a_card(modality_run):
    folder = modality_run(**FEW, gallery=1)
    changed(
        folder, lambda items: [items[0].pop(k) for k in ("maps", "probability", "said", "outlines", "plane", "fold")]
    )
    card = gallery(folder).cards[0]
    assert (card.trials, card.probability, card.views[0].outline) == ((), "", "")
    assert '<h3 id="case-000">HGG</h3>' in build_report(folder).read_text()


def test_run_without_pictures_says_so(modality_text):
    assert "This run kept no pictures" in section_text(modality_text("without pictures"), "pictures")


def shown_after(page, script, profile):
    """The page as a browser has it after this script, which stands in for the reader's hand."""
    text = re.sub(r"<meta http-equiv[^>]+>", "", page.read_text()).replace(
        "</body>", f"<script>{script}</script></body>"
    )
    page.write_text(text)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={profile}", "--virtual-time-budget=2000", "--dump-dom"]  # fmt: skip
    command = ["chromium", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_slider_moves_all_pictures_of_its_case_in_a_browser(modality_run, tmp_path):
    page = build_report(modality_run(**FEW, gallery=2, slices=7, side=24))
    moved = """
      const slider = document.querySelector("[data-slices]");
      slider.value = 5; slider.dispatchEvent(new Event("input"));
      const trial = document.querySelector('[data-control="trial"]');
      trial.value = "Gradient"; trial.dispatchEvent(new Event("change"));
      const seen = [...document.querySelectorAll(".card:not([hidden]) [data-trial]:not([hidden])")];
      document.title = [getComputedStyle(document.querySelector(".strip")).transform,
        slider.parentElement.querySelector("output").textContent, seen.length, seen[0].dataset.trial].join(" | ");
    """
    shown = shown_after(page, moved, tmp_path / "profile")
    assert "<title>matrix(1, 0, 0, 1, -120, 0) | 41 | 1 | Gradient</title>" in shown
    assert "1 of 2 cases shown." in shown


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_modality_is_chosen_for_one_case_or_for_all_and_layers_are_switched_in_a_browser(modality_run, tmp_path):
    page = build_report(modality_run(gallery=2, folds=1))
    chosen = """
      const over = (card) => [...new Set([...card.querySelectorAll("figure[data-map]:not([hidden])")]
        .map((figure) => figure.dataset.map))].join("");
      const [one, other] = document.querySelectorAll(".card");
      const said = [over(one)];
      const choice = one.querySelector('[data-method="FLAIR"]');
      choice.checked = true; choice.dispatchEvent(new Event("change"));
      said.push(over(one), over(other));
      const every = document.querySelector('[data-control="method"]');
      every.value = "T2"; every.dispatchEvent(new Event("change"));
      said.push(over(one), over(other), one.querySelectorAll("figure[data-map]:not([hidden])").length);
      for (const layer of ["heat", "truth", "sides"]) {
        const box = document.querySelector(`[data-layer="${layer}"]`);
        box.checked = false; box.dispatchEvent(new Event("change"));
        said.push(getComputedStyle(one.querySelector(`.film .${layer}`)).display);
      }
      document.title = said.join(" ");
    """
    shown = shown_after(page, chosen, tmp_path / "profile")
    assert "<title>1 3 1 2 2 16 none none none</title>" in shown
