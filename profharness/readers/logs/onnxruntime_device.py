"""What onnxruntime's GPU profilers (CUPTI, roctracer) add to a profile: events of the category
`Kernel`, each a kernel, a copy or a fill.

Their times are on the host's clock, cut to whole microseconds. `parent_name` is the event of the
node that launched them, which stands before them in the file (`GPUProfilerBase::MergeEvents`). A
file names no device, and a session has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from profharness.readers.kineto.records import Number
from profharness.readers.kineto.values import integers
from profharness.trace.columns.build import Growing, Pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Copies, Device, Kernels, Stream, Strings

_OF_NODES = "_kernel_time"
_TRANSFER = re.compile(r"(?:hip|cuda|cu)?_?mem(cpy|set)", re.IGNORECASE)
_ENDS = {"host": "h", "device": "d", "array": "d"}
_WORDS = re.compile(r"(Host|Device|Array)To(Host|Device|Array)")
_KINDS = ("h2d", "d2h", "d2d", "h2h")
_VENDORS = {
    "amd": ("ROCM", "MIGraphX"),
    "nvidia": ("CUDA", "Tensorrt", "NvTensorRTRTX"),
}
_MOST_ITEMS = 2.0**62
_AXES = ("x", "y", "z")
_COLUMNS = (
    *("start", "dur", "name", "kind", "stream", "bytes", "node", "at"),
    *(f"{what}_{axis}" for what in ("grid", "block") for axis in _AXES),
)


class DeviceArgs(msgspec.Struct, gc=False):
    """Arguments of a record of the device. `kind` is the direction of a copy (roctracer)."""

    parent: str | None = msgspec.field(default="", name="parent_name")
    stream: Number = None
    grid_x: Number = NULL
    grid_y: Number = NULL
    grid_z: Number = NULL
    block_x: Number = NULL
    block_y: Number = NULL
    block_z: Number = NULL
    size: Number = NULL
    kind: str | None = ""


@dataclass(frozen=True, eq=False)
class Worked:
    """What ran on the device of a file."""

    kernels: Kernels
    copies: Copies
    devices: tuple[Device, ...]
    streams: tuple[Stream, ...]


def node_name(event: str | None) -> str:
    """The node that an event is of."""
    return (event or "").removesuffix(_OF_NODES)


class DeviceRows:
    """The rows of one file as they grow. `nodes` numbers the names of nodes."""

    def __init__(self, strings: Strings) -> None:
        self.nodes: Pool[str] = Pool()
        self._rows = Growing(*_COLUMNS)
        self._names: Pool[str] = Pool(strings.code)
        self._streams: Pool[str] = Pool()
        self._kinds: Pool[str] = Pool(lambda kind: strings.code(kind) if kind else NULL)

    def add(
        self,
        names: Sequence[str],
        args: Sequence[DeviceArgs],
        start: I64,
        dur: I64,
        at: Sequence[int],
    ) -> None:
        """Rows of events at these places in the file."""
        sizes = {
            f"{what}_{axis}": integers([getattr(a, f"{what}_{axis}") for a in args])
            for what in ("grid", "block")
            for axis in _AXES
        }
        launched = (sizes["block_x"] > 0).tolist()
        kinds = [
            "" if is_kernel else _kind(name, a.kind or "")
            for is_kernel, name, a in zip(launched, names, args, strict=True)
        ]
        self._rows.add(
            len(names),
            start=start,
            dur=dur,
            name=self._names.codes(names),
            kind=self._kinds.codes(kinds),
            stream=self._streams.codes("" if a.stream is None else str(a.stream) for a in args),
            bytes=integers([a.size for a in args]),
            node=[NULL if not a.parent else self.nodes[node_name(a.parent)] for a in args],
            at=at,
            **sizes,
        )

    def tables(
        self,
        base_ns: int,
        providers: Iterable[str],
        nodes: tuple[I64, I64],
        host: str,
        shared: Mapping[str, int],
    ) -> Worked:
        """The tables, which use the columns up. `nodes` are the names of the operators, and their
        places in the file.
        """
        if not len(self._rows):
            return Worked(Kernels.empty(), Copies.empty(), (), ())
        take = self._rows.take
        vendor = _vendor(providers)
        columns = {
            "start_ns": take("start") + base_ns,
            "dur_ns": take("dur"),
            "name": take("name"),
            "stream": take("stream"),
            "op": _last_before(nodes, take("node"), take("at")),
        }
        kind, size = take("kind"), take("bytes")
        counts, items = (
            np.stack([take(f"{what}_{axis}") for axis in _AXES], axis=1)
            for what in ("grid", "block")
        )
        counts, items = _possible(counts), _possible(items)
        if vendor == "amd":  # workgroups or work-items, by a launching call that the file lacks
            counts[:] = NULL
        is_kernel, is_copy = kind == NULL, kind != NULL
        kernels = Kernels.build(
            workgroups=np.where(counts[:, 0] == NULL, NULL, counts.prod(axis=1))[is_kernel],
            **{f"workgroup_count_{axis}": counts[is_kernel, n] for n, axis in enumerate(_AXES)},
            **{f"workgroup_size_{axis}": items[is_kernel, n] for n, axis in enumerate(_AXES)},
            **{name: column[is_kernel] for name, column in columns.items()},
            device=0,
            **shared,
        )
        copies = Copies.build(
            kind=kind[is_copy],
            bytes=size[is_copy],
            **{name: column[is_copy] for name, column in columns.items()},
            device=0,
            **shared,
        )
        streams = tuple(Stream(0, name) for name in self._streams)
        return Worked(kernels, copies, (Device(index="0", host=host, vendor=vendor),), streams)


def _possible(sizes: I64) -> I64:
    """Sizes along three axes; NULL throughout where one is not stated, or they are too large."""
    fits = (sizes > 0).all(axis=1) & (np.prod(sizes.astype(np.float64), axis=1) < _MOST_ITEMS)
    kept: I64 = np.where(fits[:, None], sizes, NULL)
    return kept


def _kind(name: str, stated: str) -> str:
    """The kind of a copy or fill, by its name (`MemcpyHostToDevice`) or as roctracer states it
    (`H2D`); empty for a kernel.
    """
    match = _TRANSFER.match(name)
    if match is None:
        return ""
    if match[1].lower() == "set":
        return "fill"
    ends = _WORDS.search(name)
    kind = f"{_ENDS[ends[1].lower()]}2{_ENDS[ends[2].lower()]}" if ends else stated.lower()
    return kind if kind in _KINDS else "unknown"


def _vendor(providers: Iterable[str]) -> str:
    """Whose device the execution providers compute on; empty where none tells."""
    return next(
        (
            vendor
            for vendor, prefixes in _VENDORS.items()
            if any(name.startswith(prefixes) for name in providers)
        ),
        "",
    )


def _last_before(nodes: tuple[I64, I64], node: I64, at: I64) -> I64:
    """Of each record the row of the last node of its name that stands before it; NULL for none."""
    names, places = nodes
    found = np.full(len(node), NULL, np.int64)
    if not len(names):
        return found
    width = int(max(places.max(), at.max())) + 1
    keys = names * width + places
    order = np.argsort(keys, kind="stable")
    row = np.searchsorted(keys[order], node * width + at) - 1
    named = (node != NULL) & (row >= 0)
    candidate = order[np.maximum(row, 0)]
    fits = named & (names[candidate] == node)
    found[fits] = candidate[fits]
    return found
