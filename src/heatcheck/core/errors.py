"""Everything heatcheck raises on purpose.

HeatcheckError
├── InputError            known before work starts: the command ends with exit code 2
│   ├── SpecError         a study description that cannot be carried out
│   ├── UnknownNameError  a name no registry holds
│   ├── ModelError        weights or a classifier that do not fit
│   │   └── UntrainedError a training that gave no usable weights
│   │       └── DivergedError  its loss is no longer a number
│   └── RunFolderError    an output folder that must not be written
└── CaseError             one case that cannot be used: recorded, and the run goes on
    └── ConstantChannelError  one of its channels has no spread to be scaled by
"""


class HeatcheckWarning(UserWarning):
    """Something the user should know, though the work goes on; the command prints it in one line."""


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
    """A training gave no usable weights."""


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
    """A channel of one case has no spread to be scaled by; `channel` is its index."""

    def __init__(self, channel: int, name: str) -> None:
        super().__init__(
            f"{name} is constant: its pixels other than 0 all have the same value, so that it cannot be normalised; "
            "check the file",
            stage="prepare",
        )
        self.channel = channel


def briefly(error: BaseException) -> str:
    """A library's message, which may be pages long, shortened to fit into one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}…"
