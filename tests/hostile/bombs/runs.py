"""Run directories of profharness: many series, levels, points, trials and artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from tests.hostile.bombs.bomb import Bomb, lines, scaled

_HEAD = "trial,kind,start_monotonic_ns,dur_ns,items\n"
_SECOND = 1_000_000_000
_LEVELS = 62


def _run(folder: Path, records: Iterable[str], **fields: str) -> Path:
    """A run of a scan with these points, each the JSON of its record."""
    run = folder / "run"
    run.mkdir()
    more = "".join(f',"{name}":{value}' for name, value in fields.items())
    (run / "manifest.json").write_text(
        '{"schema":1,"id":"r","created":"2026-01-02T03:04:05Z","profharness":"0","kind":"scan",'
        '"argv":["profharness","run"],"state":"done","scan":{"name":"batch"},'
        '"nodes":[{"host":"n0"}],"passes":[{"name":"bare","state":"done"}],'
        f'"points":[{",".join(records)}]{more}}}\n'
    )
    return run


def _point(name: str, backend: str, level: int, axis: str = "batch_size") -> str:
    return (
        f'{{"id":"{name}","pass_name":"bare","backend":"{backend}","{axis}":{level},'
        '"trials":3,"host":"n0","pid":9}'
    )


def _trials(run: Path, point: str, durations: Sequence[int], items: int, start: int = 0) -> None:
    folder = run / "points" / "bare" / point
    folder.mkdir(parents=True)
    rows = []
    at = start
    for number, duration in enumerate(durations):
        rows.append(f"{number},trial,{at},{duration},{items}\n")
        at += duration
    (folder / "trials.csv").write_text(_HEAD + "".join(rows))


def _rough(level: int, series: int) -> int:
    """A time that no curve of ours fits: each level is a step of its own."""
    return 1_000_000 * (level + 3) * (2 + (level * 7919 + series * 104729) % 11)


def series(folder: Path, scale: float, *, count: int, levels: int) -> Path:
    """So many series of so many levels, with times that fit no curve."""
    if count > 1:
        count = scaled(count, scale)
    levels = max(3, scaled(levels, scale))
    every = [(one, level) for one in range(count) for level in range(levels)]
    run = _run(folder, (_point(f"s{a}-b{b}", f"s{a}", b + 1) for a, b in every))
    for number, (one, level) in enumerate(every):
        times = [_rough(level, one) + 1000 * extra for extra in range(3)]
        _trials(run, f"s{one}-b{level}", times, level + 1, number * _SECOND)
    return run


def trials(folder: Path, scale: float, *, points: int, each: int) -> Path:
    """A scan of few points with hundreds of thousands of trials."""
    each = max(3, scaled(each, scale))
    run = _run(folder, (_point(f"b{b}", "torch", 1 << b) for b in range(points)))
    for b in range(points):
        times = [_rough(b, n % 13) for n in range(each)]
        _trials(run, f"b{b}", times, 1 << b, b * each * _SECOND)
    return run


def points(folder: Path, scale: float, *, count: int) -> Path:
    """Points whose trials are missing, and findings of each."""
    count = scaled(count, scale)
    return _run(folder, (_point(f"b{b}", "torch", b + 1) for b in range(count)))


def measured(folder: Path, scale: float, *, count: int) -> Path:
    """Points of many small files of trials, all of one series."""
    count = max(3, scaled(count, scale))
    run = _run(folder, (_point(f"b{b}", "torch", b + 1) for b in range(count)))
    for b in range(count):
        _trials(run, f"b{b}", [_rough(b, 0)] * 2, b + 1, b * _SECOND)
    return run


def missing(folder: Path, scale: float, *, count: int) -> Path:
    """A run that names files which are not there."""
    count = scaled(count, scale)
    listed = ",".join(
        f'{{"path":"artifacts/torch/n0/{n}/t.json","layer":"torch","format":"kineto",'
        f'"pass_name":"bare","host":"n0","pid":{n}}}'
        for n in range(count)
    )
    return _run(folder, (_point("b1", "torch", 1),), artifacts=f"[{listed}]")


def findings(folder: Path, scale: float, *, count: int) -> Path:
    """A run that has tens of thousands of findings, each with a long message."""
    count = scaled(count, scale)
    listed = ",".join(
        f'{{"id":"f{n}","severity":"warning","message":"{"m" * 90}{n}","fix":"f{n}"}}'
        for n in range(count)
    )
    return _run(folder, (_point("b1", "torch", 1),), findings=f"[{listed}]")


def served(folder: Path, scale: float, *, count: int) -> Path:
    """Levels of a served scan whose servers' statistics name many models."""
    models = scaled(count, scale)
    stats = ",".join(f'"m{n}":{{"success":{n},"batch_sizes":{{"1":{n}}}}}' for n in range(models))
    records = [
        f'{{"id":"c{n}","pass_name":"bare","concurrency":{n},"mode":"closed","host":"n0",'
        f'"level":{{"window_start_ns":{n}000000000,"window_end_ns":{n}900000000,"requests":99,'
        f'"concurrency":{n},"server_stats":{{{stats}}}}},'
        f'"result":{{"throughput":{100 * n},"latency_ms":{n}}}}}'
        for n in range(1, 9)
    ]
    return _run(folder, records)


def run_with(
    folder: Path, *, levels: int, second: int = _SECOND, served: int = 0, **fields: str
) -> Path:
    """A small run of points that take `second` ns each, for what is put beside them; `served`: the
    points are levels of so many requests.
    """
    if not served:
        run = _run(folder, (_point(f"b{b}", "torch", 1 << b) for b in range(levels)), **fields)
        for b in range(levels):
            _trials(run, f"b{b}", [second // 4] * 4, 1 << b, 7 * _SECOND + b * second)
        return run
    records = (
        f'{{"id":"c{n}","pass_name":"bare","concurrency":{n},"mode":"closed","host":"n0",'
        f'"level":{{"window_start_ns":0,"window_end_ns":{second},"requests":{served},'
        f'"concurrency":{n}}}}}'
        for n in range(1, levels + 1)
    )
    return _run(folder, records, **fields)


_ALL = ("metrics", "report", "saturation")
BOMBS = (
    Bomb("run 500 series", partial(series, count=500, levels=7), lines(*_ALL)),
    Bomb("run 8 series of 62", partial(series, count=8, levels=_LEVELS), lines(*_ALL)),
    Bomb("run 1,000 levels", partial(series, count=1, levels=1000), lines(*_ALL)),
    Bomb(
        "run 420,000 trials",
        partial(trials, points=2, each=210_000),
        lines(*_ALL, "plot {} -o plot.pdf", "plot {} --resources -o res.pdf"),
    ),
    Bomb("run 20,000 points", partial(points, count=20_000), lines(*_ALL)),
    Bomb("run 5,000 measured points", partial(measured, count=5_000), lines(*_ALL)),
    Bomb(
        "run 70,000 missing files",
        partial(missing, count=70_000),
        lines(*_ALL, "merge {} -o m.pftrace"),
    ),
    Bomb("run 40,000 findings", partial(findings, count=40_000), lines("metrics", "report")),
    Bomb("run 5,000 models served", partial(served, count=5_000), lines(*_ALL)),
)
