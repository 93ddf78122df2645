"""The table of all cases: scores of three networks, what failed, and links to the gallery."""

import json
import math

from heatcheck.report.blocks.case_table import CaseTable
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.alignment.report.gallery import alignment_gallery
from heatcheck.studies.alignment.report.scores import ImageScores, image_scores
from heatcheck.studies.alignment.report.sections.cases import cases

CELLS = [("densenet201/random", "integrated_gradients", "Edema", "misalign", seed) for seed in (1, 2)]


def case_table(evidence):
    section = cases(evidence, image_scores(evidence), alignment_gallery(evidence, 10**7))
    (table,) = [block for block in section.blocks if isinstance(block, CaseTable)]
    return table


def test_every_image_of_the_leading_pair_has_a_row_the_lowest_score_first(alignment_evidence):
    table = case_table(alignment_evidence())
    assert table.caption.startswith("Map scores of DenseNet (random_1_channel) · Integrated gradients (highest")
    assert [column.name for column in table.columns] == ["Mass, base", "Mass, aligned", "Mass, misaligned"]
    failed, *scored = table.rows
    assert (failed.case, failed.note.startswith("failed at load")) == ("bad", True)
    assert len(scored) == 48
    firsts = [row.values[0] for row in scored]
    assert firsts == sorted(firsts)
    means = [sum(row.values[k] for row in scored) / 48 for k in range(3)]
    assert [round(mean, 1) for mean in means] == [0.6, 0.8, 0.1]  # 0.55, 0.80, 0.12


def test_score_that_is_missing_is_named(alignment_evidence):
    rows = [row for row in case_table(alignment_evidence(failed=tuple(CELLS))).rows if row.group == "Edema"]
    assert {row.note for row in rows} == {"no score of aligned and misaligned"}
    assert all(math.isnan(row.values[1]) and not math.isnan(row.values[0]) for row in rows)


def test_row_links_to_the_card_of_its_case(alignment_run):
    folder = alignment_run(gallery=2)
    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    index["items"][1]["case"] = "Edema-3"
    path.write_text(json.dumps(index))
    rows = {row.case: row for row in case_table(evidence_of(read_run(folder))).rows}
    assert (rows["Edema-3"].link, rows["Edema-4"].link) == ("films-001", "")
    assert rows["Edema-3"].picture == "picture: Integrated gradients on ViT (radimagenet)"
    assert not rows["Edema-3"].is_missing
    assert "<small>picture: Integrated gradients on ViT (radimagenet)</small>" in build_report(folder).read_text()
    assert 'id="films-001"' in build_report(folder).read_text()


def test_table_names_a_download_that_is_on_the_page(alignment_text):
    assert "image_scores.csv has them too" in alignment_text()
    assert 'download="image_scores.csv"' in alignment_text()


def test_run_without_scores_lists_what_failed_alone(alignment_evidence):
    evidence = alignment_evidence()
    section = cases(evidence, ImageScores(image_scores(evidence).table.head(0)), alignment_gallery(evidence, 10**7))
    assert [row.case for row in section.blocks[0].rows] == ["bad"]
