"""Sets the old caps again, once; the caller holds the lock of the file. Each package by itself, so
that one that fails keeps none of the others back.
"""

from __future__ import annotations

from collections.abc import Callable

from profharness.telemetry.caps import store
from profharness.telemetry.caps.records import Left, OldCap, Restored, Saved, is_same
from profharness.telemetry.caps.ways import Way, set_and_read

Opened = Callable[[str], Way]
"""A way by its name; raises what `ways.open_way` does."""


def restore(file: str, saved: Saved, opened: Opened) -> Restored:
    """Set what is written down, and strike it out; what fails stays written down. Raises OSError
    where the file cannot be changed.
    """
    if saved.boot_id != store.boot_id():
        store.remove(file)
        return Restored(void=True)
    done: list[str] = []
    failed: list[Left] = []
    foreign: list[Left] = []
    for old in saved.old:
        why = _restored(old, saved, opened)
        if why is None:
            done.append(old.key)
        elif isinstance(why, int):
            foreign.append(Left(old.key, old.uw, f"somebody else has set {why / 1e6:g} W"))
        else:
            failed.append(Left(old.key, old.uw, why))
    if failed:
        keys = {one.key for one in failed}
        store.write(file, saved._replace(old=tuple(o for o in saved.old if o.key in keys)))
    else:
        store.remove(file)
    return Restored(tuple(done), tuple(failed), tuple(foreign))


def _restored(old: OldCap, saved: Saved, opened: Opened) -> str | int | None:
    """None where the package has its old cap; the cap that somebody else has set; why it cannot be
    set.
    """
    try:
        way = opened(old.way)
        now = way.read(old.key)
        if is_same(now, old.uw):
            return None
        if not any(is_same(now, planned) for planned in saved.planned_uw):
            return now
        set_and_read(way, old.key, old.uw)
    except Exception as error:  # noqa: BLE001  a library has errors of its own: its words count
        return str(error) or type(error).__name__
    return None
