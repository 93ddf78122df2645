"""Post-processed maps as NIfTI files that any viewer lays over the image: one a modality, on the image's own grid."""

from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.records import Case
from heatcheck.maps.files import share_nifti_bytes, write_whole
from heatcheck.studies.modality_explaining import ModalMap

FOLDER = Path("maps") / "nifti"


@dataclass(frozen=True)
class NiftiMaps:
    """Writes maps below a run's folder: maps/nifti/CASE/METHOD_MODALITY.nii.gz."""

    folder: Path  # of the run
    modalities: tuple[str, ...]

    def __call__(self, case: Case, method: str, values: ModalMap) -> None:
        """Store a map; one that stands for all modalities is stored once, as `all`."""
        target = self.folder / FOLDER / file_name(case.key.case)
        target.mkdir(parents=True, exist_ok=True)
        names = self.modalities if len(values) == len(self.modalities) else ("all",)
        for name, channel in zip(names, values, strict=True):
            about = f"heatcheck {method} {name}, 0 to 1"
            content = share_nifti_bytes(channel, case.affine, about)
            write_whole(target / f"{method}_{file_name(name)}.nii.gz", content)


def file_name(name: str) -> str:
    """A case's or a modality's name as that of a file."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name).lstrip(".") or "_"
