"""Marks of points, warm-ups and trials in the recording tools' own ranges, so that each artifact is
cut by point.

In a bare pass there are none: `Marks` is then false and the plain loop of `timing.trials` runs. The
hooks' package writes the ranges: torch_hook (record_function, and the window that records a point),
marks (roctx or NVTX).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
from typing import Any, Callable, ContextManager, Iterator, List, Optional, Sequence

from profharness_workloads.shared.protocol import Settings

FRAMEWORKS = ("torch", "onnxruntime")
WRAPPERS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOOKS = os.path.join(WRAPPERS, "hooks")

Span = Callable[[str], ContextManager[Any]]


class Marks:
    """How the spans of one pass are written. `window` opens a recording of one point at a path."""

    def __init__(
        self,
        spans: Sequence[Span] = (),
        outer: Sequence[Span] = (),
        window: Optional[Callable[..., Any]] = None,
    ):
        self._spans, self._outer, self._window = tuple(spans), tuple(outer), window

    def __bool__(self) -> bool:
        return bool(self._spans)

    def warm_up_span(self, point_id: str) -> Callable[[int], ContextManager[Any]]:
        """Only in tools that record the whole process: a point's own window opens after the
        warm-up.
        """
        return lambda i: _all(self._outer, "profharness.warmup:%s:%d" % (point_id, i))

    def trial_span(self, point_id: str) -> Callable[[int], ContextManager[Any]]:
        return lambda i: _all(self._spans, "profharness.trial:%s:%d" % (point_id, i))

    @contextlib.contextmanager
    def point(self, point_id: str, settings: Settings) -> Iterator[None]:
        """The span of a point's trials, inside its window when the framework records."""
        window = None
        if self._window is not None:
            window = self._window(settings.artifact("torch", "%s.json" % point_id), point=point_id)
            window.start()
        try:
            with _all(self._spans, "profharness.point:%s" % point_id):
                yield
        finally:
            if window is not None:
                window.stop()


def _all(spans: Sequence[Span], name: str) -> ContextManager[Any]:
    if not spans:
        return contextlib.nullcontext()
    if len(spans) == 1:
        return spans[0](name)
    stack = contextlib.ExitStack()
    for span in spans:
        stack.enter_context(span(name))
    return stack


def open_marks(settings: Settings, framework: str, *, all_threads: bool = False) -> Marks:
    """What a worker of `framework` marks in this pass: nothing in a bare one.

    `all_threads`: its models run in other threads than the one that opens the windows.
    """
    spans: List[Span] = []
    outer: List[Span] = []
    window = None
    if framework == "torch" and "torch" in settings.layers:
        torch_hook = importlib.import_module(hook("torch_hook"))
        spans.append(torch_hook.span)
        window = (
            functools.partial(torch_hook.Window, all_threads=True)
            if all_threads
            else torch_hook.Window
        )
    if settings.traced or any(layer not in FRAMEWORKS for layer in settings.layers):
        outer = _tool_ranges()
    return Marks(spans + outer, outer, window)


def hook(name: str) -> str:
    """Make a module of the hooks importable, behind everything else on the path; returns its full
    name.
    """
    if HOOKS not in sys.path:
        sys.path.append(HOOKS)
    return "profharness_hooks.%s" % name


def _tool_ranges() -> List[Span]:
    """Ranges of roctx or NVTX when their library is there. Loaded by its path, so that sys.path
    stays as it is.
    """
    path = os.path.join(HOOKS, "profharness_hooks", "marks.py")
    spec = importlib.util.spec_from_file_location("profharness_hooks.marks", path)
    if spec is None or spec.loader is None:
        return []
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        if not module.libraries():
            return []
    except OSError:
        return []  # the hooks did not travel with the workers

    @contextlib.contextmanager
    def span(name: str) -> Iterator[None]:
        tokens = module.start(name)
        try:
            yield
        finally:
            module.stop(tokens)

    return [span]
