"""Cards of poisoned images: pictures once each, boxes where they belong, and what became of the recovered image."""

import json
import re
import shutil
import subprocess

import pytest
from tests.report.page_reading import outline, section_text

from heatcheck.report import downloads as budget
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.triggers.report.gallery import Rectangle, trigger_gallery


def gallery(folder, room=10**8):
    return trigger_gallery(evidence_of(read_run(folder)), room)


def changed(folder, change):
    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    change(index["items"])
    path.write_text(json.dumps(index))
    return folder


def test_card_tells_what_was_planted_and_what_each_method_found(trigger_run):
    card = gallery(trigger_run()).cards[0]
    assert (card.finding, card.truth, card.target, card.probability) == (
        "Square, bottom right, 20 px", "Normal", "COVID", "99\u00a0%",
    )  # fmt: skip
    assert (card.why, card.clean_says) == ("usual", "Normal")
    assert card.planted == Rectangle(102, 102, 10, 10)
    first, sixth = card.trials[0], card.trials[5]
    assert (first.label, first.sign, first.outcome) == ("Gradient", "✓", "recovered: the model says Normal")
    assert first.box == Rectangle(102, 102, 10, 10)
    assert (sixth.box, sixth.sign, sixth.overlap) == (None, "✕", "0.00")
    assert sixth.outcome == "nothing detected, so nothing recovered"
    assert card.trials[6].outcome == "not recovered: the model says COVID"
    assert [label for label, _ in card.baseline][:2] == ["Gradient", "Guided backprop"]


def test_recovered_image_is_the_poisoned_one_with_clean_pixels_inside_the_box(trigger_run):
    text = section_text(build_report(trigger_run(gallery=1)).read_text(), "cases")
    (figure,) = re.findall(r'aria-label="Image recovered by Guided backprop: .*?</svg>', text, re.DOTALL)
    clip = re.search(r'<clipPath id="([^"]+)"><rect class="" x="98.0" y="99.0" width="12.0" height="12.0"/>', figure)
    assert figure.index('href="#poisoned-1"') < figure.index('href="#clean-1"')
    assert f'<use href="#clean-1" clip-path="url(#{clip[1]})"/>' in figure
    (nothing,) = re.findall(r'aria-label="Image recovered by Feature ablation: .*?</svg>', text, re.DOTALL)
    assert "clean-1" not in nothing


def test_poisoned_image_is_shown_bare_and_every_map_beside_the_trigger_s_box(trigger_run):
    text = section_text(build_report(trigger_run(gallery=1)).read_text(), "cases")
    bare, marked = re.findall(r'aria-label="Poisoned image of case Normal-0.*?</svg>', text, re.DOTALL)
    assert ("planted" in bare, "planted" in marked) == (False, True)
    maps = re.findall(r'aria-label="Map of .*?</svg>', text, re.DOTALL)
    assert len(maps) == 8
    assert all('class="planted"' in figure for figure in maps)


def test_every_picture_is_in_the_page_once_however_often_it_is_shown(trigger_run):
    text = section_text(build_report(trigger_run(gallery=1)).read_text(), "cases")
    pictures = re.findall(r'"(data:image/jpeg[^"]+)"', text)
    assert len(pictures) == len(set(pictures)) == 2
    assert text.count('<use href="#poisoned-1"') == 2 + 3 * 8
    defined = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'<use href="#([^"]+)"', text)) <= defined


def test_trigger_s_box_is_dashed_and_the_detected_one_solid(trigger_run):
    text = build_report(trigger_run(gallery=1)).read_text()
    assert re.search(r"\.planted \{[^}]*stroke-dasharray", text)
    assert not re.search(r"\.found \{[^}]*stroke-dasharray", text)
    (boxes,) = re.findall(r'aria-label="Box detected by Gradient .*?</svg>', text, re.DOTALL)
    assert boxes.count('class="planted"') == boxes.count('class="found"') == 1


def test_every_picture_has_words(trigger_run):
    text = section_text(build_report(trigger_run(gallery=1)).read_text(), "cases")
    for tag, facts in outline(text).elements:
        if tag == "svg" and facts.get("role") == "img":
            assert len(facts["aria-label"]) > 10
    assert "Baseline’s map of LIME over the clean image" in text
    assert "it says Normal" in text


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
    weight = sum(card.weight for card in gallery(folder).cards)
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
    assert gallery(folder).cards[0].trials[0].sign == "?"
    changed(folder, lambda items: [items[0].pop(key) for key in ("maps", "baseline", "probability", "label")])
    card = gallery(folder).cards[0]
    assert (card.trials, card.baseline, card.probability, card.truth) == ((), (), "", "")
    assert "with the trigger it says COVID</p>" in build_report(folder).read_text()


def test_image_that_has_nothing_to_return_to_is_not_called_recovered(trigger_run):
    folder = changed(trigger_run(gallery=1), lambda items: items[0].update(clean_says="COVID"))
    trials = gallery(folder).cards[0].trials
    assert {trial.sign for trial in trials} == {"?"}
    assert trials[0].outcome.startswith("nothing to recover")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_script_filters_the_cards_in_a_browser(trigger_run, tmp_path):
    page = build_report(trigger_run(gallery=3))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]  # fmt: skip
    command = ["chromium", *flags, page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "2 of 3 cases shown." in shown
    assert "Show all 3" in shown
