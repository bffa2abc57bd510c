"""When to record: PROFHARNESS_CAPTURE as a plan, and a policy that follows it. Pure: no clock, no
torch, no files.

Steps are counted from 0; `steps=10:30` is steps 10 to 29. The step before the first one is recorded
too, counted and thrown away: it takes the profiler's own start-up, and its events tell how many
steps fit under the cap. Without a plan (`default`) recording starts at the first device work, so
that a short or stepless script has a trace; once WARM_UP steps have passed, the 20 steps after them
replace it.
"""

from __future__ import annotations

import re

WARM_UP = 5
STEPS = 20
SECONDS = 10
PATIENCE = 4
REST_NS = 2 * 10**9
OPEN, CLOSE, CUT = "open", "close", "cut"
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


class Plan:
    """`first` and `last` bound the steps (half-open; unused by `all` and `time`); `after_ns` counts
    from the start of the process.
    """

    def __init__(
        self,
        kind: str,
        first: int = 0,
        last: int = 0,
        after_ns: int = 0,
        for_ns: int | None = None,
    ) -> None:
        self.kind, self.first, self.last = kind, first, last
        self.after_ns, self.for_ns = after_ns, for_ns


def parse(text: str) -> Plan:
    """`default`, `all`, `steps=A:B`, `after=30s,for=10s` (either part alone too). Raises ValueError
    with the reason.
    """
    if text == "default":
        return Plan("default", WARM_UP, WARM_UP + STEPS, for_ns=SECONDS * 10**9)
    if text == "all":
        return Plan("all")
    steps = re.match(r"steps=(\d+):(\d+)$", text)
    if steps:
        first, last = int(steps.group(1)), int(steps.group(2))
        if last <= first:
            raise ValueError("%s holds no step" % text)
        return Plan("steps", first, last)
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if parts and not set(parts) - {"after", "for"}:
        return Plan(
            "time",
            after_ns=duration_ns(parts.get("after", "0s")),
            for_ns=duration_ns(parts["for"]) if "for" in parts else None,
        )
    raise ValueError("%r is none of default, all, steps=A:B, after=30s,for=10s" % text)


def duration_ns(text: str) -> int:
    """A number with ns, us, ms, s or min (seconds without a unit), as whole nanoseconds. Raises
    ValueError.
    """
    match = re.match(r"(\d+)(?:\.(\d{1,9}))?(ns|us|ms|s|min)?$", text)
    if not match:
        raise ValueError("%r is not a time such as 500ms or 30s" % text)
    whole, fraction, unit = match.groups()
    scale = _UNITS_NS[unit or "s"]
    return int(whole) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)


