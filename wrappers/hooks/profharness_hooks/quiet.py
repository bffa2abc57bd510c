"""Keeps torch's profiler from speaking into the program's stderr when we start it."""

from __future__ import annotations

import contextlib
import os
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Around the start of a recording: without Kineto's greeting, and without the warning by which
    torch 2.10 and 2.11 tell every user of the profiler that a further cycle would clear the events
    of this one (each of our recordings has one cycle).

    The filter of warnings is put back for the program's own use.
    """
    with _quiet_kineto(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
        yield


@contextlib.contextmanager
def _quiet_kineto() -> Iterator[None]:
    """Kineto reads its log level when it first starts; the level is put back for the user's own
    use.
    """
    if "KINETO_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["KINETO_LOG_LEVEL"] = "6"
    try:
        yield
    finally:
        os.environ.pop("KINETO_LOG_LEVEL", None)
