"""Values in cells, a seed of a group each: their means, and the same when seeds and patients are drawn again."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from heatcheck.stats.resampling.clusters import Clusters, cluster_codes, resampled_weights

Labels = Shaped[np.ndarray, " cases"]


@dataclass(frozen=True, slots=True)
class Design:
    """What each value belongs to, by names that can be sorted."""

    seeds: Labels
    clusters: Clusters  # the patient of each image
    groups: Labels | None = None  # each counts the same; None is one for all

    def __post_init__(self) -> None:
        lengths = {len(labels) for labels in (self.seeds, self.clusters, self.groups) if labels is not None}
        if len(lengths) > 1:
            raise ValueError(f"each value needs its seed, its patient and its group, got {sorted(lengths)} of them")

    @property
    def cells(self) -> tuple[Int[np.ndarray, " cases"], "Cells"]:
        """Which cell each value lies in: a seed of a group; and all cells."""
        seeds = cluster_codes(self.seeds)
        groups = np.zeros_like(seeds) if self.groups is None else cluster_codes(self.groups)
        pairs, cell_of = np.unique(np.stack([groups, seeds]), axis=1, return_inverse=True)
        return cell_of.ravel(), Cells(pairs[0], pairs[1])


@dataclass(frozen=True, slots=True)
class Cells:
    """The group and the seed of each cell, numbered from 0."""

    groups: Int[np.ndarray, " cells"]
    seeds: Int[np.ndarray, " cells"]

    def only(self, kept: Bool[np.ndarray, " cells"]) -> "Cells":
        """The kept cells, groups and seeds numbered anew."""
        return Cells(cluster_codes(self.groups[kept]), cluster_codes(self.seeds[kept]))

    @property
    def in_group(self) -> Float[np.ndarray, "cells groups"]:
        """1 where a cell belongs to a group."""
        return np.eye(self.groups.max() + 1)[self.groups]

    @property
    def of_seed(self) -> Float[np.ndarray, "cells seeds"]:
        """1 where a cell belongs to a seed."""
        return np.eye(self.seeds.max() + 1)[self.seeds]


@dataclass(frozen=True, slots=True)
class CellTotals:
    """Per patient, cell and column: the sum of the defined values, and how many there are."""

    sums: Float[np.ndarray, "patients cells columns"]
    counts: Float[np.ndarray, "patients cells columns"]
    cells: Cells
    n_cases: int  # with values that are not defined

    def only(self, columns: Int[np.ndarray, " columns"]) -> "CellTotals":
        """These columns, with the patients and cells that have a value in them; all have the same."""
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
    if values.ndim != 2 or len(values) != len(cell_of):
        raise ValueError(f"values must be one row per case, got shape {values.shape} for {len(cell_of)} cases")
    if np.isinf(values).any():
        raise ValueError("values must be finite, or NaN where undefined, got infinity; look at the metric that made it")
    shape = (int(patients.max()) + 1, len(cells.seeds))
    place = patients * shape[1] + cell_of
    defined = ~np.isnan(values)
    filled = np.where(defined, values, 0.0)
    sums = [np.bincount(place, column, math.prod(shape)).reshape(shape) for column in filled.T]
    counts = [np.bincount(place, column, math.prod(shape)).reshape(shape) for column in defined.T]
    return CellTotals(np.stack(sums, -1), np.stack(counts, -1), cells, len(values))


def alike_columns(counts: Float[np.ndarray, "patients cells columns"]) -> Iterator[Int[np.ndarray, " some"]]:
    """The columns that have values of the same patients in the same cells, together: they share their draws."""
    together: dict[bytes, list[int]] = {}
    for column, pattern in enumerate((counts > 0).reshape(-1, counts.shape[2]).T):
        together.setdefault(pattern.tobytes(), []).append(column)
    for columns in together.values():
        yield np.array(columns)


def drawn_macros(totals: CellTotals, draws: int, generator: np.random.Generator) -> Float[np.ndarray, "draws columns"]:
    """The estimate of each column in each draw."""
    drawn_seeds = drawn_seeds_of(totals.cells, draws, generator)
    return macro(drawn_means(totals, draws, generator), drawn_seeds[:, totals.cells.seeds], totals.cells)


def drawn_seeds_of(cells: Cells, draws: int, generator: np.random.Generator) -> Float[np.ndarray, "draws seeds"]:
    """How often each seed comes up in draws in which every group has one of its seeds.

    A group that few seeds have would else be missing in many draws, and the mean over groups with it.
    """
    kept: list[Float[np.ndarray, "some seeds"]] = []
    while sum(map(len, kept)) < draws:
        blocks = resampled_weights(cells.of_seed.shape[1], draws, generator)
        kept += [weights[(weights[:, cells.seeds] @ cells.in_group > 0).all(1)] for weights in blocks]
    return np.concatenate(kept)[:draws]


def drawn_means(
    totals: CellTotals, draws: int, generator: np.random.Generator
) -> Float[np.ndarray, "draws cells columns"]:
    """The mean of each cell over the patients drawn; NaN where none of them has an image there."""
    n_patients, *rest = totals.counts.shape
    sums = totals.sums.reshape(n_patients, -1)
    counts = totals.counts
    if (counts == counts[:, :, :1]).all():  # as where every patient has one image: once for all columns
        counts = counts[:, :, :1]
    blocks = []
    for weights in resampled_weights(n_patients, draws, generator):
        drawn = (weights @ counts.reshape(n_patients, -1)).reshape(len(weights), *counts.shape[1:])
        summed = (weights @ sums).reshape(-1, *rest)
        blocks.append(np.divide(summed, drawn, out=np.full(summed.shape, np.nan), where=drawn > 0))
    return np.concatenate(blocks)


def macro(
    means: Float[np.ndarray, "draws cells columns"], weights: Float[np.ndarray, "draws cells"], cells: Cells
) -> Float[np.ndarray, "draws columns"]:
    """The mean over groups of the weighted means of their cells; NaN where a group has none in a draw."""
    counted = weights[:, :, None] * ~np.isnan(means)
    sums = np.einsum("dck,cg->dgk", counted * np.nan_to_num(means), cells.in_group)
    whole = np.einsum("dck,cg->dgk", counted, cells.in_group)
    by_group = np.divide(sums, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return np.asarray(by_group.mean(1))
