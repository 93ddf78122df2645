"""What the alignment page says of the models that it begins with, and no more than the run says of them."""

from tests.report.page_reading import cell, read, section_text, table
from tests.studies.alignment.report.material import model_facts
from tests.studies.alignment.report.section_blocks import sentences

from heatcheck.report.blocks.block import Facts
from heatcheck.running.reporting import build_report
from heatcheck.studies.alignment.report.facts import pipelines
from heatcheck.studies.alignment.report.sections.overview import overview

ALONE, TUNED = "densenet201/random", "vit_base_16/radimagenet"


def bases(section):
    """The base models of the overview, each with what is said of it."""
    (facts,) = [block for block in section.blocks if isinstance(block, Facts)]
    return dict(facts.pairs)


FACTS = {"models": [{**model_facts(ALONE), "fine_tuned": False}, model_facts(TUNED)]}


def test_base_that_was_only_trained_stands_in_tables_of_auroc_alone(alignment_run):
    text = build_report(alignment_run(facts=FACTS)).read_text()
    page = read(text)
    header = text.split("<header")[1].split("</header>")[0]
    assert "Model: ViT (radimagenet) · 234 images evaluated" in header
    where = ("prediction", "AUROC of the base models, by initialisation")
    assert cell(page, where, "random, 1 channel", "densenet201") == "0.800|0.770–0.830"
    for anchor in ("blame", "robustness", "images"):
        assert "DenseNet (random_1_channel)" not in section_text(text, anchor)
    networks = table(page, "prediction", "Prediction before and after fine-tuning")["rows"]
    assert [row[0] for row in networks].count("Base") == 1
    by_finding = [row[0] for row in table(page, "prediction", "AUROC by finding")["rows"]]
    assert by_finding[1:4] == ["DenseNet (random_1_channel)", "Base", "ViT (radimagenet)"]


def test_base_that_was_only_trained_is_not_counted_as_fine_tuned(alignment_evidence):
    section = overview(alignment_evidence(facts=FACTS))
    first = sentences(section)[0]
    assert first.startswith("1 base model was fine-tuned for Atelectasis and Edema")
    assert first.endswith("1 more base model was only trained, so that its AUROC can be compared.")
    assert "not fine-tuned" in bases(section)["DenseNet (random_1_channel)"]
    assert "not fine-tuned" not in bases(section)["ViT (radimagenet)"]
    assert section.summary == "1 base model, 2 methods and 2 findings; each network was fine-tuned with 2 seeds."
    assert {pipeline.base.name for pipeline in pipelines(alignment_evidence(facts=FACTS))} == {TUNED}


def test_every_base_counts_where_the_run_does_not_say(alignment_evidence):
    first = sentences(overview(alignment_evidence()))[0]
    assert first.startswith("2 base models were fine-tuned")
    assert "only trained" not in first


def test_description_that_repeats_the_label_is_left_out(alignment_evidence):
    models = [{**model_facts(ALONE), "description": "DenseNet (random_1_channel)", "initialisation": "given"}]
    described = bases(overview(alignment_evidence(facts={"models": models})))
    assert described == {"DenseNet (random_1_channel)": "its weights were given, trained before this study"}


def test_given_weights_are_not_called_unpretrained(alignment_run, alignment_evidence):
    given = {**model_facts(ALONE), "initialisation": "given"}
    facts = {"models": [given, model_facts(TUNED)]}
    content = bases(overview(alignment_evidence(facts=facts)))
    assert "pretrained" not in content["DenseNet (random_1_channel)"]
    assert content["ViT (radimagenet)"].endswith(", pretrained")
    assert bases(overview(alignment_evidence()))["DenseNet (random_1_channel)"].endswith("not pretrained")
    text = section_text(build_report(alignment_run(facts=facts)).read_text(), "robustness")
    assert "DenseNet-201, not pretrained" not in text  # nothing is published for a model that began one knows not how
    assert "ViT-base, pretrained" in text
