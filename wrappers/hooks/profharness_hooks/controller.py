"""Joins the capture policy to torch: opens and closes windows at optimizer steps, by the clock, and
at exit.

Everything runs in the main thread, where torch's profiler has to be started and stopped: inside the
optimizer's step hook, at safe points that a watching thread asks for, and at exit.
"""

from __future__ import annotations

import atexit
import time

from profharness_hooks import open_ranges, process_groups, step_log, windows
from profharness_hooks.capture import CLOSE, CUT, OPEN, Plan, Policy, parse
from profharness_hooks.device import has_device_files, is_device_build, note_devices
from profharness_hooks.safe_point import (
    SafePoint,
    Watch,
    importing,
    in_main_thread,
    monotonic_age_ns,
    resident_bytes,
)
from profharness_hooks.window_files import WindowFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from profharness_hooks.process import Process


# Resident memory that one recorded event takes before the window ends: 230 bytes without shapes,
# 990 with (torch 2.13).
EVENT_BYTES = 600
WATCH_S = 0.05
HAND_OVER_S = 2.0
LEFT_OPEN = "recording ended inside of a call of torch's, so it could not be started again at once"
STUCK = (
    "recording ended inside of a range that torch does not end by itself, so it could not be "
    "started again: no later step was recorded"
)
AT_EXIT = "the process ended"
IN_BACKWARD = "optimizers step inside of the backward pass: windows begin and end a little late"
OTHER_THREAD = (
    "steps run outside the main thread: windows begin and end a little late, "
    "and hold no operators of that thread"
)
# While steps come this often, windows are closed and cut at their ends only: no range of theirs is
# open there.
PATIENCE_NS = 2 * 10**9


