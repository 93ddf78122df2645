"""The table of all cases: what the maps of one model and method scored on every image, the lowest first."""

import math
from collections.abc import Iterator, Mapping, Sequence

from heatcheck.report.appendix import is_network
from heatcheck.report.blocks.case_table import CaseColumn, CaseRow, CaseTable, worst_and_random
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, listed
from heatcheck.report.page import Section
from heatcheck.studies.alignment.report.facts import ARM_LABELS, Pipeline, leading, manifest, pipelines
from heatcheck.studies.alignment.report.gallery import AlignmentGallery, StripCard
from heatcheck.studies.alignment.report.scores import ImageScores
from heatcheck.studies.alignment.vocabulary import DIRECTIONS, MAIN_METRICS

FILE = "image_scores.csv"  # the download that holds the scores of every model and method
ARMS = ("base", *DIRECTIONS)  # the networks that have a column


def cases(evidence: Evidence, scores: ImageScores, gallery: AlignmentGallery) -> Section | None:
    """The section with the table; None where no case has a score or failed."""
    pipeline = leading(evidence) or next(iter(pipelines(evidence)), None)
    rows = [*_scored(evidence, scores, pipeline, gallery), *_failed(evidence)] if pipeline else []
    if not rows or pipeline is None:
        return None
    label = evidence.label_of(_metric(evidence))
    columns = tuple(CaseColumn(f"{label}, {ARM_LABELS[arm]}", 2) for arm in ARMS)
    among = "highest on average among all pairs, " if len(pipelines(evidence)) > 1 else ""
    caption = f"Map scores of {pipeline.label} ({among}before fine-tuning), the lowest of the base model first"
    table = CaseTable(caption, "Finding", columns, worst_and_random(rows), len(rows), FILE)
    summary = f"{count(len(rows), 'row')}: one per image and finding, with the map scores of three networks."
    return Section("cases", "Case by case", "Cases", (table,), summary)


def _metric(evidence: Evidence) -> str:
    """The score of the verdict, where single images have it."""
    name = manifest(evidence).blame_metric
    return name if name in MAIN_METRICS else MAIN_METRICS[0]


def _scored(
    evidence: Evidence, scores: ImageScores, pipeline: Pipeline, gallery: AlignmentGallery
) -> Iterator[CaseRow]:
    """A row for every image and finding of the pipeline; seeds are averaged."""
    links = _links(gallery, pipeline)
    columns = [f"{_metric(evidence)}_{arm}" for arm in ARMS]
    rows = scores.rows_of(pipeline)
    for case, finding, *values in rows[["case", "finding", *columns]].itertuples(index=False) if len(rows) else ():
        shown = links.get((str(case), str(finding)))
        missing = [ARM_LABELS[arm] for arm, value in zip(ARMS, values, strict=True) if math.isnan(value)]
        yield CaseRow(
            case=str(case),
            group=str(finding),
            values=tuple(float(value) for value in values),
            note=_missing(missing),
            picture=_shown_with(shown, pipeline),
            link=shown.strip.anchor if shown else "",
            badness=1 - (0.0 if math.isnan(values[0]) else float(values[0])),
        )


def _missing(labels: Sequence[str]) -> str:
    return f"no score of {listed(labels)}" if labels else ""


def _shown_with(shown: StripCard | None, pipeline: Pipeline) -> str:
    """Whose maps the linked picture has, where they are not those that were scored here."""
    other = shown is not None and (shown.model, shown.method) != (pipeline.base.name, pipeline.method.name)
    return f"picture: {shown.pipeline}" if shown and other else ""


def _links(gallery: AlignmentGallery, pipeline: Pipeline) -> Mapping[tuple[str, str], StripCard]:
    """Where each case and finding can be looked at: with the maps of this pipeline where they were kept."""
    links: dict[tuple[str, str], StripCard] = {}
    for each in gallery.cards:
        own = (each.model, each.method) == (pipeline.base.name, pipeline.method.name)
        if own or (each.case, each.finding) not in links:
            links[each.case, each.finding] = each
    return links


def _failed(evidence: Evidence) -> Iterator[CaseRow]:
    """A row for every image that failed; networks that failed are listed with the gaps."""
    failed = evidence.run.cases[evidence.run.cases["status"] == "failed"]
    images = failed[~is_network(failed)]
    for case, stage, reason in images[["case", "stage", "reason"]].itertuples(index=False):
        yield CaseRow(str(case), "\u2013", (math.nan,) * len(ARMS), f"failed at {stage}: {reason}", badness=2.0)
