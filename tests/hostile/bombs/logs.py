"""Texts and JSON that runtimes and servers log: HIP, MIOpen, call trees, onnxruntime,
perf_analyzer, rocminfo.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.hostile.bombs.bomb import Bomb, lines, pack, plain, scaled


def _hip(level: int, at: int, rest: str, tid: int = 0x7F0824E798C0) -> str:
    return f":{level}:hip_module.cpp :583 : {10**11 + at} us: 17154: [tid:{tid:#x}] {rest}\n"


def hip_kernels(folder: Path, scale: float, *, count: int) -> Path:
    """Launches of kernels of different names on queues of their own, none of which returns."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        for n in range(count):
            yield _hip(3, n, f" hipLaunchKernel ( {n:#x}, stream:{n:#x} )", 9 + n % 5000)
            yield _hip(3, n, f"ShaderName : _Z{n % 9000}gemmPfi", 9 + n % 5000)

    return pack(folder / "hip.log.gz", parts())


def hip_calls(folder: Path, scale: float, *, count: int) -> Path:
    """Calls that begin and do not return, all of one thread; then the returns of all."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        for n in range(count // 2):
            yield _hip(3, n, f" hipCall{n} ( {n:#x} )")
        for n in range(count // 2):
            yield _hip(3, count + n, f"hipCall{n}: Returned hipSuccess :")

    return pack(folder / "hip.log.gz", parts())


def hip_wrapped(folder: Path, scale: float, *, count: int) -> Path:
    """Records that are cut off, and go on in lines that have no header."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        for n in range(count):
            yield _hip(3, n, f" hipMemcpy ( {'a' * 99}")
            yield "a" * 120 + "\n"

    return pack(folder / "hip.log.gz", parts())


def hip_together(folder: Path, scale: float, *, count: int) -> Path:
    """Lines of a megabyte, with thousands of records on each."""
    count = scaled(count, scale)
    one = "".join(_hip(3, n, f" hipFree ( {n} ) ").strip() for n in range(11_000))
    return pack(folder / "hip.log.gz", (f"{one}\n" for _ in range(count)))


def hip_brackets(folder: Path, scale: float, *, count: int) -> Path:
    """Records of brackets and blanks, which patterns look through."""
    count = scaled(count, scale)
    body = "ShaderName : " + "_" * 4000 + "hip" * 400 + " " * 2000 + "(" * 500
    return pack(folder / "hip.log.gz", (_hip(3, n, body) for n in range(count)))


def miopen(folder: Path, scale: float, *, count: int) -> Path:
    """Lines of MIOpen, each a search of another problem."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        for n in range(count):
            yield (
                f"@{10**12 + n} MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv "
                f"-n {n} -c 64 -H 7 -W 7 -k 64 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -F 1 -t 1\n"
            )

    return pack(folder / "miopen.log.gz", parts())


_TREE = (
    "| REAL-CLOCK TIMER (I.E. WALL-CLOCK TIMER) |\n"
    "| LABEL | COUNT | DEPTH | METRIC | UNITS | SUM | MEAN | MIN | MAX | VAR | STDDEV | % SELF |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)


def tree(folder: Path, scale: float, *, count: int, names: int, depth: int, packed: bool) -> Path:
    """A call tree that goes down `depth` levels again and again."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        yield _TREE
        for n in range(count):
            level = n % depth
            label = f"|{n % 7}>>> {' ' * min(2 * level, 99)}|_f{n % names}"
            yield (
                f"| {label} | 1 | {level} | wall_clock | sec | 0.5 | 0.5 | 0.5 | 0.5 | 0 | 0 "
                "| 1.0 |\n"
            )

    name = "wall_clock-7.txt"
    return pack(folder / f"{name}.gz", parts()) if packed else plain(folder / name, parts())


