"""Kineto's events to columns: which categories are kept, what their arguments are called, and what
is counted.

Categories and argument names are those of libkineto and of the profiler of 2021. A record that the
tool stamps as a kernel stays one whatever its name. Events are sorted by category in their block,
and the arguments of each category, where still text, are decoded together, as their own type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, ClassVar, TypeVar, cast, get_args

import msgspec
import numpy as np

from profharness.readers.bytes.decimals import microseconds
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.kineto import counter_series, ranges, sorting
from profharness.readers.kineto.comms import PREFIXES, Spoken
from profharness.readers.kineto.named import NamedRows
from profharness.readers.kineto.records import (
    Allocation,
    AskedArgs,
    CallArgs,
    CopyArgs,
    DeviceArgs,
    Event,
    KernelArgs,
    MemoryArgs,
    Number,
    OpArgs,
    PlacedArgs,
    RangeArgs,
    StatedArgs,
    Triple,
)
from profharness.readers.kineto.unions import Record, Span, Timed, Unneeded, Usual
from profharness.readers.kineto.values import (
    Odd,
    arguments_of,
    collective_codes,
    place_name,
    raw_bytes,
    unwanted,
)
from profharness.trace.columns.build import Growing, Pool, text_pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, I64, Strings
from profharness.trace.wanted import Wanted

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)
SpanT = TypeVar("SpanT", bound=Timed)


class KinetoRows:
    """The rows of one file as they grow: raw columns per kind of record, pools of what repeats, and
    counts of what was repaired.

    `usual` are the types that a block is decoded as where it can be, `wanted` says what of the file
    becomes rows.
    """

    usual: ClassVar[object] = Usual
    wanted: ClassVar[Wanted] = Wanted.ALL
    call_args: ClassVar[type[CallArgs]] = CallArgs

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        self.kernels = Growing(*sorting.KERNELS)
        self.copies = Growing(*sorting.COPIES)
        self.calls = Growing(*sorting.CALLS)
        self.ops = Growing(*sorting.OPS)
        self.marks = Growing(*sorting.MARKS)
        self.frames = Growing(*sorting.FRAMES)
        self.memory = Growing(*sorting.ALLOCATIONS)
        self.series = Growing(*counter_series.COLUMNS)
        self.ranges = ranges.RangeRows()
        self.named = NamedRows()
        self.spoken: Pool[Spoken] = Pool()
        self.devices: Pool[str] = Pool()
        self.streams: Pool[str] = Pool()
        self.geometry: Pool[bytes | Triple] = Pool()
        self.left_out: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.odd = Odd()
        self.has_dispatch_kind = False
        self.is_known = False  # whether an event is of a kind that becomes rows of some reading
        self.latest_ns = 0
        self._names: Pool[str | None] = Pool(lambda name: strings.code(name or ""))
        self._plain: set[str] = set()
        self._texts = text_pool(strings)
        # nothing here refers to the rows themselves: they are freed as soon as they are read
        devices, streams = self.devices, self.streams
        device_numbers: Pool[Number] = Pool(lambda number: devices[place_name(number)])
        stream_numbers: Pool[Number] = Pool(
            lambda number: streams[place_name(number).removeprefix("stream ")]
        )
        self._device_numbers, self._stream_numbers = device_numbers, stream_numbers
        self._stated_devices: Pool[Number] = Pool(
            lambda number: NULL if number is None else device_numbers[number]
        )
        self._stated_streams: Pool[Number] = Pool(
            lambda number: NULL if number is None else stream_numbers[number]
        )

    def _adders(self) -> dict[str, Callable[[Any], None]]:
        """What adds the events of each category that becomes rows."""
        return {
            sorting.KERNEL: self._add_kernels,
            sorting.COPY: self._add_copies,
            sorting.CALL: self._add_calls,
            sorting.OP: self._add_ops,
            sorting.MARK: self._add_marks,
            sorting.MEMORY: self._add_memory,
            sorting.FRAME: unwanted,
            ranges.CATEGORY: self._add_ranges,
        }

    def add(self, batch: Sequence[Record]) -> None:
        """Sort a block of events into the columns; all of them are `Event`, or none is."""
        if isinstance(batch[0], Event):
            self._add_any(cast("Sequence[Event]", batch))
        else:
            self._add_usual(batch)

    def _add_usual(self, batch: Sequence[Record]) -> None:
        adders = self._adders()
        usual: dict[str, list[Any]] = {category: [] for category in adders}
        unneeded: dict[type[Unneeded], list[Any]] = {kind: [] for kind in get_args(Unneeded)}
        self.is_known = True
        append: dict[type[Record], Callable[[Any], None]] = {
            kind: (
                unneeded[kind]
                if kind in unneeded
                else usual[sorting.SAME_TABLE.get(kind.cat, kind.cat)]
            ).append
            for kind in get_args(self.usual)
        }
        for event in batch:
            append[type(event)](event)  # its type says which list it belongs to
        for category, events in usual.items():
            if events:
                adders[category](events)
        for kind, events_left_out in unneeded.items():
            if events_left_out and kind.cat not in adders:
                self.left_out[kind.cat] += len(events_left_out)

    def _marks_among(self, names: set[str | None]) -> set[str]:
        """The names that are marks'. Each name is looked at once."""
        new = {name for name in names if name is not None} - self._plain
        marks = {name for name in new if name.startswith(sorting.MARK_NAMES)}
        self._plain |= new - marks
        return marks

    def _add_any(self, batch: Sequence[Event]) -> None:
        adders = self._adders()
        by_category: dict[str | None, list[Event]] = {category: [] for category in adders}
        append = sorting.Appending(by_category)
        for event in batch:
            append[event.cat](event)
        if not self.is_known:
            kinds = any(map(by_category.get, adders))
            self.is_known = kinds or counter_series.among(by_category)
        if self.wanted.host:
            self.repairs["series"] += counter_series.take(
                by_category, self.series, self.strings, self.devices
            )
        for category, events in by_category.items():
            if not events:
                continue
            if category is None:
                self.left_out.update(f"ph={e.ph}" for e in self.named.add(events))
            elif (add := adders.get(category)) is None:
                self.left_out[category] += len(events)
            elif add is not unwanted:
                phase, form = ("i", "instant") if category == sorting.MEMORY else ("X", "span")
                complete = [e for e in events if e.ph == phase]
                add(complete)
                if len(complete) < len(events):
                    self.left_out.update(
                        f"{e.cat} that is no {form}" for e in events if e.ph != phase
                    )

    def _add_kernels(self, events: Sequence[Timed]) -> None:
        events, start, dur = self._timed(events)
        args = self._decode_args(events, KernelArgs)
        self._note_kinds(args)
        self.kernels.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            device=self._device_codes(events, args),
            stream=self._stream_codes(events, args),
            correlation=self.odd.whole("correlation", [a.correlation for a in args], signed=True),
            external=np.maximum(
                self.odd.whole("External id", [a.external for a in args], signed=True),
                self.odd.rare("external id", [a.external_2021 for a in args], signed=True),
            ),
            grid=self._triples([a.grid for a in args]),
            block=self._triples([a.block for a in args]),
            registers=self.odd.small("registers per thread", [a.registers for a in args]),
            shared=self.odd.rare("shared memory", [a.shared for a in args]),
            graph=self.odd.rare("graph id", [a.graph or NULL for a in args]),
            collective=collective_codes(args, self.odd, self.strings),
        )

    def _add_ranges(self, events: Sequence[Event]) -> None:
        devices = self._device_numbers.codes(event.pid for event in events)
        streams = self._stream_numbers.codes(event.tid for event in events)
        self.ranges.add(events, devices.tolist(), streams.tolist())

    def _add_copies(self, events: Sequence[Timed]) -> None:
        events, start, dur = self._timed(events)
        args = self._decode_args(events, CopyArgs)
        self.copies.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            device=self._device_codes(events, args),
            stream=self._stream_codes(events, args),
            correlation=self.odd.whole("correlation", [a.correlation for a in args], signed=True),
            external=self.odd.rare("External id", [a.external for a in args], signed=True),
            bytes=self.odd.whole("bytes", [a.bytes for a in args]),
            from_device=self._optional_devices(a.from_device for a in args),
            to_device=self._optional_devices(a.to_device for a in args),
            fill=[e.cat in sorting.FILLS for e in events],
        )

    def _add_calls(self, events: Sequence[Timed]) -> None:
        events, start, dur = self._timed(events)
        args = self._decode_args(events, self.call_args)
        self.calls.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            pid=self.odd.whole("pid", [e.pid for e in events]),
            tid=self.odd.whole("tid", [e.tid for e in events], signed=True),
            correlation=self.odd.whole("correlation", [a.correlation for a in args], signed=True),
            grid=self._triples([a.grid for a in args]),
            block=self._triples([a.block for a in args]),
            shared=self.odd.whole("shared memory", [a.shared for a in args]),
            kernel=self._launched(args),
            bytes=np.maximum(
                self.odd.rare("bytes", [a.bytes for a in args]),
                self.odd.rare("size", [a.size for a in args]),
            ),
        )

    def _launched(self, _: Sequence[AskedArgs]) -> I32 | int:
        """Codes of the kernels that calls name: most readings need none."""
        return NULL

    def _add_ops(self, events: Sequence[Timed]) -> None:
        names = [e.name for e in events]
        if marks := self._marks_among(set(names)):
            self._add_marks([e for e in events if e.name in marks])
            events = [e for e in events if e.name not in marks]
        events, start, dur = self._timed(events)
        args = self._decode_args(events, OpArgs)
        self.ops.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            pid=self.odd.whole("pid", [e.pid for e in events]),
            tid=self.odd.whole("tid", [e.tid for e in events], signed=True),
            external=self.odd.whole("External id", [a.external for a in args], signed=True),
            shapes=self._texts.codes(raw_bytes([a.dims or a.dims_2021 for a in args])),
            types=self._texts.codes(raw_bytes([a.types for a in args])),
            concrete=self._texts.codes(raw_bytes([a.concrete for a in args])),
            strides=self._texts.codes(raw_bytes([a.strides for a in args])),
            sequence=self.odd.rare("Sequence number", [a.sequence for a in args], signed=True),
            forward_tid=self.odd.rare("Fwd thread id", [a.forward_tid for a in args], signed=True),
            collective=collective_codes(args, self.odd, self.strings),
        )

    def _add_marks(self, events: Sequence[Timed]) -> None:
        events, start, dur = self._timed(events)
        self.marks.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            pid=self.odd.whole("pid", [e.pid for e in events]),
            tid=self.odd.whole("tid", [e.tid for e in events], signed=True),
            spoken=self._spoken_codes(events),
        )

    def _add_memory(self, events: Sequence[Event | Allocation]) -> None:
        held = [e for e in events if e.name == sorting.ALLOCATED]
        if len(held) < len(events):
            self.left_out[sorting.MEMORY] += len(events) - len(held)
        at = microseconds([e.ts for e in held])
        self.repairs["start"] += len(held) - int(at.valid.sum())
        self.repairs["rounded"] += at.rounded
        self.latest_ns = max(self.latest_ns, int(at.ns.max(initial=0)))
        held = list(compress(held, at.valid))
        args = self._decode_args(held, MemoryArgs)
        self.memory.add(
            len(args),
            at=at.ns[at.valid],
            pid=self.odd.whole("pid", [e.pid for e in held]),
            tid=self.odd.whole("tid", [e.tid for e in held], signed=True),
            address=self.odd.rare("Addr", [a.address for a in args]),
            bytes=self.odd.whole("Bytes", [a.bytes or 0 for a in args], signed=True),
            device_type=self.odd.whole("Device Type", [a.device_type for a in args], signed=True),
            device_id=self.odd.whole("Device Id", [a.device_id for a in args], signed=True),
            allocated=self.odd.whole("Total Allocated", [a.allocated for a in args], signed=True),
            reserved=self.odd.whole("Total Reserved", [a.reserved for a in args], signed=True),
        )

    def _spoken_codes(self, events: Sequence[Timed]) -> I64:
        """Which of `spoken` each range is; NULL for ranges that are no collective of the host."""
        codes = np.full(len(events), NULL, np.int64)
        rows = [
            row
            for row, event in enumerate(events)
            if event.name is not None and event.name.startswith(PREFIXES)
        ]
        args = self._decode_args([events[row] for row in rows], RangeArgs)
        codes[rows] = [
            self.spoken[events[row].name or "", bytes(a.dims), bytes(a.types)]
            for row, a in zip(rows, args, strict=True)
        ]
        return codes

    def _timed(self, events: Sequence[SpanT]) -> tuple[Sequence[SpanT], I64, I64]:
        """The events that have a start, with starts and durations; what is repaired or dropped is
        counted.
        """
        start = microseconds([e.ts for e in events])
        dur = microseconds([e.dur for e in events])
        dur_ns = np.maximum(dur.ns, 0)
        self.repairs["start"] += len(events) - int(start.valid.sum())
        self.repairs["duration"] += int((start.valid & ~dur.valid).sum())
        self.repairs["negative"] += int((start.valid & (dur.ns < 0)).sum())
        self.repairs["rounded"] += start.rounded + dur.rounded
        self.latest_ns = max(self.latest_ns, int(start.ns.max(initial=0)))
        if start.valid.all():
            return events, start.ns, dur_ns
        return list(compress(events, start.valid)), start.ns[start.valid], dur_ns[start.valid]

    def _decode_args(self, events: Sequence[Span | Allocation], kind: type[ArgsT]) -> list[ArgsT]:
        """The arguments of the events, decoded at once; one by one where an event's do not fit,
        which then has none.
        """
        args = [e.args for e in events]
        if args and not isinstance(args[0], msgspec.Raw):
            return cast("list[ArgsT]", args)
        texts = cast("list[msgspec.Raw]", args)
        try:
            listed = b"[" + b",".join(texts) + b"]"
            return msgspec.json.decode(
                listed,
                type=list[kind],  # type: ignore[valid-type]  # a class as a value
            )
        except NOT_JSON:
            return [arguments_of(bytes(text), kind, self.repairs) for text in texts]

    def _note_kinds(self, args: Sequence[StatedArgs | PlacedArgs]) -> None:
        self.has_dispatch_kind = self.has_dispatch_kind or any(
            isinstance(a.kind, str) and a.kind.startswith("Dispatch") for a in args
        )

    def _triples(self, values: Sequence[msgspec.Raw] | Sequence[Triple]) -> I32:
        """Codes of grids or blocks, decoded or not: what was the same text has one code."""
        if values and isinstance(values[0], msgspec.Raw):
            return self.geometry.codes(raw_bytes(cast("Sequence[msgspec.Raw]", values)))
        return self.geometry.codes(cast("Sequence[Triple]", values))

    def _name_codes(self, events: Sequence[Span]) -> I32:
        return self._names.codes([e.name for e in events])

    def _device_codes(
        self, events: Sequence[Timed], args: Sequence[StatedArgs | DeviceArgs | CopyArgs]
    ) -> I32:
        codes = self._stated_devices.codes([a.device for a in args])
        for row in np.flatnonzero(codes == NULL).tolist():
            codes[row] = self._device_numbers[events[row].pid]
        return codes

    def _stream_codes(
        self, events: Sequence[Timed], args: Sequence[StatedArgs | PlacedArgs | CopyArgs]
    ) -> I32:
        codes = self._stated_streams.codes([a.stream for a in args])
        for row in np.flatnonzero(codes == NULL).tolist():
            codes[row] = self._stream_numbers[events[row].tid]
        return codes

    def _optional_devices(self, values: Iterable[Number]) -> I64:
        return np.array([NULL if v is None else self._device_numbers[v] for v in values], np.int64)
