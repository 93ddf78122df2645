"""Image by image: how the scores of single images are spread, and whether both scores change together."""

from heatcheck.report.blocks.block import Block, Figures, Heading, Legend, Prose
from heatcheck.report.charts.panels import PanelGroup
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count
from heatcheck.report.page import Section
from heatcheck.studies.alignment.report.scores import ImageScores
from heatcheck.studies.alignment.report.sections.density import densities, density_keys
from heatcheck.studies.alignment.report.sections.scatter import Scatter, scatter

SPREAD = (
    "Each curve shows how the scores of single images are spread (area 1; seeds averaged; a peak more than four times "
    "as high as the lowest is cut off); fewer than eight scores are shown individually, aligned as a disc, misaligned "
    "as a diamond and control as a square. Where aligned and misaligned lie apart, the score of the same method "
    "depends on how the model was tuned."
)
TOGETHER = "Aligned minus misaligned, image by image: mass across, rank up. On the dashed line both change equally."


def images(evidence: Evidence, scores: ImageScores) -> Section | None:
    """The section; None when there are no scores."""
    spread, together = densities(evidence, scores), scatter(evidence, scores)
    if not spread and together is None:
        return None
    blocks = (*_spread(spread), *(_together(together) if together else ()))
    pictures = scores.table["case"].nunique()
    summary = f"How the scores of {count(pictures, 'single image')} are spread, and how far each changed."
    return Section("images", "Image by image", "Images", blocks, summary)


def _spread(groups: list[PanelGroup]) -> tuple[Block, ...]:
    if not groups:
        return ()
    shown = (
        (Heading(group.name), Prose(group.sentence, small=True), Figures(group.panels, layout="small-multiples"))
        for group in groups
    )
    return (Prose(SPREAD), Legend(density_keys()), *(block for blocks in shown for block in blocks))


def _together(found: Scatter) -> tuple[Block, ...]:
    return (
        Heading("Do both scores change together?"),
        Prose(f"{TOGETHER} {found.sentence}"),
        Figures(found.panels, found.keys, "scatters"),
    )
