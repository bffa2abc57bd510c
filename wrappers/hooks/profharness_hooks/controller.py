"""Joins the capture policy to torch: opens and closes windows at optimizer steps, by the clock, and
at exit.

Everything runs in the main thread, where torch's profiler has to be started and stopped: inside the
optimizer's step hook, at safe points that a watching thread asks for, and at exit.
"""

import atexit
import os
import threading
import time

from profharness_hooks import open_ranges, optimizers, step_log, windows
from profharness_hooks.capture import CLOSE, CUT, OPEN, Plan, Policy, parse
from profharness_hooks.device import has_device_files, is_device_build, note_devices
from profharness_hooks.safe_point import (
    SafePoint,
    Watch,
    importing,
    monotonic_age_ns,
    resident_bytes,
)

# Resident memory that one recorded event takes before the window ends: 230 bytes without shapes,
# 990 with (torch 2.13).
EVENT_BYTES = 600
WATCH_S = 0.05
HAND_OVER_S = 2.0
LEFT_OPEN = "recording ended inside of a call of torch's, so it could not be started again at once"
AT_EXIT = "the process ended"
IN_BACKWARD = "optimizers step inside of the backward pass: windows begin and end a little late"
OTHER_THREAD = (
    "steps run outside the main thread: windows begin and end a little late, "
    "and hold no operators of that thread"
)
# While steps come this often, windows are closed and cut at their ends only: no range of theirs is
# open there.
PATIENCE_NS = 2 * 10**9


def attach(process, torch):
    """Log steps always; record windows where the torch layer is asked for."""
    steps = step_log.recorder(process)
    optimizers.watch(torch, step_log.guarded(process, steps.optimizer))
    atexit.register(step_log.guarded(process, lambda: note_devices(process, torch)))
    if "torch" not in process.settings.layers:
        return
    if process.settings.levels:
        from profharness_hooks import levels

        if levels.attach(process, torch):
            return
    controller = Controller(process, torch, steps)
    steps.listener = controller.on_step
    controller.begin()


