"""The modality study's page as a whole, from made-up run folders."""

import html
import json
import re
import shutil

import pytest
from tests.report.page_reading import cell, outline, read, saved_tables, section_text
from tests.studies.modality.report.material import VARIANTS

from heatcheck.running.reporting import build_report
from heatcheck.runs.store import RunFolder

HOSTILE = '<script>alert("x")</script>'
WHOLE = ("importance", "Importance of whole modalities (φ): balanced accuracy, filled by 0")
LESION = ("importance", "Importance of the lesion in each modality (φ): balanced accuracy, filled by 0")


@pytest.mark.parametrize("variant", VARIANTS)
def test_page_is_well_formed_and_loads_nothing_from_elsewhere(modality_text, variant):
    text = modality_text(variant)
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
    assert not re.search(r"\bnan\b|None", re.sub(r"base64,[A-Za-z0-9+/=]+", "", text.split("</style>")[1]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_pictures_and_plots_have_words(modality_text, variant):
    for tag, facts in outline(modality_text(variant)).elements:
        if tag == "img":
            assert "alt" in facts
        if tag == "svg":
            assert facts.get("role") == "img" or facts.get("aria-hidden") == "true"


def test_page_is_the_same_when_built_again_and_after_the_folder_moved(modality_run, tmp_path):
    folder = modality_run(folds=2, cases=4, gallery=1)
    first = build_report(folder).read_bytes()
    shutil.move(folder, tmp_path / "elsewhere")
    assert build_report(tmp_path / "elsewhere").read_bytes() == first


def test_run_with_nothing_but_its_study_still_gets_a_page(tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {"study": "modality"}):
        pass
    assert "There is no verdict yet" in build_report(tmp_path / "run").read_text()


def test_hostile_names_are_shown_as_text(modality_run):
    folder = modality_run(folds=1, cases=4, gallery=1, case=HOSTILE)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["methods"][0]["label"] = HOSTILE
    (folder / "run.json").write_text(json.dumps(manifest))
    text = build_report(folder).read_text()
    assert HOSTILE not in text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in text


def test_no_absolute_path_is_told(modality_run):
    folder = modality_run(folds=1, cases=4, gallery=0)
    comments = (folder / "ratings.csv").read_text() + "A,x,lime,5,see /data/private/notes.txt\n"
    (folder / "ratings.csv").write_text(comments)
    text = build_report(folder).read_text()
    for secret in ("/home", "jane doe", "/data/private", str(folder)):
        assert secret not in text + "".join(saved_tables(text).values())
    assert "see …/notes.txt" in text


def test_importance_of_every_modality_stands_by_fold_with_its_interval_and_ranking(modality_text):
    page = read(modality_text())
    assert re.fullmatch(r"0\.\d{3}\|[\d.–]+", cell(page, WHOLE, "T1C", "Fold 1"))
    assert cell(page, WHOLE, "Ranking, = is a tie", "Fold 1").startswith("T1C > FLAIR > ")
    assert re.match(r"0\.500\|", cell(page, WHOLE, "No modality, v(∅)", "Fold 2"))
    assert re.match(r"0\.\d{3}$", cell(page, WHOLE, "Every modality, v(all)", "All folds"))
    assert re.fullmatch(r"0\.\d{3}\|[\d.–]+", cell(page, LESION, "T1C", "All folds"))


def test_every_measure_and_fill_has_its_tables(modality_text):
    captions = {table["caption"].split(": ")[1] for table in read(modality_text()).tables if "(φ" in table["caption"]}
    fills = ("0", "values of healthy tissue")
    assert captions == {f"{m}, filled by {f}" for m in ("balanced accuracy", "accuracy") for f in fills}


def test_first_place_is_marked_only_where_it_is_not_shared(modality_text):
    text = section_text(modality_text(), "importance")
    table = text[text.index(WHOLE[1]) :].split("</table>")[0]
    row = table[table.index(">T1C<") :].split("</tr>")[0]
    assert row.count("<strong>") == 5  # four folds and their mean; the third fold is a tie
    assert table.split("What they rest on")[0].count("<strong>") == 5


def test_published_values_stand_below_ours_on_the_paper_s_data(modality_text):
    page = read(modality_text())
    assert cell(page, WHOLE, "T1C", "Fold 1", published=True) == "0.550"
    assert cell(page, WHOLE, "T1", "Fold 3", published=True) == "0.028^1"
    assert cell(page, LESION, "FLAIR", "Fold 5", published=True) == "0.060"
    assert cell(page, WHOLE, "Accuracy, all shown", "All folds", published=True) == "0.878|± 0.034"
    assert "fold of the same number here" in section_text(modality_text(), "importance")
    assert "Published accuracy on BraTS 2020, five folds: 87.81" in section_text(modality_text(), "networks")


@pytest.mark.parametrize("variant", ["phantom", "three folds"])
def test_published_importances_stand_only_beside_the_paper_s_data_and_folds(modality_text, variant):
    assert "Published (Jin et al. 2021)" not in modality_text(variant)


def test_known_importance_stands_without_a_published_one_of_other_data(modality_text):
    where = ("importance", "Accuracy when only this modality is informative")
    assert cell(read(modality_text("phantom")), where, "T1C", "accuracy").startswith("0.970|")
    assert "Jin et al." not in modality_text("phantom")
    assert "known by construction" not in modality_text()


def test_networks_show_cases_epochs_and_accuracy(modality_text):
    where = ("networks", "The networks and their test cases")
    page = read(modality_text())
    assert cell(page, where, "Fold 2", "Training") == "236"
    assert cell(page, where, "Fold 2", "HGG") == "9"
    assert cell(page, where, "Fold 2", "Epoch") == "32"
    assert cell(page, where, "Fold 3", "Balanced accuracy").startswith("78.0")
    given = read(modality_text("phantom"))
    heads = next(table for table in given.tables if table["caption"] == where[1])["rows"][0]
    assert not any(head.startswith(("Training", "Epoch")) for head in heads)


def test_gaps_count_what_one_map_for_all_cannot_have(modality_text):
    text = section_text(modality_text(), "gaps")
    assert "one map for all modalities says nothing about their order" in text
    assert "has no modality correlation by construction" in text
    assert "cannot read …/a.nii: cut short" in text


def test_page_of_volumes_and_of_one_method_has_its_sections(modality_text):
    assert '<section id="ranks"' not in modality_text("one method")
    assert '<section id="ratings"' not in modality_text("phantom")
    for anchor in (
        "pictures",
        "overview",
        "importance",
        "networks",
        "comparison",
        "distributions",
        "heat",
        "ranks",
        "cost",
        "cases",
    ):
        assert f'<section id="{anchor}"' in modality_text("volumes")


def test_page_answers_first_and_shows_pictures_before_tables(modality_text):
    text = modality_text()
    sections = [facts["id"] for tag, facts in outline(text).elements if tag == "section"]
    assert sections[:2] == ["answer", "pictures"]
    answered = section_text(text, "answer")
    for question in ("Which modality (sequence) do the networks rely on?", "Do maps name the modality that matters?",
                     "Do maps mark the lesion?", "Do maps follow the network?"):  # fmt: skip
        assert f"<dt>{question}</dt>" in answered
    assert "What to do" in answered
    assert answered.count('class="film"') == 1 + 16
    assert "<table" not in answered


def test_every_section_says_in_a_line_what_it_holds(modality_text):
    for variant in ("whole", "phantom"):
        lines = re.findall(r'</h2>(?: <span class="summary-line">(.*?)</span>)?</summary>', modality_text(variant))
        assert all(lines)
        assert max(map(len, lines)) <= 125


def test_main_results_are_printed(modality_text):
    printed = re.findall(r'<section id="(\w+)"[^>]*>\s*<details class="part" data-printed>', modality_text())
    assert printed == ["overview", "importance", "comparison", "heat"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_name_per_idea(modality_text, variant):
    """No MI, which could be the mutual information too; φ only where it is explained."""
    text = re.sub(r"base64,[A-Za-z0-9+/=]+", "", modality_text(variant))
    assert not re.search(r"\bMI\b", text)
    importance = section_text(text, "importance") if 'id="importance"' in text else ""
    page = text.split("<script>")[0]  # which names the sign for LaTeX
    assert page.count("φ") == importance.count("φ")
