"""`--capture steps=A:B` for AMD's tracer, which was started with its selected-regions option: it
records nothing until told to.

Recording is resumed before step A and paused after the step before B, as the recorder of steps
counts them. What the device still does of those steps when recording is paused was launched in them
and is recorded.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profharness_hooks.process import Process


# what rocprofv3 sets for the program that it starts: the tool's own Python, in which the hooks load
# too, has no say
_TRACED = ("ROCPROF_SELECTED_REGIONS", "ROCP_TOOL_LIBRARIES")


class Region:
    """Follows the steps of this process. `first` and `last` bound them, the last one not
    included.
    """

    def __init__(self, process: Process, first: int, last: int) -> None:
        self._process, self._first, self._last = process, first, last
        self._open = False

    def step(self, done: int) -> None:
        """Called when `done` steps are complete: pauses or resumes recording where that is due."""
        wanted = self._first <= done < self._last
        if wanted == self._open:
            return
        from profharness_hooks import marks

        tell = marks.resume_recording if wanted else marks.pause_recording
        if not tell():
            self._process.hello.add(
                "messages",
                "no library with roctxProfilerResume could be loaded: "
                "the tracer was never told to record",
            )
            self._first = self._last = 0
            return
        self._open = wanted
        self._process.hello.update(region="open" if wanted else "closed")


def region(process: Process) -> Region | None:
    """The region that PROFHARNESS_REGIONS asks for (`10:30`). None where it asks for none, or where
    no tracer listens in this process.
    """
    first, _, last = process.settings.regions.partition(":")
    is_traced = any(os.environ.get(name) for name in _TRACED)
    return (
        Region(process, int(first), int(last))
        if is_traced and first.isdigit() and last.isdigit()
        else None
    )
