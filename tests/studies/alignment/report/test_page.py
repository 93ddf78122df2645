"""The alignment study's page as a whole, from made-up run folders."""

import html
import json
import re
import shutil

import pytest
from tests.report.page_reading import outline, read, saved_tables, section_text, table
from tests.studies.alignment.report.material import VARIANTS

from heatcheck.running.reporting import build_report
from heatcheck.runs.store import RunFolder
from heatcheck.studies.alignment.report.page import KICKER, alignment_page

HOSTILE = '<script>alert("x")</script>'


@pytest.mark.parametrize("variant", VARIANTS)
def test_page_is_well_formed_and_loads_nothing_from_elsewhere(alignment_text, variant):
    text = alignment_text(variant)
    parsed = outline(text)
    ids = [facts["id"] for _, facts in parsed.elements if "id" in facts]
    targets = {facts["href"][1:] for tag, facts in parsed.elements if tag == "a" and facts["href"].startswith("#")}
    assert (parsed.faults, parsed.open) == ([], [])
    assert len(ids) == len(set(ids))
    assert targets <= set(ids)
    assert "://" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    for tag, facts in parsed.elements:
        for name in ("src", "href", "srcset", "action"):
            assert re.match(r"data:|#", facts.get(name) or "#"), f"{tag} {name} leaves the page"
    assert not re.search(
        r"\bnan\b|None(?!: | so far)", re.sub(r"base64,[A-Za-z0-9+/=]+", "", text.split("</style>")[1])
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_pictures_and_plots_have_words(alignment_text, variant):
    for tag, facts in outline(alignment_text(variant)).elements:
        if tag == "img":
            assert "alt" in facts
        if tag == "svg":
            assert facts.get("role") == "img" or facts.get("aria-hidden") == "true"


def test_page_is_the_same_when_built_again_and_after_the_folder_moved(alignment_run, tmp_path):
    folder = alignment_run()
    first = build_report(folder).read_bytes()
    shutil.move(folder, tmp_path / "elsewhere")
    assert build_report(tmp_path / "elsewhere").read_bytes() == first


def test_run_with_nothing_but_its_study_still_gets_a_page(tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {"study": "alignment"}):
        pass
    assert "There is no verdict yet" in build_report(tmp_path / "run").read_text()


def test_hostile_names_are_shown_as_text(alignment_run):
    folder = alignment_run(findings=(HOSTILE, "Edema"))
    manifest = json.loads((folder / "run.json").read_text())
    manifest["models"][0]["label"] = manifest["methods"][0]["label"] = HOSTILE
    (folder / "run.json").write_text(json.dumps(manifest))
    text = build_report(folder).read_text()
    assert HOSTILE not in text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in text


def test_no_absolute_path_is_told(alignment_run):
    folder = alignment_run()
    text = build_report(folder).read_text()
    for secret in ("/home", "jane doe", "/data/private", str(folder)):
        assert secret not in text + "".join(saved_tables(text).values())


def test_all_base_models_stand_in_the_subtitle_and_none_is_called_the_page_s_own(alignment_text):
    text = alignment_text()
    assert "Models: DenseNet (random_1_channel) and ViT (radimagenet)" in text
    assert "the first one named" not in text


def test_another_finding_adds_little_to_the_page(alignment_run):
    pages = (
        build_report(alignment_run(findings=tuple(f"finding {i}" for i in range(n)), gallery=0)).read_text()
        for n in (2, 6)
    )
    few, more = (len(re.sub(r'href="data:text/csv[^"]*"', "", page).encode()) for page in pages)
    assert (more - few) / (4 * 4) < 21_000  # bytes for each model, method and finding, beside the tables to download


def test_sections_follow_each_other_and_are_left_out_where_there_is_nothing_to_show(alignment_text):
    every = [
        "answer", "pictures", "blame", "robustness", "cases", "prediction", "images", "factors", "example", "overview",
        "gaps", "record", "cite", "downloads",
    ]  # fmt: skip
    assert read(alignment_text("one pair")).sections == every
    unfinished = read(alignment_text("unfinished")).sections
    assert unfinished == [name for name in every if name not in {"blame", "robustness", "factors", "example"}]


def test_every_section_is_folded_behind_a_line_that_says_what_it_holds(alignment_evidence):
    sections = alignment_page(alignment_evidence()).sections
    assert [section.anchor for section in sections if not section.summary or len(section.summary) > 150] == []
    assert [section.anchor for section in sections if section.opened] == []
    assert {section.anchor for section in sections if section.printed} >= {"blame", "robustness", "prediction"}


def test_overview_says_what_was_done(alignment_text):
    text = section_text(alignment_text(), "overview")
    assert (
        "2 base models were fine-tuned for Atelectasis and Edema, through the maps of Gradient and Integrated" in text
    )
    assert "with 2 seeds." in text
    assert (
        "learned from 446 images, 222 more images served to choose the checkpoint, and their predictions were "
        "evaluated on 234" in text
    )
    assert "25 epochs, batches of 16, learning rate 0.0001, the map loss weighted by α = 1" in text


def test_random_maps_are_recorded_as_a_floor_and_not_as_a_method(alignment_text):
    rows = table(read(alignment_text()), "record", "Methods and floors")["rows"]
    kinds = {row[0].split("|")[0]: row[1] for row in rows}
    assert kinds["Random map"] == "floor"
    assert [row for row in rows if any(".." in cell for cell in row)] == []
    assert "random" not in kinds


def test_run_without_a_title_is_headed_by_the_study_s_question(alignment_run):
    facts = {"title": "s.yaml", "spec": {"study": "alignment", "title": ""}}
    text = build_report(alignment_run(facts=facts, gallery=0)).read_text()
    assert f"<h1>{KICKER}</h1>" in text
    assert "s.yaml" not in text
    assert text.count(KICKER) == 2  # in the tab and as the heading, and not above it once more


def test_verdict_of_three_sentences_stands_in_a_list(alignment_text):
    verdict = alignment_text().split('<details class="verdict">')[1].split("</details>")[0]
    assert [item.split()[0] for item in re.findall(r"<li>(.*?)</li>", verdict)] == ["By", "Of", "Under"]
