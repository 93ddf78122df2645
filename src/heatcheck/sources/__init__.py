"""Data → Case: built-in phantoms and readers of data on disk."""

from heatcheck.sources.brats import Brats
from heatcheck.sources.chexlocalize import CheXlocalize
from heatcheck.sources.covid_radiography import CovidRadiography
from heatcheck.sources.folder import FolderSource
from heatcheck.sources.phantoms.phantom_brain import PhantomBrain
from heatcheck.sources.phantoms.phantom_chest import PhantomChest
from heatcheck.sources.phantoms.phantom_classes import PhantomClasses
from heatcheck.sources.registry import SOURCES, SourceFacts

__all__ = [
    "SOURCES",
    "Brats",
    "CheXlocalize",
    "CovidRadiography",
    "FolderSource",
    "PhantomBrain",
    "PhantomChest",
    "PhantomClasses",
    "SourceFacts",
]
