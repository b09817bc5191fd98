"""Where kernels run: names of devices, what is free there, and the provider that serves one."""

from __future__ import annotations

import os
import re
import warnings
from functools import cache
from typing import Any

import numpy as np

from unseen.exceptions import DeviceError, ParameterError, TooLargeError
from unseen.kernels.providers import HostProvider, Provider

__all__ = [
    "beside",
    "check_device",
    "check_memory",
    "device_facts",
    "get_provider",
    "module_of",
    "owner",
    "provider_for",
    "to_host",
]

DEVICES = "None, 'cpu', 'cuda', 'cuda:N' or 'auto'"
PROVIDERS = ("native", "reference", "twin", "cuda")


def check_device(device: Any, name: str = "device") -> str:
    """The device that is asked for.

    Parameters
    ----------
    device : None or str
        "cpu", "cuda", "cuda:N" or "auto". None asks the environment variable ``UNSEEN_DEVICE``, and is the
        CPU where that is not set.
    name : str
        What the message calls it.

    Returns
    -------
    str
        ``"cpu"``, ``"cuda:N"`` or ``"auto"``.

    Examples
    --------
    >>> from unseen.kernels import check_device
    >>> check_device("cuda")
    'cuda:0'
    """
    if device is None:
        return check_device(os.environ.get("UNSEEN_DEVICE") or "cpu", "UNSEEN_DEVICE")
    if device in ("cpu", "auto"):
        return str(device)
    found = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise ParameterError(f"{name} must be {DEVICES}, got {device!r}")
    return f"cuda:{found.group(1) or 0}"


def check_memory(needed: float, free: float, device: str = "cuda:0") -> None:
    """Refuse what does not fit, before anything is sent.

    Parameters
    ----------
    needed, free : float
        Bytes.
    device : str
        Its name, for the message.

    Raises
    ------
    TooLargeError
        If more is needed than is free.

    Examples
    --------
    >>> from unseen.kernels import check_memory
    >>> check_memory(18.3e9, 14.9e9, "cuda:0")
    Traceback (most recent call last):
    ...
    unseen.exceptions.TooLargeError: this needs 18.3 GB on cuda:0, and 14.9 GB are free there; ...
    """
    if needed > free:
        raise TooLargeError(
            f"this needs {needed / 1e9:.3g} GB on {device}, and {free / 1e9:.3g} GB are free there; take "
            "fewer cells or a smaller rank, or device='cpu'"
        )


def get_provider(name: str, *, device: int = 0) -> Provider:
    """A provider of kernels by its name.

    Parameters
    ----------
    name : {"native", "reference", "twin", "cuda"}
        Compiled code, its NumPy twins, the device code as NumPy, or a GPU.
    device : int, default=0
        Number of the GPU.

    Returns
    -------
    Provider

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import get_provider
    >>> twin = get_provider("twin")
    >>> cells = twin.pattern(np.array([0, 1, 2]), np.array([1, 0]), n_cols=2)
    >>> twin.sddmm(cells, np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 2.])
    """
    if name not in PROVIDERS:
        raise ParameterError(f"provider must be one of {', '.join(map(repr, PROVIDERS))}; got {name!r}")
    if name in ("native", "reference"):
        return HostProvider(name)
    if name == "twin":
        from unseen.kernels.twin import twin_provider

        return twin_provider()
    return _cuda(device)


def provider_for(device: Any, *, n_threads: int = 1) -> Provider:
    """The provider that serves a device; never another one than was asked for.

    Parameters
    ----------
    device : None or str
        As in :func:`check_device`. "auto" takes the first GPU, and says once where there is none.
    n_threads : int, default=1
        Threads on the CPU.

    Returns
    -------
    Provider

    Examples
    --------
    >>> from unseen.kernels import provider_for
    >>> provider_for("cpu").device
    'cpu'
    """
    wanted = check_device(device)
    if wanted == "cpu":
        return HostProvider(n_threads=n_threads)
    if wanted == "auto":
        try:
            return _cuda(0)
        except DeviceError as error:
            _say_once(str(error))
            return HostProvider(n_threads=n_threads)
    return _cuda(int(wanted.removeprefix("cuda:")))


def owner(array: Any) -> Provider | None:
    """The provider of the device that an array lives on; None for NumPy arrays."""
    if isinstance(array, np.ndarray) or not type(array).__module__.startswith("cupy"):
        return None
    return _cuda(int(array.device.id))


def to_host(array: Any) -> Any:
    """The array as NumPy, wherever it lives."""
    place = owner(array)
    return array if place is None else place.to_host(array)


def beside(array: Any, near: Any) -> Any:
    """The array where ``near`` lives."""
    place = owner(near)
    return array if place is None else place.asarray(array)


def module_of(array: Any) -> Any:
    """NumPy, or what takes its place where the array lives."""
    place = owner(array)
    return np if place is None else place.xp


def device_facts() -> dict[str, Any]:
    """What computes here: provider and instruction set on the CPU, name, memory and driver of a GPU."""
    from unseen import kernels

    facts: dict[str, Any] = {
        "provider": kernels.provider(),
        "isa": kernels.isa(),
        "default_device": check_device(None),
    }
    try:
        facts["cuda"] = _cuda(0).facts()
    except DeviceError as error:
        facts["cuda"] = None
        facts["no_cuda"] = str(error)
    return facts


@cache
def _say_once(reason: str) -> None:
    warnings.warn(f"device='auto' computes on the CPU: {reason}", RuntimeWarning, stacklevel=5)


def _cuda(number: int) -> Provider:
    from unseen.kernels.cuda.provider import cuda_provider

    return cuda_provider(number)
