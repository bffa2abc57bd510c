"""Caps that a run left on this node, since its sampler was killed with it: named, and set again."""

from __future__ import annotations

from pathlib import Path

import msgspec

from profharness.measure.caps import asking
from profharness.measure.caps.asking import CapError
from profharness.measure.caps.planning import watts_text
from profharness.telemetry.caps import store
from profharness.telemetry.caps.records import Saved

RESTORE = "profharness doctor --restore-caps"


class LeftCaps(msgspec.Struct, frozen=True):
    """Caps that were changed on this node: what there was (W, by package), by which run, and
    `state`: `running`, `left`, `void` (the node was restarted since) or `damaged`.
    """

    file: str
    state: str
    run: str = ""
    old_w: dict[str, float] = {}
    ours: bool = True

    def __str__(self) -> str:
        old = ", ".join(f"{key} had {watts:g} W" for key, watts in self.old_w.items())
        match self.state:
            case "running":
                return f"{self.run} changes power caps now: {old}"
            case "void":
                return f"the restart of the node has undone the caps of {self.run}"
            case "damaged":
                return f"{self.file} cannot be read: look at the caps yourself, and remove it"
        fix = RESTORE if self.ours else "its owner restores them by `" + RESTORE + "`"
        return f"{self.run} ended without setting power caps again: {old}\n{fix}"


def left_caps() -> tuple[LeftCaps, ...]:
    """What is written down on this node, by this user and by others; looks only."""
    own = store.path()
    found = []
    for file in (own, *store.others()):
        try:
            saved = store.read(file)
        except (OSError, ValueError):
            if file == own:  # of another user's nobody else can say more
                found.append(LeftCaps(file, "damaged"))
            continue
        if saved is not None:
            old = {one.key: one.uw / 1e6 for one in saved.old}
            found.append(LeftCaps(file, _state(saved), saved.run, old, file == own))
    return tuple(found)


def _state(saved: Saved) -> str:
    if saved.boot_id != store.boot_id():
        return "void"
    return "left" if store.is_ended(saved) else "running"


def restore_left() -> tuple[str, ...]:
    """Set the caps that a dead run of this user left; what was done, in sentences. Nothing is left
    on nearly every node, which costs one look at a file.
    """
    file = Path(store.path())
    if not file.exists():
        return ()
    left = next((one for one in left_caps() if one.file == str(file)), None)
    if left is None or left.state == "running":
        return ()
    if left.state == "damaged":
        return (str(left),)
    try:
        restored = asking.restore(file, left=True)
    except CapError as error:
        return (f"the power caps that {left.run} left were not set again: {error}",)
    if restored.void:
        return ()
    told = [
        f"set the power cap of {key} again to {left.old_w.get(key, 0):g} W, which {left.run} left"
        for key in restored.done
    ]
    told += [
        f"the power cap of {one.key} was {watts_text(one.uw)} and is left alone: {one.why}"
        for one in restored.foreign
    ]
    told += [
        f"the power cap of {one.key} was not set again to {watts_text(one.uw)}: {one.why}"
        for one in restored.failed
    ]
    return tuple(told)
