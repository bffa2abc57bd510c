"""Tables of a trace from the slices and counters of a Perfetto file, with the annotations of
rocprofv3 and rocprof-sys.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from profharness.readers.bytes.proto_scan import I64
from profharness.readers.kineto.tables import marks_from
from profharness.readers.perfetto import slices as kinds
from profharness.readers.perfetto.context import Context, Tables, first_number
from profharness.readers.perfetto.events import COUNTER
from profharness.readers.perfetto.sensed import titled
from profharness.readers.perfetto.slices import per_track
from profharness.readers.perfetto.tracks import Track, Tracks
from profharness.readers.rocprofv3.places import places
from profharness.trace import nesting
from profharness.trace.columns.build import Growing, per_text
from profharness.trace.columns.table import NULL
from profharness.trace.kernel_figures import NUMBERS
from profharness.trace.model import Api, Copies, Counters, Device, Kernels, Marks, Ops, Samples
from profharness.trace.sample_metrics import metric_of

_AGENT = re.compile(r"(?:Agent \[|Dispatch \[|Device |GPU |\[)(\d+)")
_QUEUE = re.compile(r"[Qq]ueue \[?\"? ?(\d+)")
_STREAM = re.compile(r"(?i)stream \[?\"? ?(\d+)")
_TRIPLE = re.compile(r"(\d+)\D+(\d+)\D+(\d+)")
_DIRECTIONS = {
    "HOST_TO_DEVICE": "h2d",
    "DEVICE_TO_HOST": "d2h",
    "DEVICE_TO_DEVICE": "d2d",
    "HOST_TO_HOST": "h2h",
}
_SHORT = re.compile(r"Copy(H|D)\w+To(H|D)\w+|Memcpy ([HDP])to([HDP])")
_FILL = re.compile(r"FillBuffer|[Mm]emset")
_KINDS = ("h2d", "d2h", "d2d", "p2p", "h2h", "fill")
_FIGURES = {
    "lds_bytes": ("LDS_Block_Size", "group_segment_size", "shared_mem_static"),
    "vgpr": ("VGPR_Count", "registers_per_thread"),
    "accum_vgpr": ("Accum_VGPR_Count",),
    "sgpr": ("SGPR_Count",),
    "dispatch": ("dispatch_id",),
    "graph": ("graph",),
    "scratch_bytes": ("Scratch_Size", "private_segment_size"),
    "lds_dynamic_bytes": ("shared_mem_dynamic",),
}
_CORRELATION = ("corr_id", "correlation", "stack_id", "correlation_id")
_OTHERS = (
    "begin_ns",
    "end_ns",
    "delta_ns",
    "kind",
    "operation",
    "ancestor_id",
    "tid",
    "queue",
    "stream",
    "stream_ID",
    "stream_id",
    "kernel_id",
    "node_id",
    "agent",
    "device",
    "workgroup_size",
    "grid_size",
    "pid",
    "async_corr_id",
    *(f"{what}.{axis}" for what in ("grid_size", "workgroup_size") for axis in "xyz"),
)
# rocprof-sys (1.2, and before it): name of the track, metric, factor into the metric's unit
_SENSORS = (
    (re.compile(r"GPU (?:GFX )?Busy \["), "gpu_percent", 1.0),
    (re.compile(r"GPU UMC Busy \["), "memory_activity", 0.01),
    (re.compile(r"GPU (?:Current )?Power \["), "power_w", 1.0),
    (re.compile(r"GPU Temperature \["), "temperature_edge", 1.0),
    (re.compile(r"GPU Memory Usage \["), "gpu_memory_used", 1e6),
)


def build(context: Context, *, ops: bool) -> Tables:
    """All tables; operators only where they are wanted."""
    slices = context.slices
    chosen = {
        kind: np.flatnonzero(slices.kind == kind)
        for kind in (kinds.KERNEL, kinds.COPY, kinds.CALL, kinds.MARK, kinds.OP)
    }
    if not ops:
        chosen[kinds.OP] = chosen[kinds.OP][:0]
    kernel_rows, copy_rows = slices.event[chosen[kinds.KERNEL]], slices.event[chosen[kinds.COPY]]
    sampled = _counter_rows(context)
    ends = _copy_ends(context, copy_rows)
    stream = [_stream(context, rows) for rows in (kernel_rows, copy_rows)]
    sensed = per_track(context.track[sampled], partial(_sensed_device, context.tracks))
    placed = places(
        [
            context.number(kernel_rows, _AGENT, "agent", "device", "node_id"),
            ends["device"],
            ends["src_device"],
            ends["dst_device"],
            sensed,
        ],
        [
            *stream,
            *(np.full(len(rows), NULL, np.int64) for rows in (copy_rows, copy_rows, sampled)),
        ],
    )
    copies = Copies.build(
        **_span(context, chosen[kinds.COPY]),
        bytes=context.integers(copy_rows, "copy_bytes", "bytes", "size"),
        kind=ends["kind"],
        device=placed.device[1],
        src_device=placed.device[2],
        dst_device=placed.device[3],
        stream=placed.stream[1],
        correlation=context.integers(copy_rows, *_CORRELATION),
        pid=context.owner(copy_rows)["pid"],
        source=0,
    )
    kernels, rows = _kernels(context, chosen[kinds.KERNEL], placed.device[0], placed.stream[0])
    return Tables(
        kernels=kernels,
        copies=copies,
        api=_calls(context, chosen[kinds.CALL]),
        ops=_ops(context, chosen[kinds.OP]),
        marks=_marks(context, chosen[kinds.MARK]),
        samples=_samples(context, sampled, placed.device[4]),
        sensed=titled(context.tracks, context.track[sampled]),
        counters=_counters(context, rows),
        devices=tuple(Device(index=str(number), vendor="AMD") for number in placed.numbers),
        streams=placed.streams,
        names=context.tracks.names,
        units=_units(context.tracks, context.track[sampled]),
    )


def _span(context: Context, chosen: I64) -> dict[str, Any]:
    slices = context.slices
    return {
        "start_ns": slices.start[chosen],
        "dur_ns": slices.dur[chosen],
        "name": context.events.name[slices.event[chosen]],
    }


def _stream(context: Context, rows: I64) -> I64:
    """The stream, else the hardware queue."""
    stream = context.number(rows, _STREAM, "stream_ID", "stream_id", "stream")
    return np.where(
        stream > 0, stream, np.where(stream == 0, 0, context.number(rows, _QUEUE, "queue"))
    )


def _kernels(context: Context, chosen: I64, device: I64, stream: I64) -> tuple[Kernels, I64]:
    rows = context.slices.event[chosen]
    figures: dict[str, Any] = {
        column: context.integers(rows, *labels) for column, labels in _FIGURES.items()
    }
    kernels = Kernels.build(
        **_span(context, chosen),
        device=device,
        stream=stream,
        queue=context.number(rows, _QUEUE, "queue"),
        source=0,
        correlation=context.integers(rows, *_CORRELATION),
        **context.owner(rows),
        **_geometry(context, rows),
        **figures,
    )
    return kernels, rows


def _geometry(context: Context, rows: I64) -> dict[str, Any]:
    """Grids in work-items, as products in older files, as triples in newer ones; our own writer's
    are in workgroups.
    """
    given = [
        [context.integers(rows, f"{quantity}.{axis}") for axis in "xyz"]
        for quantity in ("grid_size", "workgroup_size")
    ]
    grid, size = (_triple(context, rows, label) for label in ("grid_size", "workgroup_size"))
    both_known = np.logical_and.reduce([part > 0 for part in (*grid, *size)])
    count = [
        np.where(axis > 0, axis, np.where(both_known, -(-g // np.maximum(s, 1)), NULL))
        for axis, g, s in zip(given[0], grid, size, strict=True)
    ]
    edge = [
        np.where(axis > 0, axis, np.where(both_known, s, NULL))
        for axis, s in zip(given[1], size, strict=True)
    ]
    items, group = context.integers(rows, "grid_size"), context.integers(rows, "workgroup_size")
    product = np.where((items > 0) & (group > 0), -(-items // np.maximum(group, 1)), NULL)
    whole = np.where(count[0] > 0, count[0] * count[1] * count[2], product)
    axes = {f"workgroup_count_{axis}": column for axis, column in zip("xyz", count, strict=True)}
    return {
        "workgroups": whole,
        **axes,
        **{f"workgroup_size_{axis}": column for axis, column in zip("xyz", edge, strict=True)},
    }


def _triple(context: Context, rows: I64, label: str) -> list[I64]:
    text = context.texts(rows, label)
    return [per_text(context.strings, text, partial(_axis, axis)) for axis in range(3)]


def _axis(axis: int, text: str) -> int:
    match = _TRIPLE.search(text)
    number = int(match[axis + 1]) if match else NULL
    return number if number < 2**31 else NULL


def _sensed_device(tracks: Tracks, uuid: int) -> int:
    name = tracks[uuid].name
    return NULL if "(CPU)" in name else first_number(_AGENT, name)


def _copy_ends(context: Context, rows: I64) -> dict[str, I64]:
    """Kind, device and ends of copies, as agents' numbers; the host's side of a copy is no
    device.
    """
    strings = context.strings
    codes = {
        kind: strings.code(kind) for kind in ("h2d", "d2h", "d2d", "p2p", "h2h", "fill", "unknown")
    }
    kind = per_text(strings, context.events.name[rows], lambda text: codes[_direction(text)])
    source = context.number(rows, None, "src_agent")
    target = context.number(rows, None, "dst_agent")
    kind = np.where(
        (kind == codes["d2d"]) & (source != target) & (source != NULL) & (target != NULL),
        codes["p2p"],
        kind,
    )
    source = np.where(np.isin(kind, [codes["h2d"], codes["h2h"]]), NULL, source)
    target = np.where(np.isin(kind, [codes["d2h"], codes["h2h"]]), NULL, target)
    recorded = context.number(rows, _AGENT, "agent", "device")
    device = np.where(target != NULL, target, np.where(source != NULL, source, recorded))
    return {"kind": kind, "device": device, "src_device": source, "dst_device": target}


def _direction(name: str) -> str:
    if name in _KINDS:
        return name
    for word, kind in _DIRECTIONS.items():
        if name.endswith(word):
            return kind
    match = _SHORT.search(name)
    kind = "2".join(part.lower() for part in match.groups() if part) if match else ""
    return kind if kind in _KINDS else "fill" if _FILL.search(name) else "unknown"


def _calls(context: Context, chosen: I64) -> Api:
    rows = context.slices.event[chosen]
    names = {
        domain: context.strings.code(domain) for domain in dict.fromkeys(kinds.DOMAINS.values())
    }
    domain = per_text(
        context.strings,
        context.events.category[rows],
        lambda text: names.get(kinds.DOMAINS.get(kinds.category_text(text), ""), NULL),
    )
    return Api.build(
        **_span(context, chosen),
        domain=domain,
        correlation=context.integers(rows, *_CORRELATION),
        source=0,
        **context.owner(rows),
    )


def _ops(context: Context, chosen: I64) -> Ops:
    rows = context.slices.event[chosen]
    span, owner = _span(context, chosen), context.owner(rows)
    nested = nesting.nest(
        span["start_ns"], span["dur_ns"], nesting.threads(owner["pid"], owner["tid"])
    )
    return Ops.build(
        **span,
        **owner,
        depth=nested.depth,
        external=context.integers(rows, "external id"),
        shapes=context.texts(rows, "shapes"),
        dtype=context.texts(rows, "types"),
        source=0,
    )


def _marks(context: Context, chosen: I64) -> Marks:
    """Marks of the tools by their names; those of our own writer have their kind as category."""
    rows = context.slices.event[chosen]
    span, owner = _span(context, chosen), context.owner(rows)
    frame = context.strings.code("frame")
    grown = Growing("start", "dur", "name", "pid", "tid")
    grown.add(len(rows), start=span["start_ns"], dur=span["dur_ns"], name=span["name"], **owner)
    own_kind = per_text(
        context.strings,
        context.events.category[rows],
        lambda text: (
            context.strings.find(text)
            if text in kinds.OWN_MARKS
            else frame
            if text in kinds.OWN_FRAMES
            else NULL
        ),
    )
    marks = marks_from(grown, context.strings, 0, {"source": 0})
    order = np.lexsort((-span["dur_ns"], span["start_ns"]))
    stated = own_kind[order] != NULL
    point = context.texts(rows, "point")[order]
    return marks.with_columns(
        kind=np.where(stated, own_kind[order], marks.kind),
        name=np.where(stated, span["name"][order], marks.name),
        point=np.where(point != NULL, point, marks.point),
        items=np.where(
            context.integers(rows, "items")[order] != NULL,
            context.integers(rows, "items")[order],
            marks.items,
        ),
    )


def _counter_rows(context: Context) -> I64:
    """Counter values in order of their track and time."""
    rows = np.flatnonzero(context.events.type == COUNTER)
    ordered: I64 = rows[np.lexsort((context.times[rows], context.track[rows]))]
    return ordered


def _samples(context: Context, rows: I64, device: I64) -> Samples:
    """Counters as samples: sensors under their metric's name and unit, ours under the name that
    their scale has, others under their track's name.
    """
    tracks, strings = context.tracks, context.strings
    track, value = context.track[rows], context.events.value[rows].copy()
    metric = per_track(track, lambda uuid: strings.code(_metric(tracks[uuid])[0]))
    used, first, of_row = np.unique(track, return_index=True, return_inverse=True)
    known = [tracks[uuid] for uuid in used.tolist()]
    ends = np.append(first, len(track))[1:]  # the rows of a track follow each other
    for one, begin, end in zip(known, first.tolist(), ends.tolist(), strict=True):
        if one.incremental:
            value[begin:end] = np.cumsum(value[begin:end])
    factors = [float(one.multiplier * _metric(one)[1]) for one in known]
    value *= np.array(factors, np.float64)[of_row]
    at = context.times[rows]
    return Samples.build(at_ns=at, until_ns=at, device=device, metric=metric, value=value, source=0)


def _units(tracks: Tracks, track: I64) -> tuple[tuple[str, str], ...]:
    """The units of counters that are no metric of ours, by their names."""
    stated = {
        _metric(one)[0]: one.unit for one in (tracks[uuid] for uuid in np.unique(track).tolist())
    }
    return tuple(
        (name, unit) for name, unit in sorted(stated.items()) if unit and metric_of(name) is None
    )


def _metric(track: Track) -> tuple[str, float]:
    if metric_of(track.scale) is not None:
        return track.scale, 1.0
    return next(
        ((metric, factor) for pattern, metric, factor in _SENSORS if pattern.match(track.name)),
        (track.name, 1.0),
    )


def _counters(context: Context, rows: I64) -> Counters:
    """Hardware counters: numbers among a kernel's annotations that describe nothing else."""
    notes = context.events.notes
    described = {
        context.strings.find(label)
        for label in (
            *_OTHERS,
            *_CORRELATION,
            *NUMBERS,
            *(label for labels in _FIGURES.values() for label in labels),
        )
    }
    kernel = np.full(len(context.events), NULL, np.int64)
    kernel[rows] = np.arange(len(rows))
    chosen = np.flatnonzero(
        (kernel[notes.event] != NULL)
        & ~np.isnan(notes.figure)
        & ~np.isin(notes.name, list(described))
    )
    return Counters.build(
        len(chosen),
        kernel=kernel[notes.event[chosen]],
        name=notes.name[chosen],
        value=notes.figure[chosen],
        source=0,
    )