class Controller:
    """Owns this process's windows. Public methods never raise."""

    def __init__(self, process: Process, torch: Any, steps: step_log.Recorder) -> None:
        self._process, self._torch, self._steps = process, torch, steps
        self._policy = Policy(self._plan(), process.settings.max_events)
        self._safe_point = SafePoint(self._at_safe_point, self._failed)
        self._watch = Watch(self._look, WATCH_S)
        self._window: windows.Window | None = None
        self._window_mode = ""
        self._first_step = 0
        self._lead_in = False
        self._probed: int | None = None
        self._inside_call = False
        self._span: Any = None
        self._files = WindowFiles(process)
        self._resident = 0
        self._busy = False
        self._starting = False
        self._waiting_for_device = False
        self._handing_over = False
        self._resume = False
        self._stepped_ns = 0

    def _plan(self) -> Plan:
        try:
            return parse(self._process.settings.capture)
        except ValueError as error:
            self._process.hello.add(
                "messages", "PROFHARNESS_CAPTURE: %s; the default is used" % error
            )
            return Plan("default", 5, 25, for_ns=10 * 10**9)

    def begin(self) -> None:
        """Wait for the first device work. On a machine without a device, the framework's import
        counts as device work.
        """
        torch = self._torch
        windows.before_other_profilers(self._give_way)
        atexit.register(self.at_exit)
        self._process.on_fork(self._before_fork, self._after_fork, self._in_child)
        if is_device_build(torch) and has_device_files() and hasattr(torch.cuda, "_lazy_call"):
            torch.cuda._lazy_call(self._device_is_used)  # torch has no public name for it
            return
        self._device_seen()

    def _device_is_used(self) -> None:
        self._waiting_for_device = True
        self._watch.start()

    def _device_seen(self) -> None:
        if in_main_thread():
            self._guarded(lambda: self._act(self._policy.device_work(self._age_ns())))
        else:
            self._waiting_for_device = True
        self._watch.start()

    # events

    def on_step(self, done: int) -> None:
        """Called when `done` steps are complete: acts at once in the main thread outside of a
        backward pass, and at a safe point otherwise.
        """
        if in_main_thread() and not open_ranges.in_backward(self._torch):
            # the script itself is back from what a safe point may have interrupted
            self._inside_call = False
            self._guarded(lambda: self._step(done))
        elif self._window is not None or not self._policy.finished:
            self._process.hello.add("messages", IN_BACKWARD if in_main_thread() else OTHER_THREAD)
            self._safe_point.request()
            self._watch.start()

    def _step(self, done: int) -> None:
        if self._capturing():
            return
        if self._span is not None and done == self._policy.steps:
            return  # a safe point came between the count of this step and the word of it
        self._stepped_ns = time.monotonic_ns()
        self._leave_span()
        self._policy.patient = process_groups.in_use()
        self._act(self._policy.step(done) or self._policy.tick(self._age_ns(), self._grown()))
        if self._window is not None:
            self._enter_span(self._window, done)
            self._watch.start()

    def _at_safe_point(self) -> None:
        torch = self._torch
        if importing("torch") or open_ranges.in_backward(torch) or open_ranges.being_marked(torch):
            return  # what is due is asked for again
        self._guarded(self._tick)

    def _tick(self) -> None:
        if self._capturing():
            return
        if self._handing_over:
            self._hand_over()
        elif self._waiting_for_device:
            self._waiting_for_device = False
            self._act(self._policy.device_work(self._age_ns()))
        elif self._steps.done != self._policy.steps:
            self._step(self._steps.done)
        else:
            self._act(self._policy.tick(self._age_ns(), self._grown()))

    def _look(self) -> bool:
        """Runs in the watching thread and asks for a safe point when something is due. Returns
        False to end the watching.
        """
        due = self._policy.due(self._age_ns(), self._grown())
        if self._waiting_for_device:
            due = not is_device_build(self._torch) or self._torch.cuda.is_initialized()
        behind = self._steps.done != self._policy.steps and not self._policy.finished
        if behind or (due and monotonic_age_ns(self._stepped_ns) > PATIENCE_NS):
            self._safe_point.request()
        return behind or self._waiting_for_device or self._policy.needs_clock

    def at_exit(self) -> None:
        """Export what is open: a recording that is still on would crash the interpreter's
        shutdown.
        """
        self._watch.pause()
        if self._window is not None:
            self._guarded(lambda: self._close(AT_EXIT))

    def _guarded(self, function: Callable[[], None]) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            function()
        except Exception:  # the workload goes on; what is open is given up
            self._failed()
        finally:
            self._busy = False

    def _failed(self) -> None:
        self._process.hello.failed("recording with torch.profiler")
        self._policy.mode = "done"
        try:
            self._drop()
        except Exception:  # it had ended already
            pass

    def _drop(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.end()
            self._leave_span()
            self._release(window)

    # windows

    def _act(self, action: str | None) -> None:
        if action == OPEN:
            self._reopen()
        elif action in (CLOSE, CUT):
            self._close("", cut=action == CUT)

    def _reopen(self) -> None:
        """Discard the open recording and start the next window. Where discarding is not safe, keep
        the recording, and start later or not at all.
        """
        if self._window is not None and self._policy.patient and self._policy.mode == "main":
            self._go_on()
            return
        window, self._window = self._window, None
        if window is not None:
            window.end()
            self._leave_span(window)
            self._probed = window.count() if self._window_mode == "probe" else None
            can_go_on = self._release(window)
            self._put_away(window)
            if not can_go_on:
                self._process.hello.add("messages", STUCK)
                self._policy.mode = "done"
                return
        if self._open() is not None:
            self._policy.opened(self._age_ns(), self._probed)

    def _go_on(self) -> None:
        """Make the open recording the asked window. Threads of torch's own end the ranges of
        collectives, at times a moment after the step, and then no other recording may be open; so
        in a job of several ranks none is thrown away. The sidecar tells readers to leave out what
        came before the first step.
        """
        self._window_mode, self._first_step, self._lead_in = "main", self._steps.done, True
        self._policy.opened(self._age_ns())

    def _release(self, window: windows.Window) -> bool:
        """Renew the script's ranges that still refer to an ended recording. Returns False when a
        range is open and nothing tells when it will end.
        """
        left = open_ranges.release(self._torch, window.open_ranges())
        window.referred_to = left != open_ranges.NONE
        self._inside_call = left == open_ranges.OPERATORS
        return left != open_ranges.UNKNOWN

    def _put_away(self, window: windows.Window) -> None:
        """Free a recording; one still in use becomes a file until the asked window is on disk."""
        if not window.referred_to:
            window.forget()
        elif self._keep(window, LEFT_OPEN):
            self._files.replace_later(window.path)

    def _open(self) -> windows.Window | None:
        """Start the next window; None where that is not possible now."""
        if self._torch.autograd._profiler_enabled():  # torch has no public name for it
            self._hand_over()
            return None
        if self._inside_call:
            self._policy.postponed()
            return None
        path = self._files.next_path()
        device = bool(is_device_build(self._torch) and self._torch.cuda.is_initialized())
        window = windows.Window(path, device=device, all_threads=self._process.settings.all_threads)
        self._starting = True
        try:
            window.start()
        finally:
            self._starting = False
        self._window, self._window_mode, self._lead_in = window, self._policy.mode, False
        self._first_step, self._resident = self._steps.done, resident_bytes()
        if self._policy.mode != "early" and self._steps.done == 0:
            self._enter_span(window, 0)
        if self._policy.mode == "main" and self._steps.host_begin is not None:
            self._steps.host_begin()
        note_devices(self._process, self._torch)
        self._process.hello.update(window="open")
        return window

    def _close(self, ended: str, cut: bool = False) -> None:
        """End and export the open window. `ended` is why it ended before its time, or empty; after
        a cut recording goes on.
        """
        window, mode = self._window, self._window_mode
        if window is None:
            return
        self._window = None
        window.end()
        self._leave_span(window)  # afterwards: torch warns where it ends before ranges inside of it
        # recording may go on or start again, ours or the script's own
        stuck = ended != AT_EXIT and not self._release(window)
        if cut and mode == "main" and (stuck or self._inside_call):
            self._policy.truncated, self._policy.reason = True, LEFT_OPEN
        events = self._keep(window, ended)
        go_on = self._policy.exported(events, cut=cut)
        if stuck or ended:
            if stuck and mode != "main" and not ended:
                self._process.hello.add("messages", STUCK)
            self._policy.mode = "done"
        elif go_on:
            self._act(self._policy.goes_on(self._age_ns(), cut=cut))
            return
        if mode == "main" and events:
            self._files.remove_early()
        if not stuck:
            self._policy.ended()

    def _keep(self, window: windows.Window, ended: str) -> int:
        """Export an ended window; its number of events. One without any leaves no file."""
        facts = self._policy.window_facts(
            self._window_mode, self._first_step, self._steps.done - self._first_step, ended
        )
        if self._lead_in:
            facts["lead_in"] = True
        if window.unfinished_step is not None:
            facts["unfinished_step"] = window.unfinished_step
        window.extra["window"] = facts
        return self._files.keep(window, early=self._window_mode == "early")

    # ranges, memory, devices

    def _enter_span(self, window: windows.Window, step: int) -> None:
        self._span = window.range("profharness.step:%d" % step)
        self._span.__enter__()
        window.own_events += 1

    def _leave_span(self, ended: windows.Window | None = None) -> None:
        """End the range of the step, which is not over where its window has `ended`."""
        span, self._span = self._span, None
        if span is not None:
            if ended is not None:
                ended.unfinished_step = self._steps.done
            span.__exit__(None, None, None)

    def _grown(self) -> int:
        """About how many events the open window holds, by all memory that was taken since."""
        return (resident_bytes() - self._resident) // EVENT_BYTES if self._window is not None else 0

    def _age_ns(self) -> int:
        return monotonic_age_ns(self._process.settings.start_ns)

    def _capturing(self) -> bool:
        """Whether a device graph is being captured. Synchronising now would break the graph, so the
        next event does what is due.
        """
        cuda = self._torch.cuda
        return bool(
            is_device_build(self._torch)
            and cuda.is_initialized()
            and cuda.is_current_stream_capturing()
        )

    # the user's own profiler, and fork

    def _give_way(self) -> None:
        """End our recording for good before the script starts its own: two profilers at once crash
        the process.
        """
        if not self._starting:
            self._stand_back()
            windows.end_in_child()

    def _stand_back(self) -> None:
        if self._policy.mode == "done" and self._window is None:
            return
        if in_main_thread():
            self._guarded(self._hand_over)
            return
        self._handing_over = True
        until = time.monotonic() + HAND_OVER_S
        while self._handing_over and self._safe_point.request() and time.monotonic() < until:
            time.sleep(0.001)

    def _hand_over(self) -> None:
        self._handing_over = False
        self._process.hello.add(
            "messages", "the script uses torch's profiler itself: ours stood back"
        )
        if self._window_mode == "main":
            self._close("the script started torch's profiler itself")
        else:
            self._drop()
            self._process.hello.update(window="stood back")
        self._policy.mode = "done"

    def _before_fork(self) -> None:
        self._resume = self._watch.pause()

    def _after_fork(self) -> None:
        if self._resume:
            self._watch.start()

    def _in_child(self) -> None:
        atexit.unregister(self.at_exit)
        self._window, self._span = None, None
        self._policy.mode = "done"
