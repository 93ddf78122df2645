"""The verdict of a report: two sentences or three."""

from dataclasses import dataclass

LEVEL = 0.05
FEW_PATIENTS = 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two sentences, or three, which then stand apart."""

    first: str
    second: str
    third: str = ""

    @property
    def text(self) -> str:
        """All in one line."""
        return " ".join(filter(None, (self.first, self.second, self.third)))
