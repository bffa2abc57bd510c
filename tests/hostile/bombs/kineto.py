"""Traces of torch.profiler: counters, ranges, operators, calls and processes, by the hundred
thousand.

What Kineto writes says much in few gzipped bytes, since events are nearly the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from tests.hostile.bombs.bomb import Bomb, lines, pack, scaled

_HEAD = '{"schemaVersion":1,"traceEvents":['


def _written(folder: Path, events: Iterable[str], name: str = "t.json.gz") -> Path:
    return pack(folder / name, _document(events))


def _document(events: Iterable[str]) -> Iterator[str]:
    yield _HEAD
    for number, event in enumerate(events):
        yield f",{event}" if number else event
    yield "]}"


_PLACE = '"pid":7,"tid":7'


def _event(
    category: str,
    name: str,
    start: float,
    length: float,
    args: str = "",
    place: str = _PLACE,
) -> str:
    return (
        f'{{"ph":"X","cat":"{category}","name":"{name}",{place},"ts":{start},"dur":{length},'
        f'"args":{{{args}}}}}'
    )


def _kernel(name: str, start: float, length: float, correlation: int, stream: int = 7) -> str:
    args = f'"device":0,"stream":{stream},"correlation":{correlation}'
    return _event("kernel", name, start, length, args, f'"pid":0,"tid":{stream}')


def _launch(start: float, correlation: int, length: float = 1) -> str:
    args = f'"correlation":{correlation}'
    return _event("cuda_runtime", "cudaLaunchKernel", start, length, args)


def counted(folder: Path, scale: float, *, ranges: int, counters: int) -> Path:
    """Ranges of CUPTI's profiler, each with all counters."""
    ranges = scaled(ranges, scale)
    args = ",".join(f'"c{n}":{n % 97}' for n in range(counters))
    place = '"pid":0,"tid":0'
    return _written(
        folder,
        (_event("cuda_profiler_range", f"k{n % 9}", 5 * n, 5, args, place) for n in range(ranges)),
    )


def overlapping(folder: Path, scale: float, *, count: int, category: str) -> Path:
    """Events of one thread (or stream) that all overlap, and none lies in another."""
    count = scaled(count, scale)
    place = '"pid":0,"tid":7' if category.startswith("gpu") else '"pid":7,"tid":7'
    args = {
        "gpu_user_annotation": '"device":0,"stream":7',
        "cuda_runtime": '"correlation":0',
    }.get(category, "")
    return _written(
        folder,
        (
            *(_kernel("k", 10 * n, 5, n + 1) for n in range(9)),
            *(_event(category, f"r{n % 99}", n, count + n, args, place) for n in range(count)),
        ),
    )


def nested(folder: Path, scale: float, *, count: int, depth: int, category: str) -> Path:
    """Towers of events of one thread inside of one another, `depth` each, with a kernel each."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for tower in range(max(1, count // depth)):
            start = tower * (2 * depth + 10)
            for n in range(depth):
                yield _event(category, f"n{n % 1000}", start + n, 2 * (depth - n))
            yield _launch(start + depth, tower + 1, 0.5)
            yield _kernel("k", start + depth + 1, 1, tower + 1)

    return _written(folder, events())


def ranges(folder: Path, scale: float, *, count: int) -> Path:
    """As many different ranges as kernels, one around the launch of each."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for n in range(count):
            yield _event("user_annotation", f"range {n}", 10 * n, 5)
            if n < count // 3:
                yield _launch(10 * n + 1, n + 1)
                yield _kernel("k", 10 * n + 3, 4, n + 1)

    return _written(folder, events())


