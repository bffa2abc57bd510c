"""The lines of multi_process_benchmark.py of the DeepSparse examples, for scripts that read
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.records import PointSummary, Summary


def classic_lines(summary: Summary) -> tuple[str, ...]:
    """For each backend and batch size the point with most processes: a block of the tool's own
    lines and one on why its throughput is not the table's; none without such points.
    """
    last = {
        (point.backend, point.batch_size): point
        for point in sorted(summary.points, key=lambda point: point.processes or 0)
        if point.classic is not None
    }
    return tuple(line for point in last.values() for line in _block(point))


def _block(point: PointSummary) -> Iterator[str]:
    classic = point.classic
    if classic is None:
        return
    yield f"Original Model Path: {classic.model}"
    yield f"Batch Size: {classic.batch_size}"
    yield f"Throughput (items/sec): {classic.throughput:.4f}"
    yield f"Latency Mean (ms/batch): {classic.latency_mean_ms:.4f}"
    yield f"Latency Median (ms/batch): {classic.latency_median_ms:.4f}"
    yield f"Latency Std (ms/batch): {classic.latency_std_ms:.4f}"
    yield f"Iterations: {classic.iterations}"
    if point.throughput is not None:
        yield (
            f"({classic.throughput:.4g} sums each process over its own window, as "
            f"multi_process_benchmark.py of the DeepSparse examples does, whose lines these are; "
            f"the table's {point.throughput:.4g} is over the window common to all "
            f"{point.processes})"
        )
