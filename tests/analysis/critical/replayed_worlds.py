"""Made-up programs on one thread and one stream that run eagerly and as replays of graphs, by the
same clock: what a capture of all that can be captured would make of them is known.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.analysis.scene import Scene

LATENCY, GAP, RETURN, CALL = 5_000, 800, 2_000, 700
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@dataclass(frozen=True)
class Action:
    """Something that the host does: an `op` (host time before its launch, of the launch call and
    after it, then its kernel), `python`, a `load` of data, or a `sync`.
    """

    what: str
    before: int = 0
    call: int = 0
    after: int = 0
    kernel: int = 0


@dataclass
class Clock:
    """The host's time, the device's, and what they recorded."""

    scene: Scene = field(default_factory=Scene)
    now: int = 0
    ended: int = 0

    def launch(self, at: int, call: int, kernel: int) -> None:
        """A launch on its own."""
        start = max(at + LATENCY, self.ended + GAP if self.ended else 0)
        self.scene.kernel(start, start + kernel, self.scene.launch(at, at + call))
        self.ended = start + kernel

    def wait(self) -> None:
        end = max(self.now + CALL, self.ended + RETURN if self.ended > self.now else 0)
        self.scene.call("hipDeviceSynchronize", self.now, end)
        self.now = end


def program(seed: int) -> list[Action]:
    """A random program; it ends with a synchronisation."""
    dice = random.Random(seed)
    slow = dice.random() < 0.5  # kernels longer than what the host needs for a launch
    actions = []
    for _ in range(dice.randrange(5, 60)):
        kind = dice.choices(("op", "python", "load", "sync"), (12, 4, 1, 1))[0]
        if kind == "op":
            kernel = dice.randrange(1_000, 60_000 if slow else 6_000)
            sizes = [dice.randrange(500, 15_000) for _ in range(3)]
            actions.append(Action("op", sizes[0], sizes[1], sizes[2], kernel))
        else:
            actions.append(Action(kind, dice.randrange(1_000, 40_000)))
    first = Action("op", 1_000, 2_000, 1_000, 5_000)
    return [first, *actions, Action("sync")]


def eager(actions: list[Action]) -> Clock:
    """The program as it is recorded."""
    clock = Clock()
    for action in actions:
        if action.what == "sync":
            clock.wait()
            continue
        begun, clock.now = clock.now, clock.now + action.before + action.call + action.after
        if action.what == "op":
            clock.scene.op("aten::mm", begun, clock.now)
            clock.launch(begun + action.before, action.call, action.kernel)
        elif action.what == "load":
            clock.scene.mark("range", begun, clock.now, LOADER)
    return clock


def replayed(actions: list[Action], gap: int, *, at_best: bool = False) -> int:
    """How long the program takes with a graph per stretch without a wait and a load: its kernels
    follow each other after `gap`, and of the host's time in it one launch call stays. So does
    Python before the first and after the last operator; nothing of either `at_best`.
    """
    clock = Clock()
    stretch: list[Action] = []
    for action in actions:
        if action.what not in ("sync", "load"):
            stretch.append(action)
            continue
        _replay(clock, stretch, gap, at_best)
        stretch = []
        if action.what == "sync":
            clock.wait()
        else:
            clock.now += action.before
    return clock.now


def _replay(clock: Clock, stretch: list[Action], gap: int, at_best: bool) -> None:
    ops = [place for place, action in enumerate(stretch) if action.what == "op"]
    outside = stretch if not ops else [*stretch[: ops[0]], *stretch[ops[-1] + 1 :]]
    before = sum(action.before for action in (stretch[: ops[0]] if ops else outside))
    after = sum(action.before for action in outside) - before
    clock.now += 0 if at_best else before
    for number, place in enumerate(ops):
        action = stretch[place]
        if number == 0:
            call = 0 if at_best else action.call
            clock.launch(clock.now, call, action.kernel)
            clock.now += call
        else:
            clock.ended += gap + action.kernel
    clock.now += 0 if at_best else after
