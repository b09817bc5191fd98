"""Errors and warnings that users can catch by name.

Every error is a ``ValueError`` or a ``TypeError`` as well, so code that knows only
scikit-learn's habits keeps working.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataWarning",
    "DeviceError",
    "DivergedError",
    "DownloadError",
    "DriftWarning",
    "InvalidDataError",
    "ModelFileError",
    "ModelWriteError",
    "NotFittedError",
    "NotInductiveError",
    "NotNumbersError",
    "ParameterError",
    "TooLargeError",
    "UnknownIdError",
    "UnsupportedComposition",
]


class ParameterError(ValueError):
    """A hyper-parameter or argument has a value that is not accepted."""


class InvalidDataError(ValueError):
    """Input data cannot be used; the message names row, column and value."""


class NotNumbersError(InvalidDataError, TypeError):
    """Input holds objects that are no numbers."""


class UnknownIdError(InvalidDataError, KeyError):
    """An id is not in the vocabulary that the model or the data was built with."""

    def __str__(self) -> str:
        # KeyError would print the repr of the message.
        return str(self.args[0]) if self.args else ""


class TooLargeError(InvalidDataError, MemoryError):
    """A dense array above the allowed size would be needed."""


class UnsupportedComposition(TypeError, ValueError):
    """A solver refuses a composition of terms, loss and regulariser, and says why."""


class NotInductiveError(ValueError):
    """The model has nothing to say about rows or columns that it has not seen."""


class DivergedError(ValueError):
    """The objective became NaN or infinite during fitting."""


class ModelFileError(ValueError):
    """A saved model is missing, truncated, altered or written by something else."""


class ModelWriteError(OSError, ModelFileError):
    """The system refused to write a model; ``errno`` says why. What was saved before is still there."""


class DeviceError(ParameterError):
    """A device was asked for that is not there or cannot be used; the message says why."""


class ClusterError(ConnectionError, ValueError):
    """A cluster cannot do the work: scheduler or workers are gone, or lack what is needed."""


class DownloadError(ValueError):
    """A dataset could not be fetched or did not have the expected digest."""


class DriftWarning(UserWarning):
    """An updated model has moved away from what a fit to all cells would give."""


class DataWarning(UserWarning):
    """The data was usable only after a repair, such as merging duplicate cells."""


def __getattr__(name: str) -> Any:
    # scikit-learn takes most of the time of an import, and data and metrics do without it.
    if name in {"ConvergenceWarning", "NotFittedError"}:
        import sklearn.exceptions

        return getattr(sklearn.exceptions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
