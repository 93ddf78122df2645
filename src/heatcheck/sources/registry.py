"""The data sources that a study can use, with the facts that lists and reports show."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from heatcheck.core.contracts import Source
from heatcheck.core.registry import Registry


class SourceSettings(BaseModel):
    """The settings of a source in a spec; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def resolved(self, folder: Path) -> "SourceSettings":  # noqa: ARG002 - for sources without paths
        """The settings with paths relative to `folder`, the folder of the spec."""
        return self


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A kind of data, how to open it, and the texts that lists and reports show."""

    name: str
    settings: type[SourceSettings]
    open: Callable[[Any], Source]
    summary: str
    needs: str  # what must be on disk
    remark: str = ""  # a caveat for the report
    drawn: bool = False  # by heatcheck: no patient's images
    published_as: str = ""  # the data set of which a study's paper publishes numbers


SOURCES: Registry[SourceFacts] = Registry("source")
