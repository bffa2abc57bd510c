"""`profharness.profile`: a block of this process, recorded by torch's own profiler."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from profharness.errors import OutputExists, Unavailable, UsageError
from profharness.rundir.outputs import make_folder
from profharness.understand.session.recording import Recording

_NAME = "trace.json.gz"


@dataclass(eq=False)
class _State:
    """The profiler while the block runs, and the step that is open."""

    torch: Any
    profiler: Any
    open_step: Any = None
    steps: int = 0
    ended: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Block(Recording):
    """The recording of a block. While the block runs it takes steps; afterwards it is what
    `profharness.read` gives of the trace file, `path`.
    """

    _state: _State = field(kw_only=True)

    @property
    def path(self) -> Path:
        """The trace file, there once the block has ended."""
        return self.paths[0]

    def step(self) -> Step:
        """Begin a step, such as one batch: it ends with the next one, with its own `with` block, or
        with the block that is recorded.

        Raises UsageError when the recording has ended.
        """
        state = self._state
        if state.ended:
            raise UsageError("the recording has ended", "call step() inside of the with block")
        _end_step(state)
        state.open_step = state.torch.profiler.record_function(f"ProfilerStep#{state.steps}")
        state.open_step.__enter__()
        state.steps += 1
        return Step(state, state.steps)

    @property
    def _readable(self) -> tuple[Path, ...]:
        if not self._state.ended:
            raise UsageError("the block is still recorded", "ask for figures when it has ended")
        return self.paths


@dataclass(frozen=True, eq=False)
class Step:
    """A step of a block; as a context manager it ends where its `with` block does."""

    state: _State
    number: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.state.steps == self.number:
            _end_step(self.state)


@contextmanager
def profile(
    folder: str | os.PathLike[str] | None = None,
    *,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
) -> Iterator[Block]:
    """Record the block that stands below it in this process, on the CPU and on the device that
    torch uses. Afterwards the recording has the figures: `recording.hotspots(by="op")`,
    `recording.verdict` and all that `profharness.read` gives. `recording.step()` marks steps.

    The trace is `trace.json.gz` in `folder`, or in a temporary folder that goes with the recording.
    `shapes` records the inputs' shapes, from which the work of operators is known; `stacks` records
    Python's functions and modules, and `memory` the allocator, at a cost.

    Raises Unavailable without torch, OutputExists where the folder holds a trace already, and
    UsageError while another profiler of torch records. An exception of the block goes on; what
    was recorded until then is kept.
    """
    torch = _torch()
    place, temporary = _place(folder)
    has_device = torch.cuda.is_available()
    activity = torch.profiler.ProfilerActivity
    profiler = torch.profiler.profile(
        activities=[activity.CPU, *([activity.CUDA] if has_device else [])],
        record_shapes=shapes,
        with_stack=stacks,
        with_modules=stacks,
        profile_memory=memory,
    )
    state = _State(torch, profiler)
    block = Block((place / _NAME,), _state=state)
    if temporary is not None:
        weakref.finalize(block, temporary.cleanup)
    if has_device:
        torch.cuda.synchronize()  # what was launched before does not belong to the block
    profiler.start()
    try:
        yield block
    finally:
        _end_step(state)
        if has_device:
            torch.cuda.synchronize()
        profiler.stop()
        profiler.export_chrome_trace(str(block.path))
        state.ended, state.profiler = True, None


def _end_step(state: _State) -> None:
    if state.open_step is not None:
        state.open_step.__exit__(None, None, None)
        state.open_step = None


def _torch() -> Any:
    """The torch of this process, which is the user's and no part of the harness. Raises Unavailable
    where there is none, and UsageError while its profiler is on: a second one crashes the process.
    """
    try:
        torch = importlib.import_module("torch")
        importlib.import_module("torch.profiler")
    except ImportError as error:
        raise Unavailable(
            f"profharness.profile records by torch's profiler, and torch cannot be imported "
            f"({error})",
            "install torch here, or record a program by profharness.run([...])",
        ) from error
    with contextlib.suppress(AttributeError):  # torch has no public name for it
        if torch.autograd._profiler_enabled():  # noqa: SLF001
            raise UsageError(
                "torch's profiler is already recording in this process",
                "end that recording first: a process has one",
            )
    return torch


def _place(
    folder: str | os.PathLike[str] | None,
) -> tuple[Path, tempfile.TemporaryDirectory[str] | None]:
    """Where the trace goes, and what removes it where nobody named a folder."""
    if folder is None:
        temporary = tempfile.TemporaryDirectory(prefix="profharness-block-")
        return Path(temporary.name), temporary
    place = Path(folder)
    make_folder(place, "name another folder")
    if (place / _NAME).exists():
        raise OutputExists(f"{place / _NAME} exists", "name another folder, or remove it")
    return place, None
