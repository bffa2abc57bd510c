"""A Perfetto protobuf trace as columns of packets: framing, decompression, and the fields that
every packet has.

Field numbers are those of google/perfetto protos/perfetto/trace/trace_packet.proto (v58). What the
packets mean, and whether they are right, is in `pftrace_check`.
"""

from __future__ import annotations

import mmap
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.errors import InputError
from profharness.readers.bytes.limits import packets_of
from profharness.readers.bytes.proto_scan import I64, LENGTH, U8, Fields, Mask, frame, scan
from profharness.readers.perfetto.xspace import is_xspace, refusal
from profharness.rundir.blocks import GZIP, Blocks, Growth, read_head
from profharness.trace.columns.column import gathered, narrow

PACKET_TAG = 0x0A
CLOCK_SNAPSHOT, TRACK_EVENT, SYSTEM_INFO, COMPRESSED, GPU_EVENT, TRACK_DESCRIPTOR = (
    6,
    11,
    45,
    50,
    53,
    60,
)
GPU_INFO, ZSTD_COMPRESSED = 128, 133
MISSING = -1
_TIMESTAMP, _SEQUENCE, _INTERNED, _FLAGS, _CLEARED, _CLOCK, _DEFAULTS, _MACHINE = (
    8,
    10,
    12,
    13,
    41,
    58,
    59,
    98,
)
_NO_PAYLOAD = (_INTERNED, _DEFAULTS)
_CHUNK = 1 << 15
_HEAD = 256  # bytes that tell whether this is another format
_MOST_INFLATED = 512 * 1024  # bytes of packets in a bundle before compression
_MOST_UNPACKED = (
    1 << 26
)  # what is unpacked at all, so that a damaged or hostile bundle cannot fill the memory

_UNPACKED = Growth(ratio=20, beyond=16 << 20)
"""What a gzipped file becomes, and all bundles together: packets compress to a fifth, those of
telemetry alone to a fourteenth."""


@dataclass(frozen=True)
class Packets:
    """One row per packet, in file order; each column as narrow as its values are. `kind` is the
    number of the payload's field, 0 where there is none.

    `timestamp` and `clock` are MISSING where the packet has none; spans in the data are [start,
    end), empty where the packet has no such field. `cleared` marks packets that reset the interned
    state of their sequence.
    """

    data: U8
    start: I64
    kind: I64
    payload_start: I64
    payload_end: I64
    sequence: I64
    machine: I64
    timestamp: I64
    clock: I64
    flags: I64
    cleared: Mask
    interned_start: I64
    interned_end: I64
    defaults_start: I64
    defaults_end: I64
    damaged: I64

    def __len__(self) -> int:
        return len(self.start)

    def let_go(self) -> None:
        """Give back the memory of the file's pages: what is needed again is read again."""
        mapped = getattr(self.data.base, "obj", None)
        if isinstance(mapped, mmap.mmap):
            mapped.madvise(mmap.MADV_DONTNEED)

    def of_kind(self, kind: int) -> I64:
        """Rows of packets with this payload."""
        return np.flatnonzero(self.kind == kind)

    def payload(self, rows: I64) -> Fields:
        """Fields of the payloads of these packets; `Fields.row` counts within `rows`."""
        return scan(self.data, self.payload_start[rows], self.payload_end[rows])


@dataclass(frozen=True)
class Framing:
    """Where reading packets stopped: `size` is all of the data unless something there is no
    packet.
    """

    size: int
    stopped_at: int
    damage: str = ""
    bad_bundles: int = 0
    large_bundles: int = 0
    zstd_bundles: int = 0


def read_packets(path: Path) -> tuple[Packets, Framing]:
    """All packets of a file, plain or gzipped, with deflated bundles unpacked.

    Raises InputError when the file is missing, empty, or does not begin like a Perfetto trace; one
    of its own for an XSpace of TensorFlow or JAX.
    """
    data, damage = _bytes(path)
    if is_xspace(data[:_HEAD].tobytes(), path.name):
        raise refusal(path)
    most = packets_of(path)
    starts, ends, stopped = frame(data.data, PACKET_TAG, most)
    packets = _columns(data, starts, ends)
    if not len(packets) or (not packets.kind.any() and not packets.sequence.any()):
        raise InputError(
            f"{path} is not a Perfetto protobuf trace",
            "a JSON trace is turned into one by `profharness merge FILE -o OUT.pftrace`",
        )
    size = len(data)
    if len(packets) == most and stopped < size:
        damage = f"it holds more than {most} packets, as no trace of its size does"
    bundles = packets.of_kind(COMPRESSED)
    bad = large = 0
    if len(bundles):
        data, bad, large = _unpacked(packets, ends)
        starts, ends, upto = frame(data.data, PACKET_TAG, most)
        if len(starts) == most and upto < len(data):
            damage = f"it holds more than {most} packets, as no trace of its size does"
        packets = _columns(data, starts, ends)
    return packets, Framing(
        size, stopped, damage, bad, large, len(packets.of_kind(ZSTD_COMPRESSED))
    )


