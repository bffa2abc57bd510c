"""The one mode that sees every operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

_modes: list[TorchDispatchMode] = []


class TorchDispatchMode:
    """Sees every operator from where it is entered on."""

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        _modes.append(self)
        return self


def call(func: Callable[..., Any], *args: Any) -> Any:
    """An operator, as the mode has it done."""
    return _modes[-1].__torch_dispatch__(func, (), args) if _modes else func(*args)
