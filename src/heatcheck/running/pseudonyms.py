"""Case and patient ids replaced by salted hashes wherever they are written."""

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heatcheck.core.atomic_files import replaced
from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, RunFolderError
from heatcheck.core.records import Case, CaseKey, Mask, TruthKind
from heatcheck.running.open_source import cautions_of

SALT_FILE = "{name}.salt"  # next to the run's folder, so that the folder can be shared without it


@dataclass(frozen=True)
class PseudonymousSource:
    """A source whose cases have pseudonyms."""

    source: Source
    originals: dict[str, CaseKey]  # by pseudonym
    examinations: dict[str, str]  # pseudonyms of the examinations that are known, by pseudonym of the case

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings of the source."""
        return self.source.findings

    @property
    def truth_kind(self) -> TruthKind:
        """How the source stores its truth."""
        return self.source.truth_kind

    @property
    def modalities(self) -> tuple[str, ...]:
        """The modalities of the source's channels; empty if it names none."""
        modalities: tuple[str, ...] = getattr(self.source, "modalities", ())
        return modalities

    def index(self) -> Sequence[CaseKey]:
        """Every case, under its pseudonym."""
        return sorted((self._renamed(name) for name in self.originals), key=lambda key: key.case)

    def _renamed(self, name: str) -> CaseKey:
        original = self.originals[name]
        facts = {**original.facts, "study": self.examinations[name]} if name in self.examinations else original.facts
        return CaseKey(name, name.split(".", maxsplit=1)[0], original.labels, facts)

    def load(self, key: CaseKey) -> Case:
        """The case under its pseudonym; errors do not name the file."""
        try:
            case = self.source.load(self.originals[key.case])
        except Exception as error:  # noqa: BLE001 - any text may name the file
            raise self._hidden(error, key) from None
        return replace(case, key=replace(key, labels=case.key.labels))  # a source may correct them by the truth

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The truth masks of the case; errors do not name the file."""
        try:
            return self.source.truth(self.originals[key.case])
        except Exception as error:  # noqa: BLE001 - any text may name the file
            raise self._hidden(error, key) from None

    def cautions(self) -> tuple[str, ...]:
        """Those of the source, without the names of cases."""
        return cautions_of([self.source], named=False)

    def stamp(self) -> str:
        """The stamp of the source."""
        return self.source.stamp()

    def stamp_without(self, cases: Collection[str]) -> str:
        """The stamp of the source without some cases; empty where it cannot say."""
        stamp_without = getattr(self.source, "stamp_without", None)
        stamp: str = stamp_without({self.originals[name].case for name in cases}) if stamp_without else ""
        return stamp

    def _hidden(self, error: Exception, key: CaseKey) -> CaseError:
        original = self.originals[key.case]
        text = str(error)
        for name in sorted({original.case, Path(original.case).name, original.patient}, key=len, reverse=True):
            text = text.replace(name, key.case)
        return CaseError(text, stage=error.stage if isinstance(error, CaseError) else "unexpected")


def pseudonymous(source: Source, keys: Sequence[CaseKey], out: Path) -> PseudonymousSource:
    """The source with these cases under pseudonyms; the salt is a file next to the run's folder and is reused."""
    path = out.absolute().parent / SALT_FILE.format(name=out.absolute().name)
    if (out / "run.json").exists() and not path.exists():
        raise RunFolderError(f"{out} was begun without pseudonyms, or {path} is missing; choose another --out")
    salt = _salt(path)
    originals, examinations = {}, {}
    for key in keys:
        name = f"{_hash(salt, 'patient', key.patient)}.{_hash(salt, 'case', key.case)}"
        originals[name] = key
        if key.examination:
            examinations[name] = _hash(salt, "examination", key.examination)
    return PseudonymousSource(source, originals, examinations)


def _hash(salt: str, kind: str, name: str) -> str:
    return hashlib.blake2b(f"{kind}:{name}".encode(), key=salt.encode(), digest_size=6).hexdigest()


def _salt(path: Path) -> str:
    """The salt in the file, which is created if missing; a shorter salt would make the pseudonyms guessable."""
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
        raise RunFolderError(f"{path} is damaged; remove it and the run's folder, and run again")
    return salt
