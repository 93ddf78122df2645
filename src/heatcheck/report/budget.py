"""How many bytes of pictures a page may carry: one that weighs too much cannot be sent to a colleague."""

from collections.abc import Sequence

from heatcheck.report.downloads import Download
from heatcheck.report.evidence import Evidence

PICTURES = 9_000_000  # bytes of pictures in the page
TEXT_AND_PICTURES = 13_500_000  # with the embedded tables
TEXT_PER_ESTIMATE = 120  # bytes of tables and plots, about


def room_for_pictures(evidence: Evidence, files: Sequence[Download]) -> int:
    """The bytes that pictures may take beside these downloads and the run's tables and plots."""
    text = TEXT_PER_ESTIMATE * len(evidence.run.estimates)
    room = TEXT_AND_PICTURES - text - sum(len(file.uri) for file in files)
    return int(max(0, min(PICTURES, room)))
