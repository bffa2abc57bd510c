"""Records a server that profharness did not start, under the torch layer: one window for each level
of the load.

The load generator writes into levels.jsonl when a level begins and ends. It waits until every
process that has announced itself in windows.jsonl has answered there. A thread of our own opens and
closes the windows: a server computes in many threads, which one recording holds together, and its
main thread may sleep for as long as it serves.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time

from profharness_hooks import open_ranges, windows
from profharness_hooks.controller import EVENT_BYTES, HAND_OVER_S
from profharness_hooks.device import is_device_build, note_devices
from profharness_hooks.safe_point import resident_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from profharness_hooks.process import Process


LEVELS, WINDOWS = "levels.jsonl", "windows.jsonl"
LOOK_S = 0.01
END_S = 20.0
# an operator that was under way in one of the program's threads when a recording ended has ended
# after this
CALLS_END_S = 1.0


def attach(process: Process, torch: Any) -> bool:
    """Listen for levels. Returns False where this torch records only the thread that starts a
    window; the whole run is then recorded.
    """
    if not windows.Window("", all_threads=True)._threads():
        return False
    LevelWindows(process, torch).begin()
    return True


class LevelWindows:
    """Owns this process's windows. Public methods never raise."""

    def __init__(self, process: Process, torch: Any) -> None:
        self._process, self._torch = process, torch
        self._folder = process.settings.levels
        self._at = 0
        self._window: windows.Window | None = None
        self._resident = 0
        self._standing_back = False
        self._not_before = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread, and announce that this process listens for levels."""
        windows.before_other_profilers(self._give_way)
        self._process.on_fork(child=self._in_child)
        atexit.register(self.at_exit)
        self._catch_up()
        self._thread = threading.Thread(target=self._follow, name="profharness", daemon=True)
        self._thread.start()
        self._answer("listening")

    def at_exit(self) -> None:
        """End a level under way with the process: the thread that opened its window closes it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(END_S)

    # the thread

    def _follow(self) -> None:
        self._guarded(self._warm_up)
        while not self._stop.wait(LOOK_S):
            self._guarded(self._look)
        self._guarded(lambda: self._close("the process ended"))

    def _warm_up(self) -> None:
        """Make an empty recording first: starting the first one of a process takes a second or
        more, which no level should pay for.
        """
        window = windows.Window("", device=False, all_threads=True)
        window.start()
        self._end(window)
        window.forget()

    def _look(self) -> None:
        if self._standing_back:
            self._close("the program started torch's profiler itself")
            self._stop.set()
            return
        for kind, point in self._lines():
            try:
                if kind == "open":
                    self._close("another level began")
                    self._open(point)
                elif kind == "close":
                    self._close("")
            finally:
                self._answer("opened" if kind == "open" else "closed", point)
        limit = self._process.settings.max_events
        if self._window is not None and (resident_bytes() - self._resident) // EVENT_BYTES >= limit:
            self._close("capped at about %d events (PROFHARNESS_MAX_EVENTS)" % limit)

    def _guarded(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception:  # the server goes on; what is open is given up
            self._window = None
            self._process.hello.failed("recording a level with torch.profiler")

    def _open(self, point: str) -> None:
        if self._stop.is_set():
            return
        folder = self._process.settings.folder("torch")
        device = bool(is_device_build(self._torch) and self._torch.cuda.is_initialized())
        path = os.path.join(folder, "%s-%d.json" % (point, os.getpid()))
        time.sleep(max(0.0, self._not_before - time.monotonic()))
        window = windows.Window(path, point=point, device=device, all_threads=True)
        window.start()
        self._window, self._resident = window, resident_bytes()
        note_devices(self._process, self._torch)
        self._process.hello.update(window="open")

    def _close(self, ended: str) -> None:
        """Export the open window; `ended` is why it ended before its level did, or empty."""
        window, self._window = self._window, None
        if window is None:
            return
        window.extra["window"] = {
            "kind": "all",
            "first_step": None,
            "steps": None,
            "truncated": bool(ended),
            "reason": ended,
        }
        self._end(window)
        if window.export():
            self._process.hello.add("windows", os.path.basename(window.path))
        else:  # this process does not compute
            os.remove(window.path)
            os.remove(window.path + ".profharness.json")
        self._process.hello.update(
            window="exported" if self._process.hello.facts["windows"] else "nothing recorded"
        )

    def _end(self, window: windows.Window) -> None:
        """End a recording, and deal with the ranges still open in it: their ends must not fall into
        the next recording (see open_ranges).
        """
        window.end()
        left = open_ranges.release(self._torch, window.open_ranges())
        window.referred_to = left != open_ranges.NONE
        if left == open_ranges.UNKNOWN:
            self._process.hello.add(
                "messages",
                "a range of the program was open at a level's end, "
                "and nothing tells when it ends: no more levels were recorded",
            )
            self._stop.set()
        elif left == open_ranges.OPERATORS:
            self._not_before = time.monotonic() + CALLS_END_S

    # the conversation

    def _catch_up(self) -> None:
        """Skip what was announced before this process listened. A level under way is recorded from
        now on.
        """
        lines = self._raw().splitlines(True)
        under_way = bool(lines) and b'"kind":"open"' in lines[-1]
        self._at = sum(map(len, lines[:-1] if under_way else lines))

    def _raw(self) -> bytes:
        """Whole lines that have not been read yet."""
        try:
            with open(os.path.join(self._folder, LEVELS), "rb") as file:
                file.seek(self._at)
                text = file.read()
        except FileNotFoundError:
            return b""
        return text[: text.rfind(b"\n") + 1]

    def _lines(self) -> list[tuple[str, str]]:
        """The kind and the point of each of these lines."""
        text = self._raw()
        self._at += len(text)
        announced = []
        for line in text.splitlines():
            try:
                record = json.loads(line.decode("utf-8"))
            except ValueError:
                continue  # another writer's damage says nothing
            if record.get("kind") in ("open", "close"):
                announced.append((record["kind"], str(record.get("id", ""))))
        return announced

    def _answer(self, kind: str, point: str = "") -> None:
        line = (
            json.dumps(
                {"v": 1, "kind": kind, "id": point, "pid": os.getpid()}, separators=(",", ":")
            )
            + "\n"
        )
        with open(os.path.join(self._folder, WINDOWS), "a", encoding="utf-8") as file:
            file.write(line)

    # the user's own profiler, and fork

    def _give_way(self) -> None:
        """End our recording for good before the program starts its own: two profilers at once crash
        the process.
        """
        if threading.current_thread() is not self._thread:
            self._stand_back()

    def _stand_back(self) -> None:
        if not self._standing_back:
            self._process.hello.add(
                "messages", "the program uses torch's profiler itself: ours stood back"
            )
        self._standing_back = True
        until = time.monotonic() + HAND_OVER_S
        while self._window is not None and time.monotonic() < until:
            time.sleep(0.001)

    def _in_child(self) -> None:
        """Record nothing in a forked child, as all hooks do: our thread does not exist there."""
        atexit.unregister(self.at_exit)
        self._window, self._thread = None, None
