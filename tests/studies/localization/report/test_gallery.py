"""Gallery cards: what fits, what is left out, and pictures that stay small."""

import base64
import io
import itertools
import json
import math

import numpy as np
import pytest
from PIL import Image

from heatcheck.report import downloads as budget
from heatcheck.report.blocks.pictures import PictureError, frame_for, image_uri, map_uri, path_data, simplified
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.localization.report.gallery import (
    case_cards,
    gallery_section,
    localization_gallery,
    telling_strip,
)


def opened(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",", 1)[1])))


def changed_index(folder, change):
    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    change(index["items"])
    path.write_text(json.dumps(index))
    return evidence_of(read_run(folder))


def test_card_tells_hit_miss_shared_and_undefined_in_words(made_run):
    card = localization_gallery(evidence_of(read_run(made_run())), 10**7).cards[0]
    image, *films = card.strip.films
    assert image.heat == ""
    assert [film.sign for film in films] == ["✓", "✕", "◐", "✓", "?"]
    assert [film.caption.split(" · ")[0] for film in films] == [
        "hit", "miss", "50\u00a0% of equally hot points inside", "hit", "undefined"]  # fmt: skip
    assert films[0].label == "Grad-CAM"
    assert films[0].caption == "hit · IoU 0.40"
    assert "model: 93\u00a0% likely" in card.strip.case
    assert card.why == "low overlap but hit"


def test_cards_stop_at_the_budget_and_say_how_many_are_left_out(made_run):
    evidence = evidence_of(read_run(made_run(gallery=4, noise=True)))
    everything = localization_gallery(evidence, 10**8)
    room = sum(card.weight for card in everything.cards[:2]) + 10
    some = localization_gallery(evidence, room)
    assert len(everything.cards) == 4
    assert len(some.cards) == 2
    assert some.left_out[0].startswith("2 more cases were chosen but left out")


def test_page_keeps_to_its_size(made_run, monkeypatch):
    monkeypatch.setattr(budget, "PICTURES", 300_000)
    folder = made_run(gallery=6, noise=True)
    text = build_report(folder).read_text()
    assert 100_000 < len(text.encode()) < 700_000
    assert "more cases were chosen but left out" in text
    assert budget.TEXT_AND_PICTURES < 15_000_000


def test_many_estimates_leave_less_room_for_pictures(made_run, monkeypatch):
    folder = made_run(gallery=4)
    estimates = len(read_run(folder).estimates)
    monkeypatch.setattr(budget, "TEXT_PER_ESTIMATE", budget.TEXT_AND_PICTURES / estimates)
    assert "4 more cases were chosen but left out" in build_report(folder).read_text()


def test_weight_of_a_card_is_about_what_it_adds_to_the_page(made_run, monkeypatch):
    folder = made_run(gallery=3)
    weight = sum(card.weight for card in localization_gallery(evidence_of(read_run(folder)), 10**8).cards)
    full = build_report(folder).stat().st_size
    monkeypatch.setattr(budget, "PICTURES", 0)
    of_first_screen = weight / 3  # one of the cases once more
    assert 0.6 * weight < full - build_report(folder).stat().st_size < 1.2 * (weight + of_first_screen)


def test_missing_picture_costs_one_card_and_is_counted(made_run):
    folder = made_run()
    (folder / "gallery" / "1.png").unlink()
    (folder / "gallery" / "2_0.png").write_bytes(b"not a picture")
    gallery = localization_gallery(evidence_of(read_run(folder)), 10**8)
    assert len(gallery.cards) == 2
    assert gallery.left_out == ("2 cases could not be shown because a picture is missing or damaged.",)


def test_picture_outside_the_gallery_is_never_read(made_run):
    folder = made_run(gallery=1)
    Image.new("L", (8, 8)).save(folder / "secret.png")
    with pytest.raises(PictureError, match="outside"):
        image_uri(folder / "gallery", "../secret.png")
    evidence = changed_index(folder, lambda items: items[0].update(image="../secret.png"))
    assert localization_gallery(evidence, 10**8).cards == ()


def test_item_without_readers_maps_or_reason_still_gets_a_card(made_run):
    folder = made_run(gallery=1)
    evidence = changed_index(
        folder, lambda items: [items[0].pop(key) for key in ("readers", "maps", "why", "probability")]
    )
    card = localization_gallery(evidence, 10**8).cards[0]
    (image,) = card.strip.films
    assert [line.style for line in image.outlines] == ["truth"]
    assert card.strip.note == ""
    assert f'id="{card.strip.anchor}"' in build_report(folder).read_text()


