"""What one request may ask for, and the error that says what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits", "RequestError"]


@dataclass(frozen=True)
class Limits:
    """What one request may ask for; beyond it the answer is an error that names the limit.

    Attributes
    ----------
    body_bytes : int
        Size of the body.
    rows : int
        Rows (or columns, or pairs) of one request.
    k : int
        Length of a list.
    cells : int
        Cells of a new row or of an update.
    waiting : int
        Requests that wait for an answer at a time; more are told to come back.
    seconds : float
        Time for reading a request, and time for answering it.

    Examples
    --------
    >>> Limits(k=50).k
    50
    """

    body_bytes: int = 1 << 20
    rows: int = 1000
    k: int = 1000
    cells: int = 10_000
    waiting: int = 1000
    seconds: float = 10.0


class RequestError(ValueError):
    """A request that cannot be answered as it is; ``field`` is the part of it that is wrong."""

    def __init__(self, message: str, field: str | None = None, status: int = 422) -> None:
        super().__init__(message)
        self.message, self.field, self.status = message, field, status
