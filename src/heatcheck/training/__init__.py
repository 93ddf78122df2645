"""One fit loop on Lightning Fabric."""

from heatcheck.training.fit import Epoch, FitSettings, fit
from heatcheck.training.labels import masked_cross_entropy

__all__ = ["Epoch", "FitSettings", "fit", "masked_cross_entropy"]
