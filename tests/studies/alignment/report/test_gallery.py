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
from heatcheck.studies.alignment.report.gallery import alignment_gallery


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
    assert card.pipeline == "DenseNet (random_1_channel) · Gradient"
    assert [each.label for each in card.maps] == ["base", "control", "aligned", "misaligned"]
    assert [(each.probability, each.mass) for each in card.maps][2:] == [("89\u00a0%", "0.66"), ("88\u00a0%", "0.04")]
    assert card.maps[3].rank == "–"


def test_every_network_is_drawn_over_the_same_film_with_the_outline(alignment_run):
    text = section_text(build_report(alignment_run(gallery=1)).read_text(), "cases")
    assert len(re.findall(r'"data:image/jpeg', text)) == 1
    assert text.count('<use href="#film-1"/>') == text.count('class="truth" d="M') == 4
    for tag, facts in outline(text).elements:
        if tag == "svg" and facts.get("role") == "img":
            assert "with the experts’ outline of Atelectasis; mass 0." in facts["aria-label"]


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
    weight = sum(card.weight for card in gallery(folder).cards)
    full = build_report(folder).stat().st_size
    monkeypatch.setattr(budget, "PICTURES", 0)
    assert 0.6 * weight < full - build_report(folder).stat().st_size < 1.3 * weight


def test_picture_outside_the_gallery_is_never_read(alignment_run):
    folder = alignment_run(gallery=1)
    shutil.copy(folder / "gallery" / "000-film.png", folder / "secret.png")
    assert gallery(changed(folder, lambda items: items[0].update(film="../secret.png"))).cards == ()


def test_arm_of_which_no_map_was_kept_is_simply_missing(alignment_run):
    folder = changed(alignment_run(gallery=1), lambda items: items[0]["maps"].pop())
    assert [each.label for each in gallery(folder).cards[0].maps] == ["base", "control", "aligned"]


def test_one_hot_pixel_does_not_hide_the_rest_of_a_map(alignment_run):
    folder = alignment_run(gallery=1)
    heat = np.full((96, 96), 10, np.uint8)
    heat[30:40, 30:40], heat[0, 0] = 60, 255
    Image.fromarray(heat).save(folder / "gallery" / "000-align.png")
    picture = base64.b64decode(gallery(folder).cards[0].maps[2].uri.split(",")[1])
    drawn = np.asarray(Image.open(io.BytesIO(picture)).convert("RGBA"))
    assert (drawn[35, 35] == drawn[0, 0]).all()
    assert drawn[35, 35, 3] == 255
    assert drawn[80, 80, 3] < 30


def test_run_without_pictures_says_so(alignment_text):
    assert "This run kept no pictures" in section_text(alignment_text("without pictures"), "cases")


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
