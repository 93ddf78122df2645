"""Cards of the same image under four networks."""

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
from heatcheck.studies.alignment.report.facts import pipelines
from heatcheck.studies.alignment.report.gallery import alignment_gallery, case_cards, telling_card


def gallery(folder, room=10**8):
    return alignment_gallery(evidence_of(read_run(folder)), room)


def changed(folder, change):
    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    change(index["items"])
    path.write_text(json.dumps(index))
    return folder


def test_card_shows_four_networks_in_order_with_probability_and_scores(alignment_run):
    card = gallery(changed(alignment_run(), lambda items: items[0]["maps"].reverse())).cards[0]
    assert (card.case, card.finding) == ("patient0000", "Atelectasis")
    assert card.pipeline == "Gradient on DenseNet (random_1_channel)"
    assert [film.label for film in card.strip.films] == ["Image", "Base", "Control", "Aligned", "Misaligned"]
    assert card.strip.films[3].caption == "mass 0.66, rank 0.70 \u00b7 finding 89\u00a0% likely"
    assert card.strip.films[4].caption.startswith("mass 0.04, rank \u2013")
    assert card.apart == pytest.approx(0.62)
    assert "left and right as in the file" in card.strip.case


def test_every_network_is_drawn_over_the_same_film_with_the_outline(alignment_run):
    text = section_text(build_report(alignment_run(gallery=1)).read_text(), "pictures")
    assert len(re.findall(r'"data:image/jpeg', text)) == 1
    assert text.count('<use href="#films-000-image"/>') == text.count('class="truth" d="M') == 5
    described = [facts["aria-label"] for tag, facts in outline(text).elements
                 if tag == "svg" and "Map of the" in facts.get("aria-label", "")]  # fmt: skip
    assert len(described) == 4
    assert all("with the experts’ outline of Atelectasis; mass 0." in words for words in described)


def test_findings_of_one_case_share_a_card_that_holds_the_image_once(alignment_run):
    folder = changed(alignment_run(gallery=3), lambda items: items[2].update(case=items[0]["case"]))
    first, second = case_cards(gallery(folder))
    assert [each.strip.anchor for each in first.strips] == ["films-000", "films-002"]
    assert (first.strips[1].strip.image, first.strips[1].strip.holder) == ("", "films-000")
    assert second.strips[0].strip.image


def test_telling_case_is_that_on_which_the_pair_s_tuned_maps_differ_most(alignment_run):
    def change(items):
        for item in items[:2]:
            item.update(model="densenet201/random", method="gradient")
        items[1]["maps"][2]["mass"] = 0.9

    folder = changed(alignment_run(gallery=3), change)
    pipeline = pipelines(evidence_of(read_run(folder)))[0]
    assert telling_card(gallery(folder), pipeline).case == "patient0001"
    assert telling_card(gallery(folder), None).case == "patient0000"
    assert telling_card(gallery(alignment_run(gallery=0)), pipeline) is None


def test_cards_stop_at_the_budget_and_missing_pictures_cost_one_card(alignment_run):
    folder = alignment_run(gallery=3)
    whole = gallery(folder)
    some = gallery(folder, sum(card.weight for card in whole.cards[:2]) + 10)
    assert (len(whole.cards), len(some.cards)) == (3, 2)
    assert some.left_out[0].startswith("1 more case was chosen but left out")
    (folder / "gallery" / "001-align.png").unlink()
    assert [card.case for card in gallery(folder).cards] == ["patient0000", "patient0002"]


def test_weight_of_a_card_is_about_what_it_adds_to_the_page(alignment_run, monkeypatch):
    folder = alignment_run(gallery=3)
    cards = gallery(folder).cards
    weight = sum(card.weight for card in cards) + cards[0].strip.weight  # one of them is on the first screen too
    full = build_report(folder).stat().st_size
    monkeypatch.setattr(budget, "PICTURES", 0)
    assert 0.6 * weight < full - build_report(folder).stat().st_size < 1.3 * weight


def test_picture_outside_the_gallery_is_never_read(alignment_run):
    folder = alignment_run(gallery=1)
    shutil.copy(folder / "gallery" / "000-film.png", folder / "secret.png")
    assert gallery(changed(folder, lambda items: items[0].update(film="../secret.png"))).cards == ()


def test_arm_of_which_no_map_was_kept_is_simply_missing(alignment_run):
    folder = changed(alignment_run(gallery=1), lambda items: items[0]["maps"].pop())
    assert [film.label for film in gallery(folder).cards[0].strip.films] == ["Image", "Base", "Control", "Aligned"]


def test_one_hot_pixel_does_not_hide_the_rest_of_a_map(alignment_run):
    folder = alignment_run(gallery=1)
    heat = np.full((96, 96), 10, np.uint8)
    heat[30:40, 30:40], heat[0, 0] = 60, 255
    Image.fromarray(heat).save(folder / "gallery" / "000-align.png")
    picture = base64.b64decode(gallery(folder).cards[0].strip.films[3].heat.split(",")[1])
    drawn = np.asarray(Image.open(io.BytesIO(picture)).convert("RGBA"))
    assert (drawn[35, 35] == drawn[0, 0]).all()
    assert drawn[35, 35, 3] == 255
    assert drawn[80, 80, 3] < 30


def test_run_without_pictures_says_so(alignment_text):
    assert "This run kept no pictures" in section_text(alignment_text("without pictures"), "pictures")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_script_filters_the_cards_in_a_browser(alignment_run, tmp_path):
    page = build_report(alignment_run(gallery=6))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]  # fmt: skip
    command = ["chromium", *flags, page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "4 of 6 cases shown." in shown
    assert "Show all 6" in shown
