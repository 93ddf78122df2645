"""Case and patient ids replaced by salted hashes, everywhere they would be written."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, RunFolderError
from heatcheck.core.records import Case, CaseKey, Mask, TruthKind
from heatcheck.runs.tables import replaced

SALT_FILE = "{name}.salt"  # beside the run's folder, so that the folder can be shared without it


@dataclass(frozen=True)
class PseudonymousSource:
    """A source whose cases answer to other names."""

    source: Source
    originals: dict[str, CaseKey]  # by pseudonym

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings of the source."""
        return self.source.findings

    @property
    def truth_kind(self) -> TruthKind:
        """How the marks are stored in the source."""
        return self.source.truth_kind

    @property
    def modalities(self) -> tuple[str, ...]:
        """What the channels of the source's images are; none where the source does not say."""
        said: tuple[str, ...] = getattr(self.source, "modalities", ())
        return said

    def index(self) -> Sequence[CaseKey]:
        """Every case, under its pseudonym."""
        return sorted((self._renamed(name) for name in self.originals), key=lambda key: key.case)

    def _renamed(self, name: str) -> CaseKey:
        original = self.originals[name]
        return CaseKey(name, name.split(".", maxsplit=1)[0], original.labels)

    def load(self, key: CaseKey) -> Case:
        """The case under its pseudonym; its errors do not name the file."""
        try:
            case = self.source.load(self.originals[key.case])
        except Exception as error:  # noqa: BLE001 - any text may name the file
            raise self._hidden(error, key) from None
        return replace(case, key=key)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The truth masks of the case."""
        try:
            return self.source.truth(self.originals[key.case])
        except Exception as error:  # noqa: BLE001 - any text may name the file
            raise self._hidden(error, key) from None

    def stamp(self) -> str:
        """The stamp of the source."""
        return self.source.stamp()

    def _hidden(self, error: Exception, key: CaseKey) -> CaseError:
        original = self.originals[key.case]
        text = str(error)
        for name in sorted({original.case, Path(original.case).name, original.patient}, key=len, reverse=True):
            text = text.replace(name, key.case)
        return CaseError(text, stage=error.stage if isinstance(error, CaseError) else "unexpected")


def pseudonymous(source: Source, keys: Sequence[CaseKey], out: Path) -> PseudonymousSource:
    """These cases of the source under pseudonyms; the salt lies beside the run's folder and is reused there."""
    path = out.absolute().parent / SALT_FILE.format(name=out.absolute().name)
    if (out / "run.json").exists() and not path.exists():
        raise RunFolderError(f"{out} was begun without pseudonyms, or {path} is lost; choose another --out")
    salt = _salt(path)
    originals = {}
    for key in keys:
        patient = _hash(salt, "patient", key.patient)
        originals[f"{patient}.{_hash(salt, 'case', key.case)}"] = key
    return PseudonymousSource(source, originals)


def _hash(salt: str, kind: str, name: str) -> str:
    return hashlib.blake2b(f"{kind}:{name}".encode(), key=salt.encode(), digest_size=6).hexdigest()


def _salt(path: Path) -> str:
    """The salt in the file, made when there is none; without a whole salt the pseudonyms could be turned back."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with replaced(path) as temporary:
                temporary.touch(mode=0o600)
                temporary.write_text(secrets.token_hex(16) + "\n")
        salt = path.read_text().strip()
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written ({error.strerror}); choose another --out") from error
    if len(salt) < 32:
        raise RunFolderError(f"{path} is damaged; remove it and the run's folder, and begin again")
    return salt
