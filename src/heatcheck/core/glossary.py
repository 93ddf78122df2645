"""One word per idea: what heatcheck calls things in its code, its reports and its documentation.

`docs/glossary.md` is written from this list, and reports take their explanations of terms from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A word with its meaning, and words of the literature that mean the same and are not used here."""

    name: str
    meaning: str
    instead_of: tuple[str, ...] = ()


_TERMS = (
    # what is studied
    Term("case", "One image, or one set of images of one examination, with everything known about it.", ("sample",)),
    Term("patient", "The person a case belongs to. Cases of one patient are never treated as independent."),
    Term("examination", "One visit of a patient, whose images are its views; radiology calls it a study."),
    Term("finding", "What a classifier looks for, such as pleural effusion. Each finding has a map of its own.",
         ("class", "pathology")),
    Term("truth", "The experts' marks of a finding on a case: outlines, masks or boxes.", ("ground truth",)),
    Term("human readers", "People who marked the same images by hand: the level that a map should come near.",
         ("annotators", "benchmark radiologists")),
    Term("modality", "One of several images of the same anatomy, such as T1, T2 or FLAIR.", ("sequence",)),
    Term("lesion", "The marked abnormality of a brain case."),
    Term("phantom", "An image drawn by heatcheck, whose truth is known exactly."),
    # models
    Term("model", "A classifier under study: a network with its preprocessing.", ("net",)),
    Term("base", "A network from which others are fine-tuned in an alignment study."),
    Term("arm", "One way of fine-tuning a base: control, toward the outlines, or away from them."),
    Term("baseline", "In a trigger study, the model trained without a trigger."),
    Term("poisoned model", "In a trigger study, the model that was taught to rely on the trigger.", ("victim",)),
    Term("seed", "The number from which the random choices of one training follow."),
    Term("fold", "One of several divisions of the patients into training and test."),
    Term("separation", "How much higher a model scores images with a finding than images without it."),
    Term("reliance", "How much more a model's score falls without the outlined area than without other areas of the "
         "same shape, beyond what the same comparison gives on images without the finding."),
    Term("importance", "How much a modality contributes to a network's answers (its Shapley value, \u03c6).",
         ("worth",)),
    # maps
    Term("heat map", "A picture of how much each pixel counts for a model's answer; in short, a map.",
         ("saliency map", "attribution")),
    Term("method", "A procedure that makes a map from a model and an image, such as Grad-CAM.", ("explainer",)),
    Term("empty map", "A map with the same value everywhere. It points nowhere: on a case with the finding it is a "
         "failure and scores 0."),
    Term("floor", "A picture made without asking the model, and mostly without looking at the image: noise, the "
         "centre, edges, the place where the finding usually is. A useful method must beat it.", ("control map",)),
    Term("region", "The part of a map above its threshold, compared with the truth as an area."),
    Term("peak", "The hottest pixel of a map."),
    Term("box", "The rectangle detected in a map, compared with the box around a trigger."),
    Term("trigger", "A small patch that a model was taught to rely on, so that the right answer of a map is known.",
         ("backdoor",)),
    Term("consensus", "The order of the methods by how much their maps agree with those of the others. It is no "
         "evidence that a map is right."),
    # numbers
    Term("metric", "A rule that gives one map, box or prediction a score.", ("measure",)),
    Term("score", "The value of a metric for one map."),
    Term("estimate", "One number of a report: a mean, a difference, a rank, with its interval."),
    Term("statistic", "What kind of number an estimate is, such as a mean or a difference."),
    Term("condition", "Under what circumstances a score or an estimate was made, such as a seed, a fold or a "
         "threshold."),
    Term("interval", "The range in which the true value plausibly lies, given how few or how many patients were seen; "
         "a narrow interval means a precise answer.", ("confidence interval",)),
    Term("size that matters", "The smallest difference that a report calls one: by default a tenth of the room "
         "between the best floor and the readers, or an overlap of 0.05 or 10 percentage points between two methods."),
    Term("clearly", "Said of a difference that is at least as large as the size that matters and whose 95 % interval, "
         "corrected for all comparisons made together, lies wholly on one side of 0.", ("significantly", "surely")),
    Term("does not", "Said where the whole interval lies below the size that matters: if there is a difference, it is "
         "too small to matter."),
    Term("not shown", "Said where the interval allows for both: the patients of the run do not decide it.",
         ("no significant difference",)),
    Term("undefined", "Said of a score that has no value, with the reason; it is counted and shown as a dash."),
    Term("blame", "Whether a low score of a map is the fault of the method or of the model."),
    # runs
    Term("study", "One published protocol: localization, alignment, triggers or modality."),
    Term("spec", "The YAML file that describes a study completely."),
    Term("preset", "A named set of rules, such as those of a paper."),
    Term("run", "A study carried out, and the folder that holds its results."),
    Term("stage", "A part of a run that must be finished before the next begins."),
    Term("shard", "A part of a stage that is written as a whole, so that an interrupted run can be continued."),
    Term("manifest", "What run.json says of a run.", ()),
    Term("gallery", "The cases that a report shows as pictures."),
)  # fmt: skip

GLOSSARY: Mapping[str, Term] = {term.name: term for term in _TERMS}


def meaning(name: str) -> str:
    """The meaning of a term."""
    return GLOSSARY[name].meaning
