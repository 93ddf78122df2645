"""Post-processed maps as NIfTI files that any viewer lays over the image: one a modality, on the image's own grid."""

import hashlib
import shutil
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
        target = self._of(case)
        target.mkdir(parents=True, exist_ok=True)
        names = self.modalities if len(values) == len(self.modalities) else ("all",)
        for name, channel in zip(names, values, strict=True):
            about = f"heatcheck {method} {name}, 0 to 1"
            content = share_nifti_bytes(channel, case.affine, about)
            write_whole(target / f"{method}_{file_name(name)}.nii.gz", content)

    def remove(self, case: Case) -> None:
        """Take back the maps of a case that failed after all."""
        shutil.rmtree(self._of(case), ignore_errors=True)

    def _of(self, case: Case) -> Path:
        return self.folder / FOLDER / file_name(case.key.case)


def file_name(name: str) -> str:
    """A case's or a modality's name as that of a file; names that differ have files that differ."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name).lstrip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
