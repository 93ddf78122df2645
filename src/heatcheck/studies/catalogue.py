"""Every study, registered; importing this is enough to know them all."""

from heatcheck.studies import localization, triggers
from heatcheck.studies.registry import STUDIES

__all__ = ["STUDIES", "localization", "triggers"]
