"""Modules of this package under the names by which profharness_mark knows them: the same module
objects, not second copies.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import spec_from_loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def spec(name: str, module: str) -> ModuleSpec | None:
    """A specification of `name` which loads the module `module` of this package."""
    loader: Any = _SecondName(module)  # no subclass of importlib.abc.Loader, which costs an import
    return spec_from_loader(name, loader)


class _SecondName:
    """Loads a module of this package under another name."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._spec: ModuleSpec | None = None

    def create_module(self, _spec: ModuleSpec) -> ModuleType:
        module = import_module("%s.%s" % (__package__, self._module))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import system has replaced by the other name's
