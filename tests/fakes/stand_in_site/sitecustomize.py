"""Stand-in for what a tracer's library does in a Python process: every operator that torch runs
becomes a kernel of the stand-in HIP runtime.

Stands on PYTHONPATH of what a stand-in tool starts; without STAND_IN_TRACER, or the HIP runtime's
own AMD_LOG_LEVEL_FILE, it does nothing. Hands over to the next sitecustomize.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent


def _record(torch: ModuleType) -> None:
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    sys.path.append(str(_HERE.parents[2]))
    hip = importlib.import_module("tests.fakes.stand_in_hip")

    # a class of torch, which is imported late
    class Recorder(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]  # late torch
        def __torch_dispatch__(
            self,
            func: Any,
            types: object,
            args: tuple[object, ...] = (),
            kwargs: dict[str, object] | None = None,
        ) -> object:
            done = func(*args, **(kwargs or {}))
            hip.launch(str(func), dur_ns=2_000)
            return done

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """To skip it means to import the compiler, which takes as long as torch itself."""
            return False

    Recorder().__enter__()


class _AfterTorch:
    """Waits for torch's import, and records from its end on."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]  # as a finder it was put there
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_record(module: ModuleType) -> None:
                load(module)
                _record(module)

            spec.loader.exec_module = load_and_record  # type: ignore[method-assign]  # one loader
        return spec


if os.environ.get("STAND_IN_TRACER") or os.environ.get("AMD_LOG_LEVEL_FILE"):
    sys.meta_path.insert(0, _AfterTorch())  # type: ignore[arg-type]  it is a finder by what it does

sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _HERE]
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401  `site` takes it well where there is none