class Policy:
    """Says at each event whether to open, close or cut a window; the caller does it and reports
    back what came out.

    `mode` is what is open, or what would be opened next: wait (nothing), early (a default capture's
    first stretch, replaced once steps are seen), probe (the counted step), main, done. OPEN while
    something is open means: throw that away first. CUT means: export, and go on in a new file.
    """

    def __init__(self, plan: Plan, max_events: int) -> None:
        self.plan, self.max_events = plan, max_events
        self.mode = "wait"
        self.seen_device = False
        self.steps = 0
        self.first_step: int | None = None
        self.last_step = plan.last
        self.deadline_ns: int | None = None
        self.until_ns: int | None = None
        self.resting_until_ns = 0
        self.late = False
        self.patient = False
        """Whether a recording that ends may not be followed by another, so that one before the
        steps asked for is kept on until they come.
        """
        self.truncated = False
        self.reason = ""
        self.events = 0

    def device_work(self, age_ns: int) -> str | None:
        """Called when the first device work (on a CPU: the framework's import) was seen, `age_ns`
        after the process started. Returns what to do.
        """
        self.seen_device = True
        return self._first(age_ns)

    def _first(self, age_ns: int) -> str | None:
        plan = self.plan
        if self.mode != "wait" or not self.seen_device or age_ns < self.resting_until_ns:
            return None
        if plan.kind == "default" and self.steps == 0:
            return self._open("early")
        if plan.kind == "all":
            return self._open("main")
        if plan.kind == "time" and age_ns >= plan.after_ns:
            return self._open("main")
        if plan.kind == "steps" and self.steps == 0 and plan.first <= 1:
            return self._open("probe" if plan.first else "main")
        return None

    def step(self, done: int) -> str | None:
        """Called when `done` steps are complete. Returns what to do before the next one starts."""
        plan, renumbered = self.plan, done < self.steps
        self.steps = done
        if renumbered and self.mode in (
            "main",
            "probe",
        ):  # the script's own marks took over from the optimizer's
            self.mode, self.deadline_ns = "early", None
        if plan.kind not in ("default", "steps") or self.mode == "done":
            return None
        if self.mode == "main":
            return CLOSE if done >= self.last_step else None
        if plan.first <= done and (done < plan.last or plan.kind == "default"):
            return self._open("main")
        return self._open("probe") if done == plan.first - 1 else None

    def tick(self, age_ns: int, grown: int) -> str | None:
        """Called as time passes; `grown` estimates how many events the open window holds. Returns
        what to do.
        """
        if self.mode == "wait":
            return self._first(age_ns)
        if self.mode not in ("early", "main"):
            return None
        if self._over(age_ns):
            return CLOSE
        return CUT if self._too_large(grown) else None

    def _over(self, age_ns: int) -> bool:
        kept_on = self.patient and self.mode == "early" and self.plan.kind == "default"
        return self.deadline_ns is not None and age_ns >= self.deadline_ns and not kept_on

    def _too_large(self, grown: int) -> bool:
        """The estimate counts all memory that the process took: a model and its optimizer, too."""
        kept_on = self.patient and self.mode == "early"
        return grown >= self.max_events * (PATIENCE if kept_on else 1)

    def due(self, age_ns: int, grown: int) -> bool:
        """Whether tick() would have something to do; asked by the thread that only watches."""
        if self.mode == "wait":
            return (
                self.seen_device
                and (self.late or self.plan.kind == "time")
                and age_ns >= max(self.plan.after_ns, self.resting_until_ns)
            )
        return self.mode in ("early", "main") and (self._over(age_ns) or self._too_large(grown))

    @property
    def needs_clock(self) -> bool:
        """Whether a window is open, or will be opened at a time, so that tick() must be called."""
        return self.mode in ("early", "main") or (
            self.mode == "wait" and (self.late or self.plan.kind == "time")
        )

    @property
    def finished(self) -> bool:
        """Whether no further window will be opened."""
        return self.mode == "done"

    def _open(self, mode: str) -> str:
        self.mode, self.deadline_ns = mode, None
        if mode != "early" and self.plan.kind in ("default", "steps"):
            if self.first_step is None:  # what an early stretch held does not concern these steps
                self.events, self.truncated, self.reason = 0, False, ""
            self.first_step = self.steps
        return OPEN

    def postponed(self) -> None:
        """Called when a window could not be opened. It is asked for again at the next step, or by
        the clock where the plan does not go by steps.
        """
        by_steps = self.plan.kind == "steps" or (self.plan.kind == "default" and self.steps > 0)
        self.mode, self.late = "idle" if by_steps else "wait", True

    def opened(self, age_ns: int, probed_events: int | None = None) -> None:
        """Called when the window is open, `age_ns` after the process started (opening the first
        window of a process takes a second). `probed_events` is how many events the probed step
        before it held.
        """
        by_steps = self.plan.kind in ("default", "steps") and self.mode != "early"
        first_step = self.first_step or 0  # set for every window that goes by steps
        if by_steps and self.mode == "main" and first_step > self.plan.first:
            self._begun_late(first_step)
        if not by_steps:
            if self.until_ns is None and self.plan.for_ns is not None:
                self.until_ns = age_ns + self.plan.for_ns
            self.deadline_ns = self.until_ns
        if not by_steps or self.mode != "main" or not probed_events:
            return
        fitting = max(1, self.max_events // probed_events)
        if first_step + fitting < self.last_step:
            self.last_step = first_step + fitting
            self._cap("%d events a step" % probed_events)

    def exported(self, events: int, *, cut: bool) -> bool:
        """Called when the open window has ended with so many events. Returns whether recording
        continues: after a cut, or if nothing was seen yet.
        """
        self.events += events
        if self.events >= self.max_events * 4 // 5:
            self._cap("%d events" % self.events)
            return False
        if self.mode == "early" and events == 0 and not cut:
            self.mode, self.until_ns = "wait", None
            return True
        return cut

    def goes_on(self, age_ns: int, *, cut: bool) -> str | None:
        """What follows a window after which recording continues. An early stretch was cut wherever
        the program happened to be, maybe inside of a range of C++ code, whose end would be written
        into the recording that is gone (see Window.open_ranges): the next one waits for a step, or
        until the program has made none for a while.
        """
        if not cut:
            return self.device_work(age_ns)
        if self.mode != "early":
            return OPEN
        self.mode, self.late, self.resting_until_ns = "wait", True, age_ns + REST_NS
        return None

    def ended(self) -> None:
        """Called when the open window is closed for good. A default capture then still waits for
        steps after its early stretch.
        """
        self.mode = "idle" if self.mode == "early" and self.plan.kind == "default" else "done"

    def window_facts(
        self, mode: str, first_step: int, steps: int, ended: str
    ) -> dict[str, str | int | bool | None]:
        """The sidecar's `window` of an ended recording: what it holds (`steps` of them from
        `first_step` on), and whether that is less than was asked. `ended` says why it ended before
        its time, or is empty.
        """
        by_steps = self.plan.kind in ("default", "steps") and mode != "early"
        short = bool(ended) and (by_steps or self.plan.for_ns is not None)
        return {
            "kind": "steps" if by_steps else "all" if self.plan.kind == "all" else "time",
            "first_step": first_step if by_steps else None,
            "steps": steps if by_steps else None,
            "truncated": self.truncated or short,
            "reason": self.reason or (ended if short else ""),
        }

    def _begun_late(self, first_step: int) -> None:
        """A default capture records its full number of steps a little later. Of steps that were
        asked for by number, the first ones are missing.
        """
        if self.plan.kind == "default":
            self.last_step = first_step + self.plan.last - self.plan.first
        else:
            self.truncated, self.reason = (
                True,
                "begun at step %d: recording could not start before" % first_step,
            )

    def _cap(self, tracer: str) -> None:
        self.truncated, self.reason = (
            True,
            "%s: capped at %d events (PROFHARNESS_MAX_EVENTS)" % (tracer, self.max_events),
        )
