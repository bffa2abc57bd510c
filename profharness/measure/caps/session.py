"""The caps of a run: written down before the first change, set before each execution, and looked at
after it. The sampler sets the old ones again; what it could not do is done here, and told.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from profharness.errors import Unavailable
from profharness.findings import Finding, finding
from profharness.measure.caps import asking
from profharness.measure.caps.asking import CapError
from profharness.measure.caps.planning import CapPlan, watts_text
from profharness.rundir.executions.axes import POWER_CAP
from profharness.scans.contract import Point
from profharness.telemetry.caps import store
from profharness.telemetry.caps.records import (
    OldCap,
    Restored,
    Saved,
    decode_restored,
    is_same,
)


class PowerCaps:
    """A context around the sampler of a run; `plan` None is a run that changes no cap."""

    def __init__(
        self, plan: CapPlan | None, run: Path, host: str, told: Callable[[Finding], None]
    ) -> None:
        self._plan = plan
        self._run = run
        self._host = host
        self._told = told
        self._file = Path(store.path())

    def __enter__(self) -> Self:
        """Write the old caps down. Raises Unavailable where that cannot be done, or another run has
        caps of this node.
        """
        if self._plan is None:
            return self
        try:
            store.make_folder()
            with store.locked(str(self._file)):
                _require_free(self._file)
                store.write(str(self._file), self._saved(self._plan))
        except (OSError, ValueError) as error:
            raise Unavailable(
                f"--scan power-cap: the old caps cannot be written down ({error})",
                f"make room, or name another folder by {store.FOLDER}",
            ) from error
        return self

    def _saved(self, plan: CapPlan) -> Saved:
        pid = os.getpid()
        return Saved(
            host=self._host,
            boot_id=store.boot_id(),
            pid=pid,
            start=store.start_of(pid),
            namespace=store.namespace(),
            run=str(self._run),
            record=str(self._record),
            sysfs=os.environ.get("PROFHARNESS_SYSFS", "/sys"),
            old=tuple(OldCap(cap.way, cap.key, cap.now_uw) for cap in plan.caps),
            planned_uw=plan.planned_uw,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The sampler has ended, and set the old caps; what is left is set here."""
        if self._plan is None:
            return
        try:
            restored = asking.restore(self._file) if self._file.exists() else self._recorded()
        except CapError as why:
            self._told(left_finding(str(why)))
            return
        for one in (*restored.failed, *restored.foreign):
            self._told(left_finding(f"{one.key} had {watts_text(one.uw)}: {one.why}"))

    def _recorded(self) -> Restored:
        """What the sampler's process said of it."""
        try:
            return decode_restored(msgspec.json.decode(self._record.read_bytes()))
        except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise CapError(f"nothing tells that they were ({error})") from error

    @property
    def _record(self) -> Path:
        return self._run / "telemetry" / f"{self._host}.power-caps.json"

    @property
    def file(self) -> str:
        """Where the old caps stand, for the sampler; empty where none is changed."""
        return "" if self._plan is None else str(self._file)

    def set_for(self, point: Point, *, watched: bool) -> str:
        """Set the cap of a point; why not, where it cannot be. `watched`: the sampler lives."""
        cap_uw = cap_of(point)
        if self._plan is None or cap_uw is None:
            return ""
        if not watched:
            return "the power cap was not set: the sampler, which sets the old one again, has ended"
        try:
            asking.set_cap(self._file, cap_uw)
        except CapError as error:
            return f"the power cap of {watts_text(cap_uw)} was not set: {error}"
        return ""

    def changed_during(self, point: Point) -> str:
        """Who has another cap than that of the point, after its execution; empty where none."""
        cap_uw = cap_of(point)
        if self._plan is None or cap_uw is None:
            return ""
        try:
            caps = asking.now(self._file)
        except CapError as error:
            return f"the power cap may have changed: {error}"
        other = next((key for key, now in caps.items() if not is_same(now, cap_uw)), None)
        if other is None:
            return ""
        return (
            f"somebody else changed the power cap of {other} from {watts_text(cap_uw)} to "
            f"{watts_text(caps[other])} meanwhile"
        )


def cap_of(point: Point) -> int | None:
    """The cap of a point in µW."""
    value = point.params.get(POWER_CAP)
    return None if value is None else round(float(str(value)) * 1e6)


def _require_free(file: Path) -> None:
    """Raises Unavailable where another run has caps of this node, its own or another user's."""
    for other in (str(file), *store.others()):
        try:
            saved = store.read(other)
        except (OSError, ValueError):
            continue  # another user's, which says nothing
        if saved is None or (other != str(file) and store.is_ended(saved)):
            continue
        raise Unavailable(
            f"--scan power-cap: process {saved.pid} has changed caps of this node ({saved.run})",
            "wait for its end, or see `profharness doctor`",
        )


def left_finding(why: str) -> Finding:
    """An old cap that was not set again."""
    return finding("power-cap-left", f"the old power cap was not set again: {why}")
