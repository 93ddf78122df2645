"""Values in cells, one per seed of a group: their means, on the data and when seeds and patients are resampled."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from heatcheck.stats.ratios import ratio
from heatcheck.stats.resampling.clusters import Clusters, cluster_codes, resampled_weights, totals_by_code

Labels = Shaped[np.ndarray, " cases"]


@dataclass(frozen=True, slots=True)
class Design:
    """The seed, patient and group of each value; any names that can be sorted."""

    seeds: Labels
    clusters: Clusters  # the patient of each image
    groups: Labels | None = None  # all have the same weight; None: one group for all values

    def __post_init__(self) -> None:
        lengths = {len(labels) for labels in (self.seeds, self.clusters, self.groups) if labels is not None}
        if len(lengths) > 1:
            raise ValueError(
                f"each value needs its seed, its patient and its group, got lists of lengths {sorted(lengths)}"
            )

    @property
    def cells(self) -> tuple[Int[np.ndarray, " cases"], "Cells"]:
        """The code of each value's cell, and the cells: the pairs of a group and a seed that occur."""
        seeds = cluster_codes(self.seeds)
        groups = np.zeros_like(seeds) if self.groups is None else cluster_codes(self.groups)
        pairs, cell_of = np.unique(np.stack([groups, seeds]), axis=1, return_inverse=True)
        return cell_of.ravel(), Cells(pairs[0], pairs[1])


@dataclass(frozen=True, slots=True)
class Cells:
    """The group and the seed of each cell, as codes from 0."""

    groups: Int[np.ndarray, " cells"]
    seeds: Int[np.ndarray, " cells"]

    def only(self, kept: Bool[np.ndarray, " cells"]) -> "Cells":
        """The kept cells, with groups and seeds coded anew from 0."""
        return Cells(cluster_codes(self.groups[kept]), cluster_codes(self.seeds[kept]))

    @property
    def in_group(self) -> Float[np.ndarray, "cells groups"]:
        """1 where a cell belongs to a group, else 0: a product with it sums cells by group."""
        return np.eye(self.groups.max() + 1)[self.groups]

    @property
    def of_seed(self) -> Float[np.ndarray, "cells seeds"]:
        """1 where a cell belongs to a seed, else 0."""
        return np.eye(self.seeds.max() + 1)[self.seeds]


@dataclass(frozen=True, slots=True)
class CellTotals:
    """Per patient, cell and column: the sum of the defined values, and their number."""

    sums: Float[np.ndarray, "patients cells columns"]
    counts: Float[np.ndarray, "patients cells columns"]
    cells: Cells
    n_cases: int  # including undefined values

    def only(self, columns: Int[np.ndarray, " columns"]) -> "CellTotals":
        """These columns, reduced to the patients and cells that have values; all columns must have the same ones."""
        counts = self.counts[:, :, columns]
        patients, cells = np.asarray(counts.any((1, 2))), np.asarray(counts.any((0, 2)))
        kept = np.ix_(patients, cells, columns)
        return CellTotals(self.sums[kept], self.counts[kept], self.cells.only(cells), self.n_cases)

    @property
    def means(self) -> Float[np.ndarray, "cells columns"]:
        """The mean of each cell."""
        return np.asarray(self.sums.sum(0) / self.counts.sum(0))


def cell_totals(values: Float[np.ndarray, "cases columns"], design: Design) -> CellTotals:
    """The totals of every patient in every cell; NaN values are left out."""
    cell_of, cells = design.cells
    patients = cluster_codes(design.clusters)
    n_patients, n_cells = int(patients.max()) + 1, len(cells.seeds)
    totals = totals_by_code(values, patients * n_cells + cell_of, n_patients * n_cells)
    # sums over patients depend in their last bits on the memory layout, so it is fixed here
    sums, counts = (
        np.ascontiguousarray(each).reshape(n_patients, n_cells, -1) for each in (totals.sums, totals.counts)
    )
    return CellTotals(sums, counts, cells, len(values))


def columns_by_pattern(counts: Float[np.ndarray, "patients cells columns"]) -> Iterator[Int[np.ndarray, " some"]]:
    """Sets of columns with values of the same patients in the same cells: these columns can share their draws."""
    by_pattern: dict[bytes, list[int]] = {}
    for column, pattern in enumerate((counts > 0).reshape(-1, counts.shape[2]).T):
        by_pattern.setdefault(pattern.tobytes(), []).append(column)
    for columns in by_pattern.values():
        yield np.array(columns)


def drawn_macros(totals: CellTotals, draws: int, generator: np.random.Generator) -> Float[np.ndarray, "draws columns"]:
    """The estimate of each column in each draw of seeds and patients."""
    # seeds and patients are crossed, not nested: every model is tested on the same images. So both are drawn
    # independently, and one draw of patients applies to all cells.
    seed_weights = drawn_seeds(totals.cells, draws, generator)
    return macro(drawn_means(totals, draws, generator), seed_weights[:, totals.cells.seeds], totals.cells)


def drawn_seeds(cells: Cells, draws: int, generator: np.random.Generator) -> Float[np.ndarray, "draws seeds"]:
    """How often each seed is drawn, over draws that include a seed of every group; other draws are rejected.

    Otherwise a group with few seeds would be missing in many draws, and the mean over groups would be undefined there.
    """
    kept: list[Float[np.ndarray, "some seeds"]] = []
    while sum(map(len, kept)) < draws:
        blocks = resampled_weights(cells.of_seed.shape[1], draws, generator)
        kept += [weights[(weights[:, cells.seeds] @ cells.in_group > 0).all(1)] for weights in blocks]
    return np.concatenate(kept)[:draws]


def drawn_means(
    totals: CellTotals, draws: int, generator: np.random.Generator
) -> Float[np.ndarray, "draws cells columns"]:
    """The mean of each cell over the patients drawn; NaN where none of them has an image in it."""
    n_patients, *rest = totals.counts.shape
    sums = totals.sums.reshape(n_patients, -1)
    counts = totals.counts
    if (counts == counts[:, :, :1]).all():  # often so, and then the counts of one column serve all
        counts = counts[:, :, :1]
    blocks = []
    for weights in resampled_weights(n_patients, draws, generator):
        drawn_counts = (weights @ counts.reshape(n_patients, -1)).reshape(len(weights), *counts.shape[1:])
        blocks.append(ratio((weights @ sums).reshape(-1, *rest), drawn_counts))
    return np.concatenate(blocks)


def macro(
    means: Float[np.ndarray, "draws cells columns"], weights: Float[np.ndarray, "draws cells"], cells: Cells
) -> Float[np.ndarray, "draws columns"]:
    """The mean over groups of the weighted mean of their cells; NaN where a group has no defined cell in a draw."""
    # a cell without a value gets weight 0, so that the other cells of its group share its weight
    defined_weights = weights[:, :, None] * ~np.isnan(means)
    sums = np.einsum("dck,cg->dgk", defined_weights * np.nan_to_num(means), cells.in_group)
    by_group = ratio(sums, np.einsum("dck,cg->dgk", defined_weights, cells.in_group))
    return np.asarray(by_group.mean(1))