class Controller:
    """Owns this process's windows. Public methods never raise."""

    def __init__(self, process, torch, steps):
        self._process, self._torch, self._steps = process, torch, steps
        self._policy = Policy(self._plan(), process.settings.max_events)
        self._safe_point = SafePoint(self._at_safe_point, self._failed)
        self._watch = Watch(self._look, WATCH_S)
        self._window = None
        self._window_mode = ""
        self._first_step = 0
        self._probed = None
        self._inside_call = False
        self._span = None
        self._files = 0
        self._early_files = []
        self._resident = 0
        self._busy = False
        self._starting = False
        self._waiting_for_device = False
        self._handing_over = False
        self._resume = False
        self._stepped_ns = 0

    def _plan(self):
        try:
            return parse(self._process.settings.capture)
        except ValueError as error:
            self._process.hello.add(
                "messages", "PROFHARNESS_CAPTURE: %s; the default is used" % error
            )
            return Plan("default", 5, 25, for_ns=10 * 10**9)

    def begin(self):
        """Wait for the first device work; on a machine without a device, the framework's import
        counts as that.
        """
        torch = self._torch
        windows.before_other_profilers(self._give_way)
        atexit.register(self.at_exit)
        self._process.on_fork(self._before_fork, self._after_fork, self._in_child)
        if is_device_build(torch) and has_device_files() and hasattr(torch.cuda, "_lazy_call"):
            torch.cuda._lazy_call(self._device_is_used)  # torch has no public name for it
            return
        self._device_seen()

    def _device_is_used(self):
        self._waiting_for_device = True
        self._watch.start()

    def _device_seen(self):
        if _in_main_thread():
            self._guarded(lambda: self._act(self._policy.device_work(self._age_ns())))
        else:
            self._waiting_for_device = True
        self._watch.start()

    # -- events
    # -------------------------------------------------------------------------------------------------------

    def on_step(self, done):
        """`done` steps are complete."""
        if _in_main_thread() and not open_ranges.in_backward(self._torch):
            self._inside_call = (
                False  # the script itself is back from what a safe point may have interrupted
            )
            self._guarded(lambda: self._step(done))
        elif self._window is not None or not self._policy.finished:
            self._process.hello.add("messages", IN_BACKWARD if _in_main_thread() else OTHER_THREAD)
            self._safe_point.request()
            self._watch.start()

    def _step(self, done):
        if self._capturing():
            return
        self._stepped_ns = time.monotonic_ns()
        self._leave_span()
        self._act(self._policy.step(done) or self._policy.tick(self._age_ns(), self._grown()))
        if self._window is not None:
            self._enter_span(done)
            self._watch.start()

    def _at_safe_point(self):
        torch = self._torch
        if importing("torch") or open_ranges.in_backward(torch) or open_ranges.being_marked(torch):
            return  # what is due is asked for again
        self._guarded(self._tick)

    def _tick(self):
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

    def _look(self):
        """In the watching thread: ask for a safe point when something is due. False ends the
        watching.
        """
        due = self._policy.due(self._age_ns(), self._grown())
        if self._waiting_for_device:
            due = not is_device_build(self._torch) or self._torch.cuda.is_initialized()
        behind = self._steps.done != self._policy.steps and not self._policy.finished
        if behind or (due and monotonic_age_ns(self._stepped_ns) > PATIENCE_NS):
            self._safe_point.request()
        return behind or self._waiting_for_device or self._policy.needs_clock

    def at_exit(self):
        """Export what is open: a recording that is still on would crash the interpreter's
        shutdown.
        """
        self._watch.pause()
        if self._window is not None:
            self._guarded(lambda: self._close(AT_EXIT))

    def _guarded(self, function):
        if self._busy:
            return
        self._busy = True
        try:
            function()
        except Exception:  # the workload goes on; what is open is given up
            self._failed()
        finally:
            self._busy = False

    def _failed(self):
        self._process.hello.failed("recording with torch.profiler")
        self._policy.mode = "done"
        try:
            self._drop()
        except Exception:  # it had ended already
            pass

    def _drop(self):
        window, self._window = self._window, None
        if window is not None:
            window.end()
            self._leave_span()
            self._release(window)

    # -- windows
    # ------------------------------------------------------------------------------------------------------

    def _act(self, action):
        if action == OPEN:
            self._reopen()
        elif action in (CLOSE, CUT):
            self._close("", cut=action == CUT)

    def _reopen(self):
        """Throw away what is open and start the next window. Where that is not safe, keep what
        there is, and wait or give up.
        """
        window, self._window = self._window, None
        if window is not None:
            window.end()
            self._leave_span()
            self._probed = window.count() if self._window_mode == "probe" else None
            can_go_on = self._release(window)
            if not can_go_on or self._inside_call:
                self._keep_instead(window)
            if not can_go_on:
                self._policy.mode = "done"
                return
        self._open()
        if self._window is not None:
            self._policy.opened(self._age_ns(), self._probed)

    def _release(self, window):
        """Untie the script from an ended recording. False: a range is open of which nothing tells
        when it ends.
        """
        left = open_ranges.release(self._torch, window.open_ranges())
        self._inside_call = left == open_ranges.OPERATORS
        return left != open_ranges.UNKNOWN

    def _keep_instead(self, window):
        """Export what would have been thrown away; it goes once the asked window is on disk."""
        if self._keep(window, LEFT_OPEN) and window.path not in self._early_files:
            self._early_files.append(window.path)

    def _open(self):
        if self._torch.autograd._profiler_enabled():  # torch has no public name for it
            self._hand_over()
            return
        if self._inside_call:
            self._policy.postponed()
            return
        folder = self._process.settings.folder("torch")
        name = "trace-%d%s.json" % (os.getpid(), "-%d" % self._files if self._files else "")
        device = bool(is_device_build(self._torch) and self._torch.cuda.is_initialized())
        window = windows.Window(
            os.path.join(folder, name),
            device=device,
            all_threads=self._process.settings.all_threads,
        )
        self._starting = True
        try:
            window.start()
        finally:
            self._starting = False
        self._window, self._window_mode = window, self._policy.mode
        self._first_step, self._resident = self._steps.done, resident_bytes()
        if self._policy.mode != "early" and self._steps.done == 0:
            self._enter_span(0)
        note_devices(self._process, self._torch)
        self._process.hello.update(window="open")

    def _close(self, ended, cut=False):
        """End and export the open window. `ended` is why it ended before its time, or empty; after
        a cut it goes on.
        """
        window, mode = self._window, self._window_mode
        if window is None:
            return
        self._window = None
        window.end()
        self._leave_span()  # afterwards: torch warns where it ends before ranges inside of it
        # recording may go on or start again, ours or the script's own
        stuck = ended != AT_EXIT and not self._release(window)
        if cut and mode == "main" and (stuck or self._inside_call):
            self._policy.truncated, self._policy.reason = True, LEFT_OPEN
        events = self._keep(window, ended)
        go_on = self._policy.exported(events, cut=cut)
        if stuck or ended:
            self._policy.mode = "done"
        elif go_on:
            self._act(OPEN if cut else self._policy.device_work(self._age_ns()))
            return
        if mode == "main" and events:
            self._supersede()
        if not stuck:
            self._policy.ended()

    def _keep(self, window, ended):
        """Export an ended window; one without any event leaves no file."""
        window.extra["window"] = self._described(ended)
        events = window.export()
        if events:
            self._files += 1
            self._process.hello.add("windows", os.path.basename(window.path))
            if self._window_mode == "early":
                self._early_files.append(window.path)
        else:
            _remove(window.path)
        self._process.hello.update(window="exported" if self._files else "nothing recorded")
        return events

    def _supersede(self):
        """The asked window is on disk: the early stretch that stood in for it goes."""
        for path in self._early_files:
            _remove(path)
            self._process.hello.facts["windows"].remove(os.path.basename(path))
        self._early_files = []
        self._process.hello.update()

    def _described(self, ended):
        """The sidecar's window: what was recorded, and whether that is less than was asked."""
        policy, plan = self._policy, self._policy.plan
        by_steps = plan.kind in ("default", "steps") and self._window_mode != "early"
        short = bool(ended) and (by_steps or plan.for_ns is not None)
        reason = policy.reason or (ended if short else "")
        return {
            "kind": "steps" if by_steps else "all" if plan.kind == "all" else "time",
            "first_step": self._first_step if by_steps else None,
            "steps": self._steps.done - self._first_step if by_steps else None,
            "truncated": policy.truncated or short,
            "reason": reason,
        }

    # -- ranges, memory, devices
    # --------------------------------------------------------------------------------------

    def _enter_span(self, step):
        self._span = self._window.range("profharness.step:%d" % step)
        self._span.__enter__()
        self._window.own_events += 1

    def _leave_span(self):
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)

    def _grown(self):
        """How many events the open window may hold, by the memory that the process took since;
        other growth counts too.
        """
        return (resident_bytes() - self._resident) // EVENT_BYTES if self._window is not None else 0

    def _age_ns(self):
        return monotonic_age_ns(self._process.settings.start_ns)

    def _capturing(self):
        """A graph is being captured: synchronising now would break it. The next event does what is
        due.
        """
        cuda = self._torch.cuda
        return (
            is_device_build(self._torch)
            and cuda.is_initialized()
            and cuda.is_current_stream_capturing()
        )

    # -- the user's own profiler, and fork
    # ----------------------------------------------------------------------------

    def _give_way(self):
        """Two profilers at once crash the process: when the script starts one, ours ends first, for
        good.
        """
        if not self._starting:
            self._stand_back()
            windows.end_in_child()

    def _stand_back(self):
        if self._policy.mode == "done" and self._window is None:
            return
        if _in_main_thread():
            self._guarded(self._hand_over)
            return
        self._handing_over = True
        until = time.monotonic() + HAND_OVER_S
        while self._handing_over and self._safe_point.request() and time.monotonic() < until:
            time.sleep(0.001)

    def _hand_over(self):
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

    def _before_fork(self):
        self._resume = self._watch.pause()

    def _after_fork(self):
        if self._resume:
            self._watch.start()

    def _in_child(self):
        atexit.unregister(self.at_exit)
        self._window, self._span = None, None
        self._policy.mode = "done"


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()


def _remove(path):
    for name in (path, path + ".profharness.json"):
        try:
            os.remove(name)
        except FileNotFoundError:
            pass