def nodes(folder: Path, scale: float, *, count: int) -> Path:
    """Nodes of onnxruntime, each with inputs of shapes of its own."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        yield "["
        for n in range(count):
            yield (
                f'{"," if n else ""}{{"cat":"Node","pid":9,"tid":9,"dur":3,"ts":{5 * n},"ph":"X",'
                f'"name":"n{n}_kernel_time","args":{{"op_name":"Op{n % 20_000}","node_index":"{n}",'
                '"provider":"CPUExecutionProvider",'
                f'"input_type_shape":[{{"float":[{n},8]}},{{"float":[8,{n}]}}]}}}}'
            )
        yield "]"

    return pack(folder / "ort.json.gz", parts())


def sessions(folder: Path, scale: float, *, count: int) -> Path:
    """Runs of a session of onnxruntime that all overlap."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        yield "["
        for n in range(count):
            yield (
                f'{"," if n else ""}{{"cat":"Session","pid":9,"tid":9,"dur":{count + n},"ts":{n},'
                '"ph":"X","name":"model_run","args":{}}'
            )
        yield "]"

    return pack(folder / "ort.json.gz", parts())


def export(folder: Path, scale: float, *, experiments: int, requests: int) -> Path:
    """Exports of perf_analyzer: many levels, or many requests."""
    experiments = scaled(experiments, scale) if experiments > 1 else 1
    requests = scaled(requests, scale) if experiments == 1 else requests

    def parts() -> Iterator[str]:
        yield '{"experiments":['
        for level in range(experiments):
            yield (
                f'{"," if level else ""}{{"experiment":'
                f'{{"mode":"concurrency","value":{level + 1}}},'
                '"requests":['
            )
            for n in range(requests):
                at = 10**18 + 1000 * (level * requests + n)
                yield f'{"," if n else ""}{{"timestamp":{at},"response_timestamps":[{at + 500}]}}'
            yield f'],"window_boundaries":[{10**18},{10**18 + 10**9}]}}'
        yield '],"version":"2.51.0"}'

    return pack(folder / "export.json.gz", parts())


def answered(folder: Path, scale: float, *, count: int) -> Path:
    """A request of perf_analyzer with millions of answers."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        yield (
            '{"experiments":[{"experiment":{"mode":"concurrency","value":1},"requests":['
            f'{{"timestamp":{10**18},"response_timestamps":[{10**18}'
        )
        for _ in range(count):
            yield f",{10**18 + 5}"
        yield ']}],"window_boundaries":[]}]}'

    return pack(folder / "export.json.gz", parts())


def agents(folder: Path, scale: float, *, count: int) -> Path:
    """What rocminfo prints of thousands of agents."""
    count = scaled(count, scale)

    def parts() -> Iterator[str]:
        yield "ROCk module is loaded\n=====\nHSA Agents\n=====\n"
        for n in range(count):
            yield (
                f"*******\nAgent {n}\n*******\n  Name:   gfx942\n  Marketing Name:   AMD {n}\n"
                f"  Device Type:   GPU\n  BDFID:   {n}\n  Compute Unit:   304\n  Node:   {n}\n"
            )

    return pack(folder / "rocminfo.txt.gz", parts())


_OFTEN = ("metrics", "hotspots", "merge {} -o m.pftrace")
BOMBS = (
    Bomb("HIP log kernels", partial(hip_kernels, count=340_000), lines(*_OFTEN)),
    Bomb("HIP log calls open", partial(hip_calls, count=700_000), lines(*_OFTEN)),
    Bomb("HIP log wrapped", partial(hip_wrapped, count=250_000), lines(*_OFTEN)),
    Bomb("HIP log together", partial(hip_together, count=60), lines(*_OFTEN)),
    Bomb("HIP log brackets", partial(hip_brackets, count=9_000), lines(*_OFTEN)),
    Bomb("MIOpen log", partial(miopen, count=500_000), lines(*_OFTEN)),
    Bomb(
        "call tree few names",
        partial(tree, count=90_000, names=3, depth=45_000, packed=True),
        lines(*_OFTEN),
    ),
    Bomb(
        "call tree many names",
        partial(tree, count=50_000, names=50_000, depth=50, packed=False),
        lines(*_OFTEN),
    ),
    Bomb("onnxruntime nodes", partial(nodes, count=320_000), lines(*_OFTEN, "hotspots --by shape")),
    Bomb("onnxruntime runs overlap", partial(sessions, count=400_000), lines(*_OFTEN)),
    Bomb(
        "perf_analyzer 20,000 levels",
        partial(export, experiments=20_000, requests=9),
        lines("metrics", "merge {} -o m.pftrace"),
    ),
    Bomb(
        "perf_analyzer 900,000 requests",
        partial(export, experiments=1, requests=900_000),
        lines("metrics", "merge {} -o m.pftrace"),
    ),
    Bomb(
        "perf_analyzer answers",
        partial(answered, count=20_000_000),
        lines("metrics", "merge {} -o m.pftrace"),
    ),
    Bomb("rocminfo agents", partial(agents, count=40_000), lines("metrics")),
)
