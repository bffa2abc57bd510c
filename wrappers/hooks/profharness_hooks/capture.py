"""When to record: PROFHARNESS_CAPTURE as a plan, and a policy that follows it. Pure: no clock, no
torch, no files.

Steps are counted from 0; `steps=10:30` is steps 10 to 29. The step before the first one is recorded
too, counted and thrown away: it takes the profiler's own start-up, and its events tell how many
steps fit under the cap. Without a plan (`default`) recording starts at the first device work, so
that a short or stepless script has a trace; once WARM_UP steps have passed, the 20 steps after them
replace it.
"""

import re

WARM_UP = 5
STEPS = 20
SECONDS = 10
OPEN, CLOSE, CUT = "open", "close", "cut"
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


class Plan:
    """`first` and `last` bound the steps (half-open); `after_ns` counts from the start of the
    process.
    """

    def __init__(self, kind, first=0, last=None, after_ns=0, for_ns=None):
        self.kind, self.first, self.last, self.after_ns, self.for_ns = (
            kind,
            first,
            last,
            after_ns,
            for_ns,
        )


def parse(text):
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


def duration_ns(text):
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

    def __init__(self, plan, max_events):
        self.plan, self.max_events = plan, max_events
        self.mode = "wait"
        self.seen_device = False
        self.steps = 0
        self.first_step = None
        self.last_step = plan.last
        self.deadline_ns = self.until_ns = None
        self.late = False
        self.truncated = False
        self.reason = ""
        self.events = 0

    def device_work(self, age_ns):
        """The first device work (or the framework's import, on a CPU) was seen, `age_ns` after the
        process started.
        """
        self.seen_device = True
        return self._first(age_ns)

    def _first(self, age_ns):
        plan = self.plan
        if self.mode != "wait" or not self.seen_device:
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

    def step(self, done):
        """`done` steps are complete. Returns what to do before the next one starts."""
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

    def tick(self, age_ns, grown):
        """Time has passed; `grown` is the estimate of how many events the open window holds."""
        if self.mode == "wait":
            return self._first(age_ns)
        if self.mode not in ("early", "main"):
            return None
        if self.deadline_ns is not None and age_ns >= self.deadline_ns:
            return CLOSE
        return CUT if grown >= self.max_events else None

    def due(self, age_ns, grown):
        """Whether tick() would have something to do; for the thread that only watches."""
        if self.mode == "wait":
            return (
                self.seen_device
                and (self.late or self.plan.kind == "time")
                and age_ns >= self.plan.after_ns
            )
        over = self.deadline_ns is not None and age_ns >= self.deadline_ns
        return self.mode in ("early", "main") and (over or grown >= self.max_events)

    @property
    def needs_clock(self):
        """Something is open, or is to be opened at a time."""
        return self.mode in ("early", "main") or (
            self.mode == "wait" and (self.late or self.plan.kind == "time")
        )

    @property
    def finished(self):
        """Nothing will be opened any more."""
        return self.mode == "done"

    def _open(self, mode):
        self.mode, self.deadline_ns = mode, None
        if mode != "early" and self.plan.kind in ("default", "steps"):
            if self.first_step is None:  # what an early stretch met is not these steps' matter
                self.events, self.truncated, self.reason = 0, False, ""
            self.first_step = self.steps
        return OPEN

    def postponed(self):
        """What was to be opened could not be, now: it is asked for again, at the next step or,
        where none is waited for, by the clock.
        """
        by_steps = self.plan.kind == "steps" or (self.plan.kind == "default" and self.steps > 0)
        self.mode, self.late = "idle" if by_steps else "wait", True

    def opened(self, age_ns, probed_events=None):
        """The window is open now (the first one of a process takes a second); the probe before it
        held so many events.
        """
        by_steps = self.plan.kind in ("default", "steps") and self.mode != "early"
        if by_steps and self.mode == "main" and self.first_step > self.plan.first:
            self._begun_late()
        if not by_steps:
            if self.until_ns is None and self.plan.for_ns is not None:
                self.until_ns = age_ns + self.plan.for_ns
            self.deadline_ns = self.until_ns
        if not by_steps or self.mode != "main" or not probed_events:
            return
        fitting = max(1, self.max_events // probed_events)
        if self.first_step + fitting < self.last_step:
            self.last_step = self.first_step + fitting
            self._cap("%d events a step" % probed_events)

    def exported(self, events, *, cut):
        """The open window ended with so many events. Returns whether recording goes on: after a
        cut, or if nothing was seen yet.
        """
        self.events += events
        if self.events >= self.max_events * 4 // 5:
            self._cap("%d events" % self.events)
            return False
        if self.mode == "early" and events == 0 and not cut:
            self.mode, self.until_ns = "wait", None
            return True
        return cut

    def ended(self):
        """The open window is closed for good; a default capture still waits for steps after its
        early stretch.
        """
        self.mode = "idle" if self.mode == "early" and self.plan.kind == "default" else "done"

    def _begun_late(self):
        """A default capture has its steps all the same, a little later; of steps that were asked
        for by number some are missing.
        """
        if self.plan.kind == "default":
            self.last_step = self.first_step + self.plan.last - self.plan.first
        else:
            self.truncated, self.reason = (
                True,
                "begun at step %d: recording could not start before" % self.first_step,
            )

    def _cap(self, what):
        self.truncated, self.reason = (
            True,
            "%s: capped at %d events (PROFHARNESS_MAX_EVENTS)" % (what, self.max_events),
        )
