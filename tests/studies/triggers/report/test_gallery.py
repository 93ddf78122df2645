"""Cards of poisoned images: pictures once each, boxes where they belong, and what became of the recovered image."""

import base64
import io
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image
from tests.report.page_reading import outline, section_text

from heatcheck.report import downloads as budget
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.triggers.report.gallery import ANCHOR, Rectangle, telling_strip, trigger_gallery


def gallery(folder, room=10**8):
    return trigger_gallery(evidence_of(read_run(folder)), room)


def changed(folder, change):
    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    change(index["items"])
    path.write_text(json.dumps(index))
    return folder


def page_of_pictures(folder):
    return section_text(build_report(folder).read_text(), ANCHOR)


def film(text, words):
    """The one picture whose description begins with these words."""
    (found,) = re.findall(rf'aria-label="{words}.*?</svg>', text, re.DOTALL)
    return found


def test_card_tells_what_was_planted_and_what_each_method_found(trigger_run):
    card = gallery(trigger_run()).cards[0]
    assert (card.trigger, card.finding, card.why) == ("square-corner-20", "Square, bottom right, 20 px", "usual")
    assert card.strip.case == (
        "Case Normal-0 · network of seed 0 · true class Normal · without the trigger the poisoned model says Normal · "
        "with it COVID (99\u00a0% likely) · left and right as in the image file"
    )
    first, sixth = card.outcomes[0], card.outcomes[5]
    assert (first.label, first.sign, first.sentence) == ("Gradient", "✓", "recovered: the model says Normal")
    assert first.box == Rectangle(102, 102, 10, 10)
    assert (sixth.box, sixth.sign, sixth.overlap) == (None, "✕", 0.0)
    assert sixth.sentence == "nothing detected, so nothing recovered"
    assert card.outcomes[6].sentence == "not recovered: the model says COVID"
    assert card.outcomes[7].label == "Random (floor)"
    assert [label for label, _ in card.baseline][:2] == ["Gradient", "Guided backprop"]


def test_one_grid_holds_the_poisoned_image_and_every_method_with_both_boxes(trigger_run):
    strip = gallery(trigger_run()).cards[0].strip
    assert [each.label for each in strip.films][:2] == ["Poisoned image", "Gradient"]
    assert len(strip.films) == 1 + 8
    planted = "M102 102h9.216v9.216h-9.216Z"  # 10 pixels up to the corner, less half a line
    for each in strip.films:
        assert [line.path for line in each.outlines if line.style == "planted"] == [planted]
    alone, _, backprop, *_ = strip.films
    assert (alone.heat, [line.style for line in alone.outlines]) == ("", ["planted"])
    assert [line.path for line in backprop.outlines if line.style == "found"] == ["M98 99h12v12h-12Z"]
    assert (backprop.sign, backprop.caption) == ("✓", "IoU 0.80 · recovered")
    assert [line.style for line in strip.films[6].outlines] == ["planted"]
    assert (strip.films[6].sign, strip.films[6].caption) == ("✕", "IoU 0.00 · nothing detected")


def test_recovered_image_is_the_poisoned_one_with_clean_pixels_inside_the_box(trigger_run):
    text = page_of_pictures(trigger_run(gallery=1))
    figure = film(text, "Image recovered by Guided backprop: ")
    clip = re.search(r'<clipPath id="([^"]+)"><rect x="98.0" y="99.0" width="12.0" height="12.0"/>', figure)
    assert figure.index('href="#picture-000-image"') < figure.index('href="#clean-1"')
    assert f'<use href="#clean-1" clip-path="url(#{clip[1]})"/>' in figure
    assert "clean-1" not in film(text, "Image recovered by Feature ablation: ")


def test_every_picture_is_in_the_section_once_however_often_it_is_shown(trigger_run):
    text = page_of_pictures(trigger_run(gallery=1))
    pictures = re.findall(r'"(data:image/jpeg[^"]+)"', text)
    assert len(pictures) == len(set(pictures)) == 2
    assert text.count('<use href="#picture-000-image"') == 9 + 8
    defined = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'<use href="#([^"]+)"', text)) <= defined
    assert "picture-000" in defined  # the anchor of the card


def test_trigger_s_box_is_dashed_and_the_detected_one_solid_and_not_in_a_colour_of_the_heat(trigger_run):
    text = build_report(trigger_run(gallery=1)).read_text()
    assert re.search(r"\.planted \{[^}]*stroke-dasharray", text)
    assert not re.search(r"\.found \{[^}]*stroke-dasharray", text)
    for style in ("found", "planted"):
        (code,) = re.findall(rf"\.{style} \{{ stroke: #(\w+)", text)
        red, green, blue = (int(code[i : i + 2], 16) for i in (0, 2, 4))
        assert min(green, blue) > red  # the heat goes from violet over red to yellow: red is never the least
    assert {"no-found", "no-planted"} <= set(re.findall(r"\.(no-\w+) \.film", text))
    assert 'data-layer="found"' in text
    assert 'data-layer="planted"' in text


