"""Rows in which patients, findings and a feature all matter."""

import numpy as np

from heatcheck.stats.regression import Observations


def rows_of(generator, patients=60, groups=4, slope=1.5, hits=False, most=8):
    """Each patient has 1 to `most` rows and an effect of its own; every group has its own level."""
    patient = np.repeat(np.arange(patients), generator.integers(1, most + 1, patients))
    group = generator.integers(0, groups, len(patient))
    feature = generator.random(len(patient))
    level = slope * (feature - 0.5) + 0.4 * group - 0.5 + generator.normal(size=patients)[patient]
    if hits:
        scores = (generator.random(len(patient)) < 1 / (1 + np.exp(-level))).astype(float)
    else:
        scores = level + generator.normal(size=len(patient))
    return Observations(feature, scores, group, patient)


def columns_of(rows):
    """The design of the same regression for a library that takes columns."""
    return np.column_stack([rows.feature, *(rows.groups == code for code in np.unique(rows.groups))]).astype(float)
