"""Hotspots before they are a table: exact groups that are small enough to send, and that can be
joined.

A tally holds each distinct duration of a group once, with how often it occurs, so that sums,
extremes, medians and deviations of many files together are those of all their records, whatever the
number of files. The duration of a record that nobody timed is NULL: it is a call, and the times of
its group are those of the others. A group of such records alone has none: unknown is not 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.grouping import Grouped, combinations, group, modes
from profharness.analysis.operators import sums
from profharness.analysis.operators.sums import WorkSums
from profharness.analysis.records import HotspotRow, Hotspots
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
Grouping = Literal["kernel", "op", "shape", "module", "range", "stack", "category", "call"]
_FIRST = get_args(Grouping)
OF_FRAMES: tuple[Grouping, ...] = ("module", "stack")
"""Rows that need Python's frames read."""
CONVENTIONS = {"causal": "exact"}
"""How operations are counted, where programs differ: exact pairs of causal attention."""
NO_GROUPS = group(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Shapes:
    """Launch shapes: (n, 4) of workgroups and workgroup size x, y, z; the group of each, and how
    many kernels had it.
    """

    group: I64
    shape: I64
    count: I64

    @classmethod
    def of(cls, groups: I64, shape: I64, count: I64 | None = None) -> Shapes:
        """Each combination once."""
        row, total = combinations([groups, *shape.T], count)
        return cls(groups[row], shape[row], total)

    def commonest(self) -> dict[int, tuple[int, int, int, int]]:
        """The most common shape of each group."""
        keys, rows = modes(self.group, list(self.shape.T), self.count)
        return {
            int(key): (int(s[0]), int(s[1]), int(s[2]), int(s[3]))
            for key, s in zip(keys, self.shape[rows], strict=True)
        }


@dataclass(frozen=True, eq=False)
class Launchers:
    """Operators that launched kernels: position in `names`, the group of each, and how many kernels
    it launched there.
    """

    names: tuple[str, ...]
    group: I64
    name: I64
    count: I64

    def commonest(self) -> dict[int, str]:
        """The operator that launched most kernels of each group; of equals the first in the
        alphabet.
        """
        rank = np.argsort(np.argsort(np.array(self.names))) if self.names else np.empty(0, np.int64)
        keys, rows = modes(self.group, [rank[self.name]], self.count)
        return {
            int(key): self.names[int(self.name[row])] for key, row in zip(keys, rows, strict=True)
        }


NO_SHAPES = Shapes(np.empty(0, np.int64), np.empty((0, 4), np.int64), np.empty(0, np.int64))
NO_LAUNCHERS = Launchers((), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Busy:
    """Device time, summed over devices: union of kernels, with copies, and from each device's first
    start to its last end.

    `identities` are host and identity of those devices that have one.
    """

    kernels_ns: int
    any_ns: int
    span_ns: int
    identities: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Inputs:
    """Shapes and types of an operator's inputs, as recorded (JSON); empty where they were not."""

    shapes: str
    dtypes: str


@dataclass(frozen=True, eq=False)
class Tally:
    """Groups by name: `groups.key` are positions in `names` and `categories`. `printed` are rows
    that a tool added up itself.

    `inputs` are shapes and types of the inputs that a group has besides its name; empty for groups
    by name alone. `kernel_ns` is what each group's operators launched; empty where that is not
    known. `work` is None where work and device time of the groups are not asked for, `busy` without
    device work.
    """

    by: Grouping
    pass_name: str | None
    names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    inputs: tuple[Inputs, ...] = ()
    groups: Grouped = NO_GROUPS
    shapes: Shapes = NO_SHAPES
    launchers: Launchers = NO_LAUNCHERS
    kernel_ns: tuple[int, ...] = ()
    work: WorkSums | None = None
    printed: tuple[HotspotRow, ...] = ()
    busy: Busy | None = None

    @property
    def keys(self) -> list[tuple[str, Inputs | None]]:
        """What tells each group from the others, in whatever file."""
        if not self.inputs:
            return [(name, None) for name in self.names]
        return list(zip(self.names, self.inputs, strict=True))

    @property
    def filled(self) -> bool:
        """Whether there is any row."""
        return bool(self.names or self.printed)

    def table(self) -> Hotspots:
        """The table: rows by falling total, then by name; those without times last. Rows of
        operators, and of what is around them, are in the order of their device time where a device
        was recorded.
        """
        sums, busy = self.work, self.busy
        traced = sums is not None and sums.traced
        timed = self.groups.without(NULL)
        times = [
            *timed.sums()[timed.smallest() != NULL].tolist(),
            *(row.total_ns for row in self.printed if row.total_ns is not None),
        ]
        whole = sum(times)
        rows = [
            *_rows(self, timed, whole),
            *(_shared(row, whole, traced=traced) for row in self.printed),
        ]
        rows.sort(key=_order_by_device if traced else _order)
        return Hotspots(
            by=self.by,
            pass_name=self.pass_name,
            total_ns=whole if times or not rows else None,
            rows=tuple(rows),
            busy_ns=busy.kernels_ns if busy else None,
            busy_any_ns=busy.any_ns if busy else None,
            device_span_ns=busy.span_ns if busy else None,
            device_ns_outside=None if sums is None else sums.outside_ns,
            conventions={} if sums is None else CONVENTIONS,
        )


def join(tallies: Sequence[Tally]) -> Tally:
    """One tally of all; they must be by the same thing, and at least one is needed."""
    first = tallies[0]
    keys = tuple(dict.fromkeys(key for tally in tallies for key in tally.keys))
    place = {key: position for position, key in enumerate(keys)}
    category = {
        key: kind
        for tally in tallies
        for key, kind in zip(tally.keys, tally.categories, strict=True)
    }
    moved = [np.array([place[key] for key in tally.keys], np.int64) for tally in tallies]
    parts = [
        (place, tally.groups.condensed())
        for place, tally in zip(moved, tallies, strict=True)
        if len(tally.groups.value)
    ]
    groups = (
        group(
            np.concatenate([place[part.owner()] for place, part in parts]),
            np.concatenate([part.value for _, part in parts]),
            np.concatenate([part.weight for _, part in parts if part.weight is not None]),
        )
        if parts
        else NO_GROUPS
    )
    launched = dict.fromkeys(keys, 0)
    for tally in tallies:
        for key, total in zip(tally.keys, tally.kernel_ns, strict=bool(tally.kernel_ns)):
            launched[key] += total
    passes = {tally.pass_name for tally in tallies}
    return Tally(
        by=first.by,
        pass_name=first.pass_name if len(passes) == 1 else None,
        names=tuple(name for name, _ in keys),
        categories=tuple(category[key] for key in keys),
        inputs=tuple(inputs for _, inputs in keys if inputs is not None),
        groups=groups.condensed(),
        shapes=_joined_shapes(tallies, moved),
        launchers=_joined_launchers(tallies, moved),
        kernel_ns=tuple(launched.values()) if any(tally.kernel_ns for tally in tallies) else (),
        work=_joined_work(tallies, moved, len(keys)),
        printed=_joined_rows([row for tally in tallies for row in tally.printed]),
        busy=_joined_busy([one.busy for one in tallies if one.busy]),
    )


def alike(tallies: Sequence[Tally]) -> list[Tally]:
    """The tallies that can be joined. Where any has kernels, these are those by kernel: a file
    without kernels has nothing to add to them.

    Where none has kernels, the same holds for operators, and then for host calls.
    """
    for by in _FIRST:
        if any(tallied.by == by and tallied.filled for tallied in tallies):
            return [tallied for tallied in tallies if tallied.by == by and tallied.filled]
    return [tallied for tallied in tallies if tallied.by == tallies[0].by]


def _joined_busy(parts: Sequence[Busy]) -> Busy | None:
    """The sum; None where two saw the same device, so that their unions cannot be added."""
    identities = frozenset(busy for part in parts for busy in part.identities)
    if not parts or len(identities) < sum(len(part.identities) for part in parts):
        return None
    return Busy(
        sum(busy.kernels_ns for busy in parts),
        sum(busy.any_ns for busy in parts),
        sum(busy.span_ns for busy in parts),
        identities,
    )


def _joined_shapes(tallies: Sequence[Tally], moved: Sequence[I64]) -> Shapes:
    pairs = [
        (tally.shapes, place)
        for tally, place in zip(tallies, moved, strict=True)
        if len(tally.shapes.group)
    ]
    if not pairs:
        return NO_SHAPES
    return Shapes.of(
        np.concatenate([place[part.group] for part, place in pairs]),
        np.concatenate([part.shape for part, _ in pairs]),
        np.concatenate([part.count for part, _ in pairs]),
    )


def _joined_launchers(tallies: Sequence[Tally], moved: Sequence[I64]) -> Launchers:
    pairs = [
        (tally.launchers, group_place)
        for tally, group_place in zip(tallies, moved, strict=True)
        if len(tally.launchers.group)
    ]
    if not pairs:
        return NO_LAUNCHERS
    names = tuple(sorted({name for part, _ in pairs for name in part.names}))
    place = {name: position for position, name in enumerate(names)}
    owner = np.concatenate([group_place[part.group] for part, group_place in pairs])
    name = np.concatenate(
        [np.array([place[text] for text in part.names], np.int64)[part.name] for part, _ in pairs]
    )
    row, count = combinations([owner, name], np.concatenate([part.count for part, _ in pairs]))
    return Launchers(names, owner[row], name[row], count)


def _joined_work(tallies: Sequence[Tally], moved: Sequence[I64], groups: int) -> WorkSums | None:
    parts = [
        (tally.work, place)
        for tally, place in zip(tallies, moved, strict=True)
        if tally.work is not None
    ]
    if not parts:
        return None
    return sums.join([part for part, _ in parts], [place for _, place in parts], groups)


def _joined_rows(rows: Sequence[HotspotRow]) -> tuple[HotspotRow, ...]:
    """Printed rows of one name as one; what they do not print of each stays unknown."""
    by_name: dict[str, list[HotspotRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    return tuple(
        same_name[0] if len(same_name) == 1 else _joined_row(same_name)
        for same_name in by_name.values()
    )


def _joined_row(rows: Sequence[HotspotRow]) -> HotspotRow:
    calls, total = sum(row.calls for row in rows), sum(row.total_ns or 0 for row in rows)
    low = [row.min_ns for row in rows if row.min_ns is not None]
    high = [row.max_ns for row in rows if row.max_ns is not None]
    return HotspotRow(
        name=rows[0].name,
        category=rows[0].category,
        calls=calls,
        total_ns=total,
        share=0.0,
        mean_ns=total / calls if calls else 0.0,
        median_ns=None,
        std_ns=None,
        min_ns=min(low) if len(low) == len(rows) else None,
        max_ns=max(high) if len(high) == len(rows) else None,
    )


def _rows(tally: Tally, timed: Grouped, whole: int) -> list[HotspotRow]:
    """A row of each group; `timed` are the groups without records that nobody timed, `whole` is the
    time of all rows.
    """
    groups, total = tally.groups, timed.sums()
    mean = total / np.maximum(timed.count, 1)
    columns = (groups.count, total, mean, timed.smallest(), timed.largest())
    figures = [column.tolist() for column in (*columns, timed.medians(), timed.deviations())]
    shapes, launchers = tally.shapes.commonest(), tally.launchers.commonest()
    rows = []
    for key, work, device, count, time, average, smallest, largest, median, deviation in zip(
        groups.key.tolist(),
        sums.row_fields(tally.work, groups.key),
        _device_shares(tally),
        *figures,
        strict=True,
    ):
        workgroups, *size = shapes.get(key, (NULL, NULL, NULL, NULL))
        known = smallest != NULL
        rows.append(
            HotspotRow(
                name=tally.names[key],
                category=tally.categories[key],
                calls=count,
                total_ns=time if known else None,
                share=_part(time, whole) if known else None,
                mean_ns=average if known else None,
                median_ns=median if known else None,
                min_ns=smallest if known else None,
                max_ns=largest if known else None,
                std_ns=deviation if known else None,
                kernel_ns=tally.kernel_ns[key] if tally.kernel_ns else None,
                workgroups=None if workgroups == NULL else workgroups,
                workgroup_size=(size[0], size[1], size[2]) if NULL not in size else None,
                op=launchers.get(key),
                shapes=(tally.inputs[key].shapes or None) if tally.inputs else None,
                dtypes=(tally.inputs[key].dtypes or None) if tally.inputs else None,
                device_share=device,
                **work,
            )
        )
    return rows


def _device_shares(tally: Tally) -> list[float | None]:
    """Of each group its share of all device time, that of no group included; None where no device
    was recorded.
    """
    groups = tally.groups.key
    if tally.work is None or tally.work.outside_ns is None:
        return [None] * len(groups)
    times = tally.work.device[groups].tolist()
    whole = sum(times) + tally.work.outside_ns
    return [_part(time, whole) for time in times]


def _part(time: int, whole: int) -> float:
    return time / whole if whole else 0.0


def _shared(row: HotspotRow, whole: int, *, traced: bool) -> HotspotRow:
    """A row that a tool added up itself, among rows of `whole` time; its device time is not known,
    where the others' is (`traced`).
    """
    import msgspec

    share = row.share if row.total_ns is None else _part(row.total_ns, whole)
    return msgspec.structs.replace(
        row, share=share, device_share=0.0 if traced else row.device_share
    )


def _order(row: HotspotRow) -> tuple[bool, int, str, str, str]:
    time = row.total_ns
    return time is None, -(time or 0), row.name, row.shapes or "", row.dtypes or ""


def _order_by_device(row: HotspotRow) -> tuple[int, str, str, str, bool, int]:
    """Rows of operators by their device time."""
    untimed, time, name, shapes, dtypes = _order(row)
    return -(row.device_ns or 0), name, shapes, dtypes, untimed, time
