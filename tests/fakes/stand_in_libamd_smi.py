"""A stand-in for AMD's libamd_smi.so in Python, so that the real amdsmi package runs without the
library.

`install(devices)` answers every load of a library of that name. A device is a dict from the C
function's name to what the function fills in: fields of its structure by name, or one number; all
other fields hold ones, as the driver leaves them. Functions that no device names answer 2 (not
supported).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

_SOCKET, _PROCESSOR = 0x1000, 0x2000
_NOT_SUPPORTED = 2


def _fill_with_ones(place: Any) -> None:
    ctypes.memset(ctypes.byref(place), 0xFF, ctypes.sizeof(place))


def _put(place: Any, values: Mapping[str, Any]) -> None:
    """Fields that this version of the structure has."""
    for name, value in values.items():
        if not hasattr(place, name):
            continue
        if isinstance(value, Mapping):
            _put(getattr(place, name), value)
        elif isinstance(value, Sequence):
            array = getattr(place, name)
            for index, one in enumerate(value[: len(array)]):
                array[index] = one
        else:
            setattr(place, name, value)


class _Function:
    """One C function: callable, and with the attributes that the package sets."""

    def __init__(self, library: Library, name: str) -> None:
        self.restype: Any = None
        self.argtypes: Any = None
        self._library = library
        self._name = name

    def __call__(self, *arguments: Any) -> int:
        return self._library.call(self._name, arguments)


class Library:
    def __init__(self, devices: Sequence[Mapping[str, Any]]) -> None:
        self._devices = devices
        self._functions: dict[str, _Function] = {}

    def __getattr__(self, name: str) -> _Function:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._functions.setdefault(name, _Function(self, name))

    def call(self, name: str, arguments: Sequence[Any]) -> int:
        own = getattr(self, f"_{name}", None) if name in _HANDLED else None
        if own is not None:
            own(*arguments)
            return 0
        handle = getattr(arguments[0], "value", arguments[0]) if arguments else 0
        place = (handle or _PROCESSOR) - _PROCESSOR
        answer = self._devices[place].get(name) if 0 <= place < len(self._devices) else None
        if answer is None:
            return _NOT_SUPPORTED
        target = arguments[-1]._obj
        if isinstance(answer, Mapping):
            _fill_with_ones(target)
            _put(target, answer)
        else:
            target.value = answer
        return 0

    def _amdsmi_init(self, *_: Any) -> None:
        return

    _amdsmi_shut_down = _amdsmi_init

    def _amdsmi_get_socket_handles(self, count: Any, handles: Any) -> None:
        if not handles:
            count._obj.value = len(self._devices)
            return
        for place in range(len(self._devices)):
            handles[place] = _SOCKET + place

    def _amdsmi_get_processor_handles(self, socket: Any, count: Any, handles: Any) -> None:
        if not handles:
            count._obj.value = 1
            return
        handles[0] = getattr(socket, "value", socket) - _SOCKET + _PROCESSOR

    def _amdsmi_get_processor_type(self, _handle: Any, kind: Any) -> None:
        kind._obj.value = 1  # an AMD GPU


_HANDLED = frozenset(
    {
        "amdsmi_init",
        "amdsmi_shut_down",
        "amdsmi_get_socket_handles",
        "amdsmi_get_processor_handles",
        "amdsmi_get_processor_type",
    }
)


def install(devices: Sequence[Mapping[str, Any]]) -> None:
    real = ctypes.CDLL
    library = Library(devices)

    def load(name: Any, *arguments: Any, **options: Any) -> Any:
        return library if "libamd_smi" in str(name) else real(name, *arguments, **options)

    ctypes.CDLL = load  # type: ignore[assignment, misc] # that is the point
