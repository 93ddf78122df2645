"""The data sources a study can name, and what a user should know of each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from heatcheck.core.contracts import Source
from heatcheck.core.registry import Registry


class SourceSettings(BaseModel):
    """What a spec may say about a source; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def resolved(self, folder: Path) -> "SourceSettings":  # noqa: ARG002 - for sources without paths
        """The same settings with paths taken from `folder`, where the spec lies."""
        return self


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A kind of data: how it is opened and what it is."""

    name: str
    settings: type[SourceSettings]
    open: Callable[[Any], Source]
    summary: str
    needs: str  # what must be on disk
    remark: str = ""  # what the report must say about such data
    drawn: bool = False  # by heatcheck: no patient's images
    published_as: str = ""  # the data set of which a study's paper publishes numbers


SOURCES: Registry[SourceFacts] = Registry("source")