def operators(folder: Path, scale: float, *, count: int, shapes: bool = False) -> Path:
    """Different operators (or shapes of one), each with a launch and a kernel."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for n in range(count):
            args = f'"External id":{n + 1}'
            name = f"aten::op{n}"
            if shapes:
                name = "aten::mm"
                args += (
                    f',"Input Dims":[[{n % 999 + 1},{n + 1}],[{n + 1},8]]'
                    ',"Input type":["float","float"]'
                )
            yield _event("cpu_op", name, 10 * n, 5, args)
            yield _launch(10 * n + 1, n + 1)
            yield _kernel(f"k{n % 9}", 10 * n + 3, 4, n + 1)

    return _written(folder, events())


def processes(folder: Path, scale: float, *, count: int) -> Path:
    """A call of each of so many processes."""
    count = scaled(count, scale)
    args = '"correlation":0'
    return _written(
        folder,
        (
            _event("cuda_runtime", "cudaFree", 2 * n, 1, args, f'"pid":{n + 10},"tid":1')
            for n in range(count)
        ),
    )


def threads(folder: Path, scale: float, *, count: int) -> Path:
    """An operator and a call of each of so many threads of one process."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for n in range(count):
            place = f'"pid":7,"tid":{n + 10}'
            yield _event("cpu_op", f"op{n % 9}", 2 * n, 1.5, f'"External id":{n}', place)
            yield _event("cuda_runtime", "cudaFree", 2 * n, 1, '"correlation":0', place)

    return _written(folder, events())


def streams(folder: Path, scale: float, *, count: int, names: int) -> Path:
    """Kernels of as many streams and names as a file may have, all at once."""
    count = scaled(count, scale)
    return _written(
        folder,
        (
            event
            for n in range(count)
            for event in (
                _launch(n, n + 1, 0.5),
                _kernel(f"gemm_{n % names}", n + 1, 99 + n % 7, n + 1, n % 9990),
            )
        ),
    )


