"""The modality study's page as a whole, from made-up run folders."""

import re

import pytest
from modality_page_material import VARIANTS
from page_reading import cell, outline, read

WHOLE = ("importance", "Importance of whole modalities (φ): balanced accuracy, filled by 0")


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


def test_importance_of_every_modality_stands_by_fold_with_its_interval_and_ranking(modality_text):
    page = read(modality_text())
    assert re.fullmatch(r"0\.\d{3}\|[\d.–]+", cell(page, WHOLE, "T1C", "Fold 1"))
    assert cell(page, WHOLE, "Ranking, = is a tie", "Fold 1").startswith("T1C > FLAIR > ")
    assert re.match(r"0\.500\|", cell(page, WHOLE, "No modality, v(∅)", "Fold 2"))
    assert cell(page, WHOLE, "T1C", "Fold 1", published=True) == "0.550"
    assert cell(page, WHOLE, "T1", "Fold 3", published=True) == "0.028^1"


def test_published_importances_stand_only_beside_the_paper_s_data_and_folds(modality_text):
    assert "Published (Jin et al. 2021)" not in modality_text("phantom")
    assert "Published (Jin et al. 2021)" not in modality_text("three folds")
