"""Speed, size and memory of the Perfetto writer: `python benchmarks/write_perfetto.py [--kernels N]
[--samples N] [--part N]`.

A made-up trace: kernels with launch arguments on 32 streams of 8 GPUs, 200 kernel names of about
175 characters, and telemetry samples. CPU time is that of `write` alone; the peak is of the whole
process. With `--part` the trace is made and written in parts of so many kernels, as a merge of many
files does, so that the peak is that of a part; the CPU time then includes making them. `--keep`
adds the figures to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import description
import numpy as np

from profharness.trace.model import Device, Kernels, Samples, Source, Stream, Strings, Trace
from profharness.trace.parts.sketch import sketch
from profharness.writers.metadata import outline
from profharness.writers.perfetto import Parts, WriteOptions, WriteReport, write, write_parts


def kernel_trace(kernels: int, samples: int) -> Trace:
    random = np.random.default_rng(7)
    strings = Strings(
        f"void at::native::kernel_{i:03d}<{'float, ' * 20}>({'long, ' * 3}int)" for i in range(200)
    )
    stream = random.integers(0, 32, kernels)
    name = random.integers(0, 200, kernels)
    start = 86_400_000_000_000 + np.cumsum(random.integers(500, 9_000, kernels))
    table = Kernels.build(
        start_ns=start,
        dur_ns=random.integers(0, 200_000, kernels),
        name=name,
        device=stream % 8,
        stream=stream,
        rank=0,
        pid=4711,
        tid=4711,
        correlation=np.arange(1, kernels + 1),
        source=0,
        workgroup_count_x=random.integers(1, 4_000, kernels),
        workgroup_count_y=1,
        workgroup_count_z=1,
        workgroup_size_x=256,
        workgroup_size_y=1,
        workgroup_size_z=1,
        vgpr=32 + name % 8 * 16,
        lds_bytes=name % 4 * 4096,
        lds_dynamic_bytes=0,
    )
    metric = strings.code("memory_tree")
    at = 86_400_000_000_000 + np.arange(samples) * 1_000_000 // 8
    table_s = Samples.build(
        at_ns=at,
        until_ns=at,
        device=np.arange(samples) % 8,
        metric=metric,
        value=random.normal(500, 100, samples),
        source=1,
    )
    sources = (
        Source(
            path="kernels.json", format="kineto", host="node0", rank=0, pid=4711, pass_name="torch"
        ),
        Source(path="telemetry.parquet", format="telemetry", host="node0", pass_name="torch"),
    )
    devices = tuple(
        Device(str(i), "node0", name="AMD Instinct MI300X", vendor="AMD") for i in range(8)
    )
    return Trace(
        sources,
        strings,
        devices,
        tuple(Stream(i % 8, str(i)) for i in range(32)),
        kernels=table,
        samples=table_s,
    )


def in_parts(kernels: int, samples: int, part: int) -> Parts:
    """The same kernels again and again, each part behind the one before; their pools are equal, so
    that they need no places.
    """
    first = kernel_trace(part, samples // max(kernels // part, 1))
    pools = sketch(first)
    pools = replace(pools, strings=first.strings)

    def traces() -> Iterator[Trace]:
        for number in range(kernels // part):
            trace = kernel_trace(part, samples // max(kernels // part, 1))
            later = number * 10_000 * part
            yield replace(
                trace,
                strings=pools.strings,
                kernels=trace.kernels.with_columns(start_ns=trace.kernels.start_ns + later),
                samples=trace.samples.with_columns(
                    at_ns=trace.samples.at_ns + later, until_ns=trace.samples.until_ns + later
                ),
            )

    return Parts(pools, (outline(first),), traces())


def written(args: argparse.Namespace, path: Path) -> WriteReport:
    options = WriteOptions(gpu_repr=args.gpu_repr)
    if args.part:
        return write_parts(in_parts(args.kernels, args.samples, args.part), path, options=options)
    return write(args.trace, path, options=options)


def peak_kib() -> int:
    """The largest resident set of this program; that of getrusage counts the process which started
    it, too.
    """
    return next(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument(
        "--gpu-repr", default="render-stage", choices=("render-stage", "track-event")
    )
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    args.trace = None if args.part else kernel_trace(args.kernels, args.samples)
    with tempfile.TemporaryDirectory() as folder:
        path = args.output or Path(folder) / "kernels.pftrace"
        wall, cpu = time.perf_counter(), time.process_time()
        report = written(args, path)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = peak_kib()
        few = kernel_trace(min(args.kernels, 1_000_000), 0)
        alone = write(
            few, Path(folder) / "alone.pftrace", options=WriteOptions(gpu_repr=args.gpu_repr)
        )
    records = report.kernels + report.samples
    figures = {
        "kernels": args.kernels,
        "samples": args.samples,
        "part": args.part,
        "gpu_repr": args.gpu_repr,
        "records": records,
        "cpu_s": round(cpu, 3),
        "wall_s": round(wall, 3),
        "records_per_cpu_s": round(records / cpu),
        "bytes": report.bytes,
        "bytes_per_kernel": round(alone.bytes / alone.kernels, 1),
        "peak_mb": peak // 1024,
    }
    print(json.dumps(figures))
    if args.keep:
        target = description.RESULTS / f"write-perfetto-{description.today()}.json"
        before = json.loads(target.read_text())["runs"] if target.exists() else []
        print(
            description.keep(
                "write-perfetto",
                {
                    "machine": description.machine(("profharness", "numpy")),
                    "runs": [*before, figures],
                },
            )
        )


if __name__ == "__main__":
    main()