def steps(folder: Path, scale: float, *, count: int) -> Path:
    """So many steps of the profiler, with a kernel each."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for n in range(count):
            yield _event("user_annotation", f"ProfilerStep#{n}", 10 * n, 9)
            yield _launch(10 * n + 1, n + 1)
            yield _kernel("k", 10 * n + 3, 4, n + 1)

    return _written(folder, events())


def stacks(folder: Path, scale: float, *, count: int, depth: int) -> Path:
    """Frames of Python around operators, deep and each with a name of its own."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        number = 0
        for tower in range(max(1, count // depth)):
            start = tower * (2 * depth + 10)
            for n in range(depth):
                number += 1
                args = f'"Python id":{number},"Python parent id":{number - 1 if n else "null"}'
                name = f"m{n % 300}.py({number}): f{number}"
                yield _event("python_function", name, start + n, 2 * (depth - n), args)
            yield _event("cpu_op", "aten::mm", start + depth, 2, f'"External id":{tower + 1}')
            yield _launch(start + depth + 0.5, tower + 1, 0.5)
            yield _kernel("k", start + depth + 1, 1, tower + 1)

    return _written(folder, events())


def long_names(folder: Path, scale: float, *, count: int, length: int) -> Path:
    """Kernels of so many names of so many characters, of brackets that a demangler follows."""
    count = scaled(count, scale)
    body = "a<(" * (length // 6) + ")>" * (length // 6)

    def events() -> Iterator[str]:
        for n in range(count):
            yield _launch(10 * n, n + 1)
            yield _kernel(f"void {body}{n}", 10 * n + 3, 4, n + 1)

    return _written(folder, events())


def collectives(folder: Path, scale: float, *, count: int) -> Path:
    """Kernels of NCCL in groups of their own, with sizes and ranks that are all different."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for n in range(count):
            args = (
                f'"External id":{n + 1},"Collective name":"allreduce","dtype":"Float",'
                f'"In msg nelems":{n + 1},"Out msg nelems":{n + 1},"Group size":8,'
                f'"Process Group Name":"{n}","Process Group Description":"g{n}",'
                f'"Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]"'
            )
            yield _event("cpu_op", "record_param_comms", 10 * n, 5, args)
            yield _launch(10 * n + 1, n + 1)
            more = args.replace('"External id"', f'"correlation":{n + 1},"External id"')
            place = '"pid":0,"tid":7'
            device = f'"device":0,"stream":7,{more}'
            yield _event("kernel", "ncclDevKernel_AllReduce", 10 * n + 3, 4, device, place)

    return _written(folder, events())


def allocations(folder: Path, scale: float, *, count: int) -> Path:
    """Instants of the allocator, on as many devices as a file may name."""
    count = scaled(count, scale)
    return _written(
        folder,
        (
            '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,'
            f'"ts":{n},"args":{{"Device Type":1,"Device Id":{n % 500},"Addr":{n},"Bytes":512,'
            f'"Total Allocated":{512 * n},"Total Reserved":{1024 * n}}}}}'
            for n in range(count)
        ),
    )


def synchronising(folder: Path, scale: float, *, count: int) -> Path:
    """Synchronisations and launches in turn, all kernels still running."""
    count = scaled(count, scale)

    def events() -> Iterator[str]:
        for n in range(count):
            yield _launch(4 * n, n + 1)
            yield _kernel("k", 4 * n + 1, 4 * (count - n) + 9, n + 1, n % 999)
            yield _event(
                "cuda_runtime", "cudaDeviceSynchronize", 4 * n + 2, 1, f'"correlation":{count + n}'
            )

    return _written(folder, events())


_OFTEN = ("metrics", "hotspots", "merge {} -o m.pftrace")
BOMBS = (
    Bomb(
        "kineto 170 x 9,990 counters", partial(counted, ranges=170, counters=9_990), lines(*_OFTEN)
    ),
    Bomb(
        "kineto 20,000 x 100 counters",
        partial(counted, ranges=20_000, counters=100),
        lines(*_OFTEN),
    ),
    Bomb(
        "kineto 200,000 annotations",
        partial(overlapping, count=200_000, category="user_annotation"),
        lines(*_OFTEN, "hotspots --by range"),
    ),
    Bomb(
        "kineto 200,000 GPU annotations",
        partial(overlapping, count=200_000, category="gpu_user_annotation"),
        lines(*_OFTEN, "hotspots --by range"),
    ),
    Bomb(
        "kineto 150,000 calls",
        partial(overlapping, count=150_000, category="cuda_runtime"),
        lines(*_OFTEN, "hotspots --by call"),
    ),
    Bomb(
        "kineto 200,000 operators overlap",
        partial(overlapping, count=200_000, category="cpu_op"),
        lines(*_OFTEN, "hotspots --by op"),
    ),
    Bomb(
        "kineto 300,000 operators deep",
        partial(nested, count=300_000, depth=9_900, category="cpu_op"),
        lines(*_OFTEN, "hotspots --by op", "hotspots --by module", "hotspots --by stack"),
    ),
    Bomb(
        "kineto 300,000 annotations deep",
        partial(nested, count=300_000, depth=9_900, category="user_annotation"),
        lines(*_OFTEN, "hotspots --by range"),
    ),
    Bomb(
        "kineto 300,000 ranges",
        partial(ranges, count=300_000),
        lines(*_OFTEN, "hotspots --by range"),
    ),
    Bomb(
        "kineto 60,000 operators",
        partial(operators, count=60_000),
        lines(*_OFTEN, "hotspots --by op", "plot {} --roofline -o r.pdf"),
    ),
    Bomb(
        "kineto 100,000 shapes",
        partial(operators, count=100_000, shapes=True),
        lines(*_OFTEN, "hotspots --by shape", "plot {} --roofline -o r.pdf"),
    ),
    Bomb("kineto 60,000 processes", partial(processes, count=60_000), lines(*_OFTEN)),
    Bomb(
        "kineto 200,000 threads",
        partial(threads, count=200_000),
        lines(*_OFTEN, "hotspots --by op"),
    ),
    Bomb(
        "kineto 150,000 kernels on streams",
        partial(streams, count=150_000, names=15_000),
        lines(*_OFTEN, "hotspots --by category", "compare {} {}"),
    ),
    Bomb(
        "kineto 100,000 steps", partial(steps, count=100_000), lines(*_OFTEN, "metrics --steps all")
    ),
    Bomb(
        "kineto 300,000 frames",
        partial(stacks, count=300_000, depth=900),
        lines(*_OFTEN, "hotspots --by stack", "hotspots --by module"),
    ),
    Bomb("kineto 400 long names", partial(long_names, count=400, length=40_000), lines(*_OFTEN)),
    Bomb("kineto 20,000 names", partial(long_names, count=20_000, length=800), lines(*_OFTEN)),
    Bomb("kineto 100,000 collectives", partial(collectives, count=100_000), lines(*_OFTEN)),
    Bomb("kineto 300,000 allocations", partial(allocations, count=300_000), lines(*_OFTEN)),
    Bomb("kineto 150,000 synchronisations", partial(synchronising, count=150_000), lines(*_OFTEN)),
)