def test_image_is_shrunk_and_map_fades_to_nothing(tmp_path):
    Image.fromarray(np.full((2000, 1000), 90, np.uint8)).save(tmp_path / "image.png")
    Image.fromarray(np.arange(256, dtype=np.uint8)[None].repeat(10, 0)).save(tmp_path / "map.png")
    assert opened(image_uri(tmp_path, "image.png")).size == (256, 512)
    drawn = np.asarray(opened(map_uri(tmp_path, "map.png")).convert("RGBA"))[3].astype(int)
    assert max(drawn.shape[0], 10) <= 160
    assert drawn[0, 3] == 0
    assert drawn[-1, 3] == 255
    assert (np.diff(drawn[:, 3]) >= 0).all()
    assert (np.diff(drawn[:, :3].sum(1)) >= -2).all()  # brightness alone tells hot from cold


@pytest.mark.parametrize("mode", ["I;16", "RGBA", "L", "RGB"])
def test_any_png_becomes_a_jpeg(tmp_path, mode):
    Image.new(mode, (20, 30)).save(tmp_path / "image.png")
    assert opened(image_uri(tmp_path, "image.png")).format == "JPEG"


def test_contour_points_are_placed_at_pixel_centres():
    frame = frame_for((256, 128))
    assert (frame.width, frame.height) == (256, 512)
    assert path_data([[[0, 0], [10, 0], [10, 10]]], frame) == "M1 1L21 1L21 21Z"


def test_simplified_outline_stays_within_the_tolerance():
    circle = [(100 * math.cos(a / 200 * math.pi), 100 * math.sin(a / 200 * math.pi)) for a in range(400)]
    short = simplified(circle, 0.6)
    assert len(short) < 60
    for x, y in circle:
        gaps = (distance((x, y), a, b) for a, b in itertools.pairwise(short))
        assert min(gaps) <= 0.6 + 1e-9


def distance(point, start, end):
    point, start, end = map(np.array, (point, start, end))
    share = np.clip((point - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
    return np.linalg.norm(point - start - share * (end - start))


def test_the_method_a_case_was_chosen_for_comes_first(made_run):
    folder = made_run(methods=3, gallery=1)
    evidence = changed_index(folder, lambda items: items[0].update(method="method_2", probability=math.nan))
    card = localization_gallery(evidence, 10**8).cards[0]
    assert [film.label for film in card.strip.films][:3] == ["Image", "Integrated gradients", "Grad-CAM"]
    text = build_report(folder).read_text()
    assert "Chosen for: low overlap but hit (Integrated gradients)" in text
    assert "likely" not in text


def test_findings_of_one_case_share_a_card_and_hold_its_image_once(made_run):
    folder = made_run(gallery=3)
    evidence = changed_index(folder, lambda items: items[2].update(case=items[0]["case"], finding="Edema"))
    gallery = localization_gallery(evidence, 10**8)
    first, second = case_cards(gallery)
    assert [each.finding for each in first.findings] == [gallery.cards[0].finding, "Edema"]
    held, shared = (each.strip for each in first.findings)
    assert held.image.startswith("data:image")
    assert (shared.image, shared.holder) == ("", held.anchor)
    assert len(second.findings) == 1


def test_the_first_screen_shows_a_typical_case_with_truth_and_hottest_point_alone(made_run):
    evidence = changed_index(made_run(gallery=3), lambda items: items[1].update(why="typical", readers=[]))
    gallery = localization_gallery(evidence, 10**8)
    strip = telling_strip(gallery)
    assert strip.image == gallery.cards[1].strip.image
    assert {line.style for film in strip.films for line in film.outlines} == {"truth", "peak"}


def test_a_map_is_bright_though_one_pixel_outshines_it(tmp_path):
    grey = np.full((100, 100), 80, np.uint8)
    grey[0, 0] = 255
    Image.fromarray(grey).save(tmp_path / "map.png")
    dim, bright = (opened(map_uri(tmp_path, "map.png", top)).convert("RGBA") for top in (100.0, 99.5))
    assert np.asarray(bright)[50, 50].sum() > np.asarray(dim)[50, 50].sum() + 200


@pytest.mark.parametrize("readers", [True, False])
def test_readers_are_in_the_gallerys_legend_only_where_there_are_some(made_run, readers):
    def without(items):
        for item in items:
            item["readers"] = item["readers"] if readers else []

    section = gallery_section(localization_gallery(changed_index(made_run(), without), 10**8))
    assert section.blocks[0].content["has_readers"] is readers
