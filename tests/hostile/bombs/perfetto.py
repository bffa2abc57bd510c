"""Perfetto traces: tracks, interned strings, nesting, counters, flows and compressed bundles.

Packets are put together here field by field: the protobuf library would take minutes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from tests.hostile.bombs.bomb import Bomb, lines, pack, plain, scaled

_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_START = 63_857_982_592_000


def varint(number: int) -> bytes:
    """A number in protobuf's base 128."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def whole(field: int, number: int) -> bytes:
    """A field that is a number."""
    return varint(field << 3) + varint(number)


def text(field: int, value: bytes | str) -> bytes:
    """A field that is a text, or a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def packet(*fields: bytes, sequence: int = 1) -> bytes:
    """A packet of a trace."""
    return text(1, b"".join(fields) + whole(10, sequence))


def clocks() -> bytes:
    """The first packet: it clears the state, and says that all clocks agree."""
    reading = b"".join(text(1, whole(1, clock) + whole(2, _START)) for clock in (1, 3, 6))
    return packet(text(6, reading), whole(13, 1))


def process(uuid: int, pid: int, parent: int = 0) -> bytes:
    """The track of a process."""
    own = text(3, whole(1, pid) + text(6, f"p{pid}"))
    return packet(text(60, whole(1, uuid) + (whole(5, parent) if parent else b"") + own))


def track(uuid: int, parent: int, name: str) -> bytes:
    """A track below another."""
    return packet(text(60, whole(1, uuid) + text(2, name) + whole(5, parent)))


def thread(uuid: int, pid: int, tid: int) -> bytes:
    """The track of a thread."""
    return packet(text(60, whole(1, uuid) + text(4, whole(1, pid) + whole(2, tid))))


def event(
    kind: int, at: int, uuid: int, name: str = "", category: str = "", more: bytes = b""
) -> bytes:
    """An event of a track."""
    own = whole(9, kind) + whole(11, uuid)
    own += (text(23, name) if name else b"") + (text(22, category) if category else b"") + more
    return packet(whole(8, _START + at), whole(58, 6), text(11, own))


def _made(folder: Path, packets: Iterable[bytes], *, packed: bool = True) -> Path:
    parts = (
        part for group in ((clocks(), process(1, 77), thread(2, 77, 78)), packets) for part in group
    )
    return pack(folder / "t.pftrace.gz", parts) if packed else plain(folder / "t.pftrace", parts)


def deep(folder: Path, scale: float, *, count: int, depth: int, category: str) -> Path:
    """Slices inside of one another, in towers."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        at = 0
        for _ in range(max(1, count // depth)):
            for n in range(min(depth, count)):
                at += 1
                yield event(_BEGIN, at, 2, f"s{n % 500}", category)
            for _ in range(min(depth, count)):
                at += 1
                yield event(_END, at, 2)

    return _made(folder, packets())


def unfinished(folder: Path, scale: float, *, count: int) -> Path:
    """Slices that never end, of many tracks."""
    count = scaled(count, scale)
    return _made(
        folder, (event(_BEGIN, n, 2 + n % 50_000, f"s{n % 9}", "host") for n in range(count))
    )


def tracks(folder: Path, scale: float, *, count: int, chain: bool) -> Path:
    """Tracks below one another (`chain`) or all below the process, with a slice each."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            yield track(10 + n, 9 + n if chain and n else 1, f"t{n}")
        for n in range(count):
            yield event(_BEGIN, 3 * n, 10 + n, "s", "host")
            yield event(_END, 3 * n + 2, 10 + n)

    return _made(folder, packets())


def ring(folder: Path, scale: float, *, count: int) -> Path:
    """Tracks each of which is the parent of the next, the last of the first."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            yield track(10 + n, 10 + (n + 1) % count, f"t{n}")
        for n in range(count):
            yield event(_BEGIN, 3 * n, 10 + n, "s", "host")
            yield event(_END, 3 * n + 2, 10 + n)

    return _made(folder, packets())


def processes(folder: Path, scale: float, *, count: int) -> Path:
    """So many processes with a thread and a slice each."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            yield process(10 + 2 * n, 1000 + n)
            yield thread(11 + 2 * n, 1000 + n, 1000 + n)
            yield event(_BEGIN, 3 * n, 11 + 2 * n, "s", "host")
            yield event(_END, 3 * n + 2, 11 + 2 * n)

    return _made(folder, packets())


def interned(folder: Path, scale: float, *, count: int, each: int) -> Path:
    """Packets that intern `each` names, and begin their state anew each time."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(max(1, count // each)):
            names = b"".join(
                text(2, whole(1, i) + text(2, f"n{i * 7 + n}")) for i in range(1, min(each, count))
            )
            own = whole(9, _INSTANT) + whole(11, 2) + whole(10, 1) + text(22, "host")
            yield packet(
                whole(8, _START + n), whole(58, 6), text(11, own), text(12, names), whole(13, 1)
            )

    return _made(folder, packets())


def sequences(folder: Path, scale: float, *, count: int) -> Path:
    """Each packet of a sequence of its own."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            own = whole(9, _INSTANT) + whole(11, 2) + text(23, f"i{n % 99}") + text(22, "host")
            yield packet(
                whole(8, _START + n), whole(58, 6), text(11, own), whole(13, 1), sequence=n + 2
            )

    return _made(folder, packets())


def counters(folder: Path, scale: float, *, count: int, each: int) -> Path:
    """Tracks of counters, each with few values."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            own = whole(1, 10 + n) + text(2, f"Device {n % 400} Power [{n}]") + whole(5, 1)
            yield packet(text(60, own + text(8, b"")))
        for value in range(each):
            for n in range(count):
                yield event(_COUNTER, value * count + n, 10 + n, more=whole(30, value))

    return _made(folder, packets())


def flows(folder: Path, scale: float, *, count: int, each: int) -> Path:
    """Slices with many flows each, which no other slice ends."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            ids = b"".join(
                varint(47 << 3 | 1) + (n * each + i + 1).to_bytes(8, "little") for i in range(each)
            )
            yield event(_BEGIN, 3 * n, 2, "hipLaunchKernel", "hip_api", ids)
            yield event(_END, 3 * n + 2, 2)

    return _made(folder, packets())


def annotated(folder: Path, scale: float, *, count: int, each: int) -> Path:
    """Kernels with many arguments each, of different names."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        yield track(3, 1, "HIP Activity Device 0, Queue 0")
        for n in range(count):
            args = b"".join(
                text(4, text(10, f"a{(n * each + i) % 5000}") + whole(3, i)) for i in range(each)
            )
            yield event(_BEGIN, 3 * n, 3, f"k{n % 99}", "rocm_kernel_dispatch", args)
            yield event(_END, 3 * n + 2, 3)

    return _made(folder, packets())


def stages(folder: Path, scale: float, *, count: int, queues: int) -> Path:
    """Events of a GPU, of many queues, stages, GPUs and contexts."""
    count, queues = scaled(count, scale), scaled(queues, scale)

    def packets() -> Iterator[bytes]:
        specs = b"".join(text(24, whole(1, i) + text(2, f"stream {i}")) for i in range(1, queues))
        yield packet(text(12, specs))
        for n in range(count):
            own = (
                whole(1, n + 1) + whole(2, 900) + whole(5, n % 300) + whole(11, n % 90)
                + whole(13, n % queues + 1) + whole(14, 1) + text(20, f"k{n % 9_000}")
            )  # fmt: skip
            yield packet(whole(8, _START + n), whole(58, 6), text(53, own))

    return _made(folder, packets())


def bundles(folder: Path, scale: float, *, count: int, packed: bool) -> Path:
    """Bundles of packets that are nearly all the same, compressed."""
    count = scaled(count, scale)
    inner = event(_INSTANT, 1, 2, "i", "host") * scaled(20_000, scale)
    bundle = text(1, text(50, zlib.compress(inner, 9)) + whole(10, 1))
    return _made(folder, (bundle for _ in range(count)), packed=packed)


def snapshots(folder: Path, scale: float, *, count: int) -> Path:
    """Clock readings, each of clocks of its own."""
    count = scaled(count, scale)

    def packets() -> Iterator[bytes]:
        for n in range(count):
            clock = 64 + n % 60
            reading = text(1, whole(1, clock) + whole(2, n)) + text(
                1, whole(1, 6) + whole(2, _START + n)
            )
            yield packet(text(6, reading))
            own = whole(9, _INSTANT) + whole(11, 2) + text(23, "i") + text(22, "host")
            yield packet(whole(8, n), whole(58, clock), text(11, own))

    return _made(folder, packets())


_OFTEN = ("metrics", "hotspots", "merge {} -o m.pftrace", "validate", "scrub --dry-run")
BOMBS = (
    Bomb(
        "perfetto 240,000 operators deep",
        partial(deep, count=240_000, depth=9_900, category="host"),
        lines(*_OFTEN, "hotspots --by op"),
    ),
    Bomb(
        "perfetto 240,000 calls deep",
        partial(deep, count=240_000, depth=120_000, category="hip_api"),
        lines(*_OFTEN),
    ),
    Bomb("perfetto 500,000 unfinished", partial(unfinished, count=500_000), lines(*_OFTEN)),
    Bomb("perfetto 160,000 tracks", partial(tracks, count=160_000, chain=False), lines(*_OFTEN)),
    Bomb("perfetto chain of tracks", partial(tracks, count=160_000, chain=True), lines(*_OFTEN)),
    Bomb("perfetto ring of tracks", partial(ring, count=160_000), lines(*_OFTEN)),
    Bomb("perfetto 120,000 processes", partial(processes, count=120_000), lines(*_OFTEN)),
    Bomb("perfetto 1.2 M interned", partial(interned, count=1_200_000, each=4_000), lines(*_OFTEN)),
    Bomb("perfetto 900,000 interned", partial(interned, count=900_000, each=3), lines(*_OFTEN)),
    Bomb("perfetto 500,000 sequences", partial(sequences, count=500_000), lines(*_OFTEN)),
    Bomb("perfetto 150,000 counters", partial(counters, count=150_000, each=2), lines(*_OFTEN)),
    Bomb("perfetto 1.2 M flows", partial(flows, count=3_000, each=400), lines(*_OFTEN)),
    Bomb("perfetto 900,000 arguments", partial(annotated, count=15_000, each=60), lines(*_OFTEN)),
    Bomb(
        "perfetto 400,000 GPU events", partial(stages, count=400_000, queues=9_000), lines(*_OFTEN)
    ),
    Bomb("perfetto bundles", partial(bundles, count=400, packed=False), lines(*_OFTEN)),
    Bomb("perfetto bundles gzipped", partial(bundles, count=4_000, packed=True), lines(*_OFTEN)),
    Bomb("perfetto 240,000 clock readings", partial(snapshots, count=240_000), lines(*_OFTEN)),
)
