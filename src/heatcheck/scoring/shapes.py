"""The geometry of the annotations of a case."""

from heatcheck.core.records import Case, TruthShape
from heatcheck.regions.shape import shape_of


def shapes_of(case: Case) -> list[TruthShape]:
    """One row per annotated finding; an empty annotation has no geometry and no row."""
    rows = []
    for finding, mask in case.truth.items():
        shape = shape_of(mask)
        if shape.components:
            drawn = case.instances.get(finding, shape.components)
            rows.append(
                TruthShape(
                    case.key.case,
                    case.key.patient,
                    finding,
                    drawn,
                    shape.components,
                    shape.size,
                    shape.elongation,
                    shape.irrectangularity,
                )
            )
    return rows
