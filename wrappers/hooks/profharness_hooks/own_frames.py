"""The functions of Python that a recording with stacks holds because of the recording itself: of
its start, of the markers at both ends, of its end, and of the hooks' own threads; and what keeps
the start quiet.
"""

from __future__ import annotations

import contextlib
import os
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Iterator, Sequence


def of_threads() -> list[CodeType]:
    """What the hooks' own threads run, under whatever `threading` calls before it."""
    from profharness_hooks.line_sampler import LineSampler
    from profharness_hooks.safe_point import Watch

    return [Watch._follow.__code__, LineSampler._run.__code__]


def count(
    events: Sequence[Any], begun: CodeType, ending: CodeType, threads: Sequence[CodeType]
) -> int:
    """How many of torch's events are functions of Python that started before `begun` first returned
    or since `ending` was last called, or that ran in a thread that calls one of `threads`. Work of
    the device may be late, and is never among them.

    It is 0 where no function of Python was recorded, and for a torch that does not tell them from
    other events.
    """
    try:
        frames = [event for event in events if event.is_python_function()]
        starts, names = [event.start_ns() for event in frames], [event.name() for event in frames]
        begins = [frames[place].end_ns() for place in _places(names, begun)]
        ends = [starts[place] for place in _places(names, ending)]
        ran_in = [event.start_thread_id() for event in frames]
    except AttributeError:
        return 0
    if not begins or not ends:
        return 0
    low, high = min(begins), max(ends)
    ours = {ran_in[place] for code in threads for place in _running(names, code)}
    return sum(
        1 for start, thread in zip(starts, ran_in) if start < low or start >= high or thread in ours
    )


def _places(names: list[str], code: CodeType) -> list[int]:
    """Where a call of this code is among the names. Before its file there is a path that torch
    shortens.
    """
    end = "%s(%d): %s" % (_file(code), code.co_firstlineno, code.co_name)
    return [place for place, name in enumerate(names) if name.endswith(end)]


def _running(names: list[str], code: CodeType) -> list[int]:
    """As _places, also where the call was under way when the recording began: torch then names the
    line that it stood at in place of its first.
    """
    begin, end = "%s(" % _file(code), "): %s" % code.co_name
    return [place for place, name in enumerate(names) if name.endswith(end) and begin in name]


def _file(code: CodeType) -> str:
    return code.co_filename.rpartition("/")[2]


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
