"""What was done, in words and in a few numbers."""

from heatcheck.report.blocks.block import Facts, Heading, Terms, prose
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, listed, spread
from heatcheck.report.page import Section
from heatcheck.studies.alignment.report.facts import images_behind, interval_words, manifest, methods_of, trained_once
from heatcheck.studies.alignment.vocabulary import BaseEntry

ARMS = (
    ("Base", "the model before any fine-tuning."),
    ("Control", "fine-tuned on the same images for the finding alone, without any map loss."),
    ("Aligned", "fine-tuned for the finding and at the same time so that the method\u2019s maps agree with the masks."),
    ("Misaligned", "the same, so that the maps avoid the masks."),
)
INTERVAL = "The range in which the true value plausibly lies. A narrow one means a precise answer."
NOT_A_MAP = (
    "What the model itself does when the region is hidden, measured without any map. Maps can be made to mislead "
    "while the model stays the same; reliance reveals it."
)


def overview(evidence: Evidence) -> Section:
    """What was done, in words."""
    sentences = (_what(evidence), _images(evidence), _fit(evidence))
    bases = tuple((base.label, _described(base)) for base in manifest(evidence).models)
    blocks = (
        *(block for sentence in sentences for block in prose(sentence)),
        Terms((*ARMS, ("Reliance", NOT_A_MAP), ("Interval", f"{INTERVAL} {interval_words(evidence)}"))),
        *((Heading("Base models"), Facts(bases)) if bases else ()),
    )
    return Section("overview", "What was done", "What was done", blocks, _summary(evidence))


def _summary(evidence: Evidence) -> str:
    """The size of the study in one line."""
    facts = manifest(evidence)
    if not facts.trained:
        return ""
    sizes = (count(len(facts.tuned), "base model"), count(len(facts.trained), "method"))
    findings = count(len(evidence.findings), "finding")
    times = "once" if trained_once(evidence) else f"with {count(len(facts.seeds), 'seed')}"
    return f"{sizes[0]}, {sizes[1]} and {findings}; each network was fine-tuned {times}."


def _what(evidence: Evidence) -> str:
    labels = {method.name: method.label for method in methods_of(evidence)}
    facts = manifest(evidence)
    through, only = ([labels[name] for name in names] for names in (facts.trained, facts.judged))
    models, seeds = len(facts.tuned), len(facts.seeds)
    others = len(facts.models) - models
    text = f"{count(models, 'base model')} {'was' if models == 1 else 'were'} fine-tuned"
    text += f" for {_findings(evidence)}" if evidence.findings else ""
    text += f", through the maps of {listed(through)}" if through else ""
    text += f", with {count(seeds, 'seed')}" if seeds else ""
    if only:
        were = "was" if len(only) == 1 else "were"
        text += f"; {listed(only)} cannot be trained through and {were} only scored on the same networks"
    text += "."
    if others:
        whose = f"{count(others, 'more base model')} {'was' if others == 1 else 'were'}"
        text += f" {whose} only trained, so that {'its' if others == 1 else 'their'} AUROC can be compared."
    return text


def _findings(evidence: Evidence) -> str:
    names = list(evidence.findings)
    return listed(names) if len(names) <= 4 else count(len(names), "finding")


def _images(evidence: Evidence) -> str:
    facts = manifest(evidence)
    if facts.n_finetune is None or facts.n_evaluation is None:
        return ""
    middle = f", {count(facts.n_selection, 'more image')} served to choose the checkpoint" if facts.n_selection else ""
    return (
        f"The networks learned from {count(facts.n_finetune, 'image')}{middle}, and their predictions were evaluated "
        f"on {count(facts.n_evaluation, 'other image')} of other patients.{_outlined(evidence)}"
    )


def _outlined(evidence: Evidence) -> str:
    """How many of the evaluated images the map scores rest on."""
    images = images_behind(evidence).values()
    if not images:
        return ""
    limit = manifest(evidence).limit
    why = f"limited by --limit {limit}" if limit else "those on which it is outlined"
    noun = "image" if max(images) == 1 else "images"
    return f" Map scores and reliance are from {spread(list(images))} {noun} of each finding among them ({why})."


def size_of(evidence: Evidence) -> str:
    """What the numbers rest on, for the header: images learned from are not among them."""
    evaluated, images = manifest(evidence).n_evaluation, list(images_behind(evidence).values())
    if evaluated is None or not images:
        return ""
    return f"{count(evaluated, 'image')} evaluated, maps of {spread(images)} per finding"


def _fit(evidence: Evidence) -> str:
    fit, alpha = manifest(evidence).fit, manifest(evidence).alpha
    parts = (
        count(fit.epochs, "epoch") if fit.epochs else "",
        f"batches of {fit.batch_size}" if fit.batch_size else "",
        f"learning rate {fit.learning_rate:g}" if fit.learning_rate else "",
        f"the map loss weighted by α = {alpha:g}" if alpha is not None else "",
    )
    return f"Fine-tuning: {', '.join(filter(None, parts))}." if any(parts) else ""


def _described(base: BaseEntry) -> str:
    """What the label does not say of a base."""
    start = ("pretrained" if base.pretrained else "not pretrained") if base.start_known else ""
    described = base.description if base.description != base.label else ""
    words = [described, start, "" if base.fine_tuned else "not fine-tuned: only its AUROC is compared"]
    return ", ".join(word for word in words if word) or "its weights were given, trained before this study"
