"""Tables of text: rocprof v1, and results of scans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.hostile.bombs.bomb import Bomb, lines, pack, plain, scaled

_V1 = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,"
    "sgpr,wave_size,sig,obj"
)
_TIMES = "DispatchNs,BeginNs,EndNs,CompleteNs,DurationNs"


def v1_rows(count: int, name: str, bad: str = "", more: str = "", cells: str = "") -> Iterator[str]:
    """results.csv of rocprof; `bad` stands where the workgroup's size does."""
    yield f"{_V1}{more},{_TIMES}\n"
    for n in range(count):
        at = 10**12 + 1000 * n
        yield (
            f'{n},"{name.format(n)}.kd",2,0,{n},7,7,256,{bad or 64},0,0,32,4,48,64,0x0,0x1{cells},'
            f"{at},{at + 100},{at + 600},{at + 700},500\n"
        )


def v1_bad(folder: Path, scale: float, *, count: int) -> Path:
    """Kernels of which no row can be used."""
    count = scaled(count, scale)

    def rows() -> Iterator[str]:
        yield f"{_V1},{_TIMES}\n"
        for n in range(count):
            yield f'{n},"k.kd",x,0,{n},7,7,y,z,0,0,32,4,48,64,0x0,0x1,a,b,c,d,e\n'

    return pack(folder / "results.csv.gz", rows())


def v1_kernels(folder: Path, scale: float, *, count: int, length: int) -> Path:
    """Kernels of names of so many characters."""
    name = f"k{{}}{'<(' * (length // 4)}{')>' * (length // 4)}"
    return pack(folder / "results.csv.gz", v1_rows(scaled(count, scale), name))


def v1_counters(folder: Path, scale: float, *, count: int, counters: int) -> Path:
    """Kernels with so many counters each."""
    more = "".join(f",C{n}" for n in range(counters))
    rows = v1_rows(scaled(count, scale), "k", "", more, ",1" * counters)
    return plain(folder / "results.csv", rows)


def v1_json(folder: Path, scale: float, *, count: int) -> Path:
    """results.json of rocprof with so many calls and arrows."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        yield (
            '{"traceEvents":[{},{"args":{"name":"CPU HIP API"},"ph":"M","pid":2,'
            '"name":"process_name","sort_index":1},{"args":{"name":"GPU0"},"ph":"M","pid":6,'
            '"name":"process_name","sort_index":2}'
        )
        for n in range(count):
            at = 10**12 + n
            times = f'"BeginNs":"{at}","EndNs":"{at + count}","DurationNs":"{count}"'
            if n % 2:
                yield (
                    f',{{"ph":"X","name":"k{n % 99}","pid":"6","tid":"0","ts":"{at // 1000}",'
                    f'"dur":"{count // 1000}","args":{{{times},"dev-id":"2",'
                    f'"queue-id":"{n % 9000}","pid":"7","tid":"7","stream-id":"0",'
                    f'"Name":"k{n % 99}","Data":""}}}}'
                )
            else:
                yield (
                    f',{{"ph":"X","name":"hipLaunchKernel","pid":"2","tid":"{n}",'
                    f'"ts":"{at // 1000}","dur":"1","args":{{{times},"pid":"7","tid":"{n}",'
                    '"Name":"hipLaunchKernel","Data":""}}'
                )
                yield (
                    f',{{"ts":{at // 1000},"ph":"s","cat":"DataFlow","id":{n},"pid":2,"tid":{n},'
                    '"name":"dep"}'
                )
        yield '],"otherData":{}}'

    return pack(folder / "results.json.gz", parts())


def stats(folder: Path, scale: float, *, count: int, length: int) -> Path:
    """Statistics of so many names."""
    count = scaled(count, scale)

    def rows() -> Iterator[str]:
        yield '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n'
        for n in range(count):
            yield f'"k{n}{"<a>" * (length // 3)}",1,100,100,0.1\n'

    return pack(folder / "results.stats.csv.gz", rows())


def scan(folder: Path, scale: float, *, series: int, levels: int, length: int) -> Path:
    """Results of a scan that fit no curve, with names of so many characters."""
    if series > 1:
        series = max(2, scaled(series, scale))
    levels = max(4, scaled(levels, scale))

    def rows() -> Iterator[str]:
        yield "device,batch_size,throughput,latency_ms,throughput_sem\n"
        for one in range(series):
            name = f"d{one}{'x' * length}"
            for level in range(levels):
                speed = (level + 1) * 100 / (2 + (level * 7919 + one * 104729) % 11)
                yield f"{name},{level + 1},{speed:.3f},{level % 17 + 1}.5,0.{level % 9 + 1}\n"

    return plain(folder / "scan.csv", rows())


def scan_wide(folder: Path, scale: float, *, columns: int, rows: int) -> Path:
    """Results of a scan with thousands of columns of text."""
    columns = scaled(columns, scale)
    head = "".join(f",k{n}" for n in range(columns))
    cells = ",a" * columns
    body = (f"{n + 1},{100 + n}{cells}\n" for n in range(max(4, scaled(rows, scale))))
    return pack(folder / "scan.csv.gz", (f"batch_size,throughput{head}\n", *body))


_OFTEN = ("metrics", "hotspots", "merge {} -o m.pftrace")
_SCAN = ("saturation", "plot {} -o p.pdf", "plot {} -o p.png", "compare {} {}")
BOMBS = (
    Bomb("rocprof CSV refused", partial(v1_bad, count=400_000), lines(*_OFTEN)),
    Bomb("rocprof CSV long names", partial(v1_kernels, count=15_000, length=1_000), lines(*_OFTEN)),
    Bomb(
        "rocprof CSV 9,900 counters",
        partial(v1_counters, count=290, counters=9_900),
        lines(*_OFTEN),
    ),
    Bomb("rocprof JSON 500,000 events", partial(v1_json, count=340_000), lines(*_OFTEN)),
    Bomb("rocprof statistics", partial(stats, count=20_000, length=800), lines(*_OFTEN)),
    Bomb("scan 40 series", partial(scan, series=40, levels=12, length=1_000), lines(*_SCAN)),
    Bomb("scan 8 series of 62", partial(scan, series=8, levels=62, length=9), lines(*_SCAN)),
    Bomb("scan 2,000 levels", partial(scan, series=1, levels=2_000, length=1_000), lines(*_SCAN)),
    Bomb("scan 4,000 columns", partial(scan_wide, columns=4_000, rows=900), lines(*_SCAN)),
)