def _bytes(path: Path) -> tuple[U8, str]:
    read_head(path, 1)  # says what is wrong with a path that cannot be read
    with path.open("rb") as file:
        if file.read(len(GZIP)) != GZIP:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8), ""
    blocks = Blocks(path, growth=_UNPACKED)
    whole = b"".join(blocks)
    return np.frombuffer(whole, np.uint8), blocks.damage


def _unpacked(packets: Packets, ends: I64) -> tuple[U8, int, int]:
    """The data with each bundle replaced by its packets; how many bundles could not be read, or are
    too large.
    """
    pieces: list[bytes] = []
    bad = large = 0
    upto = 0
    room = _UNPACKED.beyond + _UNPACKED.ratio * len(packets.data)
    for row in packets.of_kind(COMPRESSED):
        # the record begins with its tag and length, right after the record before it
        pieces.append(packets.data[upto : ends[row - 1] if row else 0].tobytes())
        inflated = _inflated(
            packets.data[packets.payload_start[row] : packets.payload_end[row]].tobytes(), room
        )
        room -= len(inflated or b"")
        bad += inflated is None
        large += len(inflated or b"") > _MOST_INFLATED
        pieces.append(inflated or b"")
        upto = int(ends[row])
    pieces.append(packets.data[upto : ends[-1]].tobytes())
    return np.frombuffer(b"".join(pieces), np.uint8), bad, large


def _inflated(bundle: bytes, room: int) -> bytes | None:
    """The packets of a bundle; None where it is damaged, or grows beyond any size that a writer
    would make.
    """
    member = zlib.decompressobj()
    try:
        inflated = member.decompress(bundle, max(min(_MOST_UNPACKED, room), 1))
    except zlib.error:
        return None
    return inflated if member.eof else None


def _columns(data: U8, starts: I64, ends: I64) -> Packets:
    names = [f.name for f in fields(Packets) if f.name != "data"]
    blocks: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}
    for at in range(0, max(len(starts), 1), _CHUNK):
        part = _chunk(data, starts[at : at + _CHUNK], ends[at : at + _CHUNK], at)
        for name in names:
            blocks[name].append(narrow(getattr(part, name)))
    return Packets(data, **{name: gathered(blocks[name]) for name in names})


def _chunk(data: U8, starts: I64, ends: I64, first: int) -> Packets:
    rows = len(starts)
    parsed = scan(data, starts, ends)
    payload = parsed.take((parsed.wire == LENGTH) & ~np.isin(parsed.number, _NO_PAYLOAD))
    kind, payload_start, payload_end = (np.zeros(rows, np.int64) for _ in range(3))
    kind[payload.row], payload_start[payload.row], payload_end[payload.row] = (
        payload.number,
        payload.start,
        payload.end,
    )
    bounds = {}
    for name, number in (("interned", _INTERNED), ("defaults", _DEFAULTS)):
        entries = parsed.pick(number, LENGTH)
        for edge in ("start", "end"):
            column = np.zeros(rows, np.int64)
            column[entries.row] = getattr(entries, edge)
            bounds[f"{name}_{edge}"] = column
    flags = parsed.last(_FLAGS, rows)
    return Packets(
        data,
        starts,
        kind,
        payload_start,
        payload_end,
        sequence=parsed.last(_SEQUENCE, rows),
        machine=parsed.last(_MACHINE, rows),
        timestamp=_with_missing(parsed, _TIMESTAMP, rows),
        clock=parsed.last(_CLOCK, rows, MISSING),
        flags=flags,
        cleared=(flags & 1 > 0) | (parsed.last(_CLEARED, rows) > 0),
        damaged=np.unique(parsed.damaged) + first,
        **bounds,
    )


def _with_missing(parsed: Fields, number: int, rows: int) -> I64:
    """A time per packet. A number above 2**63 stays negative and is told apart from a missing one
    by being below it.
    """
    values = parsed.last(number, rows, 0)
    values[values < 0] = MISSING - 1
    values[~parsed.has(number, rows)] = MISSING
    return values