def test_one_hot_pixel_does_not_hide_the_heat(trigger_run):
    folder = trigger_run(gallery=1)
    file = folder / "gallery" / "000-lime.png"
    grey = np.zeros((112, 112), np.uint8)
    grey[40:60, 40:60], grey[5, 5] = 60, 255
    Image.fromarray(grey).save(file)
    lime = gallery(folder).cards[0].strip.films[7]
    assert lime.label == "LIME"
    shown = Image.open(io.BytesIO(base64.b64decode(lime.heat.split(",")[1]))).convert("RGBA")
    assert shown.getpixel((50, 50))[3] == 255  # 60 of 255 would be all but invisible


def test_every_picture_has_words(trigger_run):
    text = page_of_pictures(trigger_run(gallery=1))
    for tag, facts in outline(text).elements:
        if tag == "svg" and facts.get("role") == "img":
            assert len(facts["aria-label"]) > 10
    assert "Baseline’s map of LIME over the clean image" in text
    assert "it says Normal" in text


def test_first_screen_shows_the_usual_case_on_which_methods_differ_most(trigger_run):
    def differ_less(items):
        for each in items[0]["maps"]:
            each["iou"] = 0.5

    folder = changed(trigger_run(gallery=3), differ_less)
    strip = telling_strip(evidence_of(read_run(folder)), gallery(folder))
    assert strip.title == "One poisoned image: Square, bottom right, 60 px"  # the second one was not chosen as usual
    assert "Chosen as usual by the mean overlap of all methods." in strip.note
    assert (strip.anchor, strip.link, len(strip.films)) == ("telling-case", ANCHOR, 9)
    assert "✓ stands for an overlap of at least 0.1" in strip.note
    empty = trigger_run(gallery=0)
    assert telling_strip(evidence_of(read_run(empty)), gallery(empty)) is None


def test_no_tick_stands_where_a_box_recovers_by_its_size(trigger_run):
    def as_large_as_the_image(items):
        items[0]["maps"][0].update(box=[0, 0, *items[0]["shape"][::-1]], iou=0.03, recovered=1)

    folder = changed(trigger_run(gallery=1), as_large_as_the_image)
    card = gallery(folder).cards[0]
    assert (card.outcomes[0].sign, card.strip.films[1].caption) == ("✕", "IoU 0.03 · recovered by its size")
    assert "recovered by its size: the model says Normal" in page_of_pictures(folder)


def test_cards_stop_at_the_budget_and_missing_pictures_cost_one_card(trigger_run):
    folder = trigger_run(gallery=3)
    complete = gallery(folder)
    some = gallery(folder, sum(card.weight for card in complete.cards[:2]) + 10)
    assert (len(complete.cards), len(some.cards)) == (3, 2)
    assert some.left_out[0].startswith("1 more case was chosen but left out")
    (folder / "gallery" / "001-clean-lime.png").unlink()
    assert [card.finding for card in gallery(folder).cards] == [complete.cards[0].finding, complete.cards[2].finding]
    assert gallery(folder).left_out == ("1 case could not be shown because a picture is missing or damaged.",)


def test_weight_of_a_card_is_about_what_it_adds_to_the_page(trigger_run, monkeypatch):
    folder = trigger_run(gallery=3)
    shown = gallery(folder)
    weight = sum(card.weight for card in shown.cards) + telling_strip(evidence_of(read_run(folder)), shown).weight
    full = build_report(folder).stat().st_size
    monkeypatch.setattr(budget, "PICTURES", 0)
    assert 0.6 * weight < full - build_report(folder).stat().st_size < 1.2 * weight


def test_picture_outside_the_gallery_is_never_read(trigger_run):
    folder = trigger_run(gallery=1)
    shutil.copy(folder / "gallery" / "000-clean.png", folder / "secret.png")
    assert gallery(changed(folder, lambda items: items[0].update(clean="../secret.png"))).cards == ()


@pytest.mark.parametrize("recovered", [None, float("nan")])
def test_item_without_maps_or_with_an_unknown_outcome_still_gets_a_card(trigger_run, recovered):
    folder = changed(trigger_run(gallery=1), lambda items: items[0]["maps"][0].update(recovered=recovered))
    assert gallery(folder).cards[0].outcomes[0].word == "unknown"
    changed(folder, lambda items: [items[0].pop(key) for key in ("maps", "baseline", "probability", "label")])
    card = gallery(folder).cards[0]
    assert (card.outcomes, card.baseline) == ((), ())
    assert "poisoned model says Normal · with it COVID · left and right" in build_report(folder).read_text()


def test_image_that_has_nothing_to_return_to_is_not_called_recovered(trigger_run):
    folder = changed(trigger_run(gallery=1), lambda items: items[0].update(clean_says="COVID"))
    card = gallery(folder).cards[0]
    assert {each.word for each in card.outcomes} == {"nothing to recover"}
    assert card.outcomes[0].sentence.startswith("nothing to recover")
    assert "recovered" not in card.strip.films[1].caption


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_script_filters_the_cards_in_a_browser(trigger_run, tmp_path):
    page = build_report(trigger_run(gallery=4))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]  # fmt: skip
    command = ["chromium", *flags, page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "3 of 4 cases shown." in shown
    assert "Show all 4" in shown
