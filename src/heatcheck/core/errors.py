"""Everything heatcheck raises on purpose.

HeatcheckError
├── InputError            known before work starts: the command ends with exit code 2
│   ├── SpecError         a study description that cannot be carried out
│   ├── UnknownNameError  a name no registry holds
│   ├── ModelError        weights or a classifier that do not fit
│   │   └── UntrainedError a fit that came to nothing
│   │       └── DivergedError  its loss is no longer a number
│   └── RunFolderError    an output folder that must not be written
└── CaseError             one case that cannot be used: recorded, and the run goes on
    └── ConstantChannelError  one of its channels has nothing to be scaled by
"""


class HeatcheckWarning(UserWarning):
    """Something that the user should know of, and that stops nothing; the command says it in one line."""


class HeatcheckError(Exception):
    """Base of all errors whose message is meant for the user."""


class InputError(HeatcheckError):
    """Something the user gave cannot be used; known before any work."""


class SpecError(InputError):
    """A study description is wrong."""


class UnknownNameError(InputError):
    """A name that no registry holds."""


class ModelError(InputError):
    """A model or its weights do not fit the study."""


class UntrainedError(ModelError):
    """A fit came to nothing."""


class DivergedError(UntrainedError):
    """The loss of a fit is no longer a number."""


class RunFolderError(InputError):
    """A run folder cannot be written or belongs to other work."""


class CaseError(HeatcheckError):
    """One case cannot be used; `stage` says where it failed."""

    def __init__(self, message: str, *, stage: str = "load") -> None:
        super().__init__(message)
        self.stage = stage


class ConstantChannelError(CaseError):
    """A channel of one case has nothing to be scaled by; `channel` is its place."""

    def __init__(self, channel: int, name: str) -> None:
        super().__init__(
            f"{name} is constant: its pixels other than 0 do not differ, so that it cannot be scaled by them; "
            "check the file",
            stage="prepare",
        )
        self.channel = channel


def briefly(error: BaseException) -> str:
    """What a library says, which may be pages, as a part of one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}…"
