"""What the alignment page says of the models that it begins with, and no more than the run says of them."""

import math

from tests.report.page_reading import cell, read, section_text, table
from tests.studies.alignment.report.made_estimates import all_estimates, made
from tests.studies.alignment.report.material import AlignmentPlan, model_facts
from tests.studies.alignment.report.section_blocks import sentences

from heatcheck.core.records import ALL_FINDINGS
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


def trained_here(alignment_run, **plan):
    """The page of a run whose bases were trained first, on labels of three findings."""
    learned = {name: {"training_positives": 300 + place, "training_negatives": 700 - place,
                      "validation_positives": 30 + place, "validation_negatives": 70 - place}
               for place, name in enumerate(("Atelectasis", "Edema", "Hernia"))}  # fmt: skip
    aurocs = {ALL_FINDINGS: 0.71, "Atelectasis": 0.66, "Edema": 0.75, "Hernia": 0.72}
    rows = [made("auroc", "auroc", name, "", ALONE, value, arm="base", split="validation")
            for name, value in aurocs.items()]  # fmt: skip
    rows += all_estimates(AlignmentPlan(**plan))
    return read(build_report(alignment_run(facts={**FACTS, "learned": learned}, rows=rows, **plan)).read_text())


def test_auroc_on_the_validation_images_of_the_training_stands_beside_that_on_outlined_films(alignment_run):
    page = trained_here(alignment_run)
    rows = table(page, "prediction", "AUROC of the base models, by initialisation")["rows"]
    of_random = [row[1] for row in rows if row[0] == "random, 1 channel"]
    assert of_random == ["0.710|0.680–0.740", "0.800|0.770–0.830", "0.729"]  # validation, outlined films, published
    where = ("prediction", "AUROC of the base models on the validation images of their training data")
    heads = table(page, *where)["rows"][0]
    assert heads[1:] == ["All findings", "Atelectasis|30 positive", "Edema|31 positive", "Hernia|32 positive"]
    assert cell(page, where, "DenseNet (random_1_channel)", "Hernia").startswith("0.720")


def auroc_of_three(alignment_run, values):
    """The cell of DenseNet-201 from random weights, of which three trainings have these AUROCs, and its footnotes."""
    names = [f"{ALONE}/{number}" for number in (1, 2, 3)]
    models = [{**model_facts(ALONE), "name": name, "fine_tuned": False} for name in names] + [model_facts(TUNED)]
    rows = [
        made("auroc", "auroc", ALL_FINDINGS, "", name, value, arm="base")
        for name, value in zip(names, values, strict=True)
    ]
    page = build_report(alignment_run(facts={"models": models}, rows=rows + all_estimates(AlignmentPlan()))).read_text()
    where = ("prediction", "AUROC of the base models, by initialisation")
    return cell(read(page), where, "random, 1 channel", "densenet201"), section_text(page, "prediction")


def test_auroc_of_several_trainings_is_their_mean_with_the_lowest_and_the_highest(alignment_run):
    shown, text = auroc_of_three(alignment_run, (0.6, 0.71, 0.8))
    assert shown == "0.703^1|0.600–0.800"
    assert "Mean of 3 base models of this kind; below it the lowest and the highest, which are no interval." in text


def test_a_training_without_auroc_is_counted_beside_the_mean_of_the_others(alignment_run):
    shown, text = auroc_of_three(alignment_run, (0.6, math.nan, 0.8))
    assert shown == "0.700^1|0.600–0.800"
    assert "Mean of 2 base models" in text
    assert "1 more has no AUROC." in text


def test_labels_that_bases_learned_from_stand_beside_the_published_ones_only_on_the_same_data(alignment_run):
    where = ("prediction", "Labels that the bases learned from")
    rows = {row[0]: row[1:] for row in table(trained_here(alignment_run), *where)["rows"]}
    assert rows["Atelectasis"] == ["300", "700", "30", "70", "33,253", "186,076", "609", "3,476"]
    assert rows["Hernia"] == ["302", "698", "32", "68", *4 * ["–"]]
    other = trained_here(alignment_run, source="phantom_chest")
    assert table(other, *where)["rows"][-1] == ["Hernia", "302", "698", "32", "68"]
