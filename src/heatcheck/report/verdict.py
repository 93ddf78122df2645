"""The verdict of a report: two sentences or three."""

from dataclasses import dataclass

LEVEL = 0.05
FEW_PATIENTS = 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two or three sentences."""

    first: str
    second: str
    third: str = ""

    @property
    def text(self) -> str:
        """The sentences as one line."""
        return " ".join(filter(None, (self.first, self.second, self.third)))
