"""How a run is described and what it cites."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from heatcheck.methods import METHODS, build_method
from heatcheck.report.appendix import record
from heatcheck.report.citing.methods_text import methods_text
from heatcheck.report.citing.references import papers, software
from heatcheck.report.citing.section import references, section
from heatcheck.report.evidence import evidence_of
from heatcheck.report.settings import in_force
from heatcheck.running.facts import method_facts
from heatcheck.running.registry import STUDIES
from heatcheck.runs.store import RunFolder, read_run

ROOT = Path(__file__).parents[3]
NO_PAPER = {"", "Sobel filter"}


def parts(cited):
    return {part.strip() for part in cited.split(";")}


@pytest.mark.parametrize("name", METHODS)
def test_every_methods_paper_is_in_the_references(name):
    wanted = parts(METHODS[name].paper) - NO_PAPER
    assert {each.cited_as for each in papers([METHODS[name].paper])} == wanted


@pytest.mark.parametrize("name", ["localization", "alignment", "triggers", "modality"])
def test_every_studys_paper_is_in_the_references(name):
    (paper,) = papers([STUDIES[name].paper])
    assert paper.cited_as == STUDIES[name].paper


def test_entries_are_bibtex_with_a_key_of_their_own():
    every = papers([each.paper for each in METHODS.values()] + [each.paper for each in STUDIES.values()])
    assert len({each.key for each in every}) == len(every) > 15
    for each in every:
        assert {"author", "title", "year"} <= {name for name, _ in each.fields}
        assert each.bibtex.startswith(f"@{each.kind}{{{each.key},\n")
        assert each.bibtex.count("{") == each.bibtex.count("}")
        surname = re.split(r" et al\.| and ", each.cited_as)[0][:6]
        assert surname in each.line.replace("Š", "S")
        assert each.cited_as.endswith(dict(each.fields)["year"])
        assert not set("{}\\") & set(each.line)


def test_a_line_names_three_authors_and_where_the_paper_appeared():
    (paper,) = papers(["Bach et al. 2015"])
    assert paper.line == (
        "Bach Sebastian, Binder Alexander, Montavon Grégoire et al. On Pixel-Wise Explanations for Non-Linear "
        "Classifier Decisions by Layer-Wise Relevance Propagation. PLoS ONE 10:e0130140 (2015). "
        "doi:10.1371/journal.pone.0130140"
    )


def test_heatcheck_is_cited_as_its_own_file_says():
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    entry = dict(software("1.2").fields)
    assert (entry["title"], entry["version"]) == (stated["title"], "1.2")
    assert entry["author"].strip("{}") == stated["authors"][0]["name"]
    assert entry["year"] == str(stated["preferred-citation"]["year"])
    assert software("1.2").line == (
        "The heatcheck developers. heatcheck: do the heat maps of a medical-image classifier deserve trust? "
        "Version 1.2 (2026)."
    )
    assert software("").line.endswith("deserve trust? (2026).")


@pytest.fixture
def evidence(tmp_path):
    """A run of two methods and a floor, with settings."""
    used = {"integrated_gradients": {"steps": 7}, "grad_cam": {}, "random": {}}
    facts = {
        "study": "localization", "paper": "Saporta et al. 2022", "seed": 3, "spec": {"bootstrap_draws": 2000},
        "versions": {"heatcheck": "0.1.0", "torch": "2.8.0"}, "findings": ["Edema"],
        "source": {"description": "Drawn chest radiographs"}, "models": [{"name": "net", "label": "DenseNet-121"}],
        "methods": [method_facts(name, build_method(name, settings)) for name, settings in used.items()],
    }  # fmt: skip
    with RunFolder.locked(tmp_path / "run", {}, facts):
        pass
    return evidence_of(read_run(tmp_path / "run"))


def test_the_paragraph_states_data_model_settings_and_versions(evidence):
    text = methods_text(evidence)
    assert "The data were: drawn chest radiographs." in text
    assert "The model was: DenseNet-121." in text
    assert "Integrated gradients (Sundararajan et al. 2017; 7 steps; baseline zero; rule middle)" in text
    assert "Grad-CAM (Selvaraju et al. 2017; layer automatic; placement centres)" in text
    assert "pictures made without the model: Random (16 cells)." in text
    assert "heatcheck 0.1.0 (torch 2.8.0), study “localization”, after the protocol of Saporta et al. 2022." in text
    assert "seed of the run was 3" in text


def test_settings_in_force_are_in_the_record_and_changed_ones_are_marked(evidence):
    (listing,) = (block for block in record(evidence).blocks if block.kind == "listing")
    cells = {row[0]: row[3] for row in listing.rows}
    assert cells["Integrated gradients"].text == "7 steps, baseline zero, rule middle"
    assert cells["Integrated gradients"].aside == "changed: 7 steps (usual: 20)"
    assert (cells["Grad-CAM"].text, cells["Grad-CAM"].aside) == ("layer automatic, placement centres", "")


def test_settings_that_a_run_did_not_record_are_not_made_up(evidence):
    old = replace(evidence, methods=tuple(replace(each, settings=None) for each in evidence.methods))
    (listing,) = (block for block in record(old).blocks if block.kind == "listing")
    assert [row[3].text for row in listing.rows] == ["the others as usual", "not recorded", "16 cells"]


def test_references_are_the_software_the_protocol_and_the_methods(evidence):
    assert [each.cited_as for each in references(evidence)] == [
        "heatcheck", "Saporta et al. 2022", "Sundararajan et al. 2017", "Selvaraju et al. 2017"
    ]  # fmt: skip
    shown = section(evidence)
    files = {block.file: block.text for block in shown.blocks if block.kind == "code"}
    assert files["references.bib"].count("@") == 4
    assert files["methods.txt"] == methods_text(evidence)
    assert shown.summary == "A methods paragraph with all settings, and 4 references with BibTeX."


def test_settings_are_said_in_words():
    segments = {"kind": "grid", "cells": 6, "per_channel": False}
    said = in_force({"samples": 1500, "segments": segments, "window": None, "max_batch": "found"})
    assert said == ("1,500 samples", "segments grid (6 cells, per channel no)", "window automatic")
