"""Every study, registered; importing this is enough to know them all."""

from heatcheck.studies import alignment, localization, modality, triggers
from heatcheck.studies.registry import STUDIES

__all__ = ["STUDIES", "alignment", "localization", "modality", "triggers"]
