"""What rocprof-compute writes of the machine and of whole kernels: sysinfo.csv, roofline.csv,
tables of `analyze`.

sysinfo.csv and roofline.csv have one row with a column per fact; each release lacks some columns
and names others anew, and what the tool does not know is 0, empty or N/A. Tables of metrics become
details of their source: name and value with its unit, as printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import Table, read_table
from profharness.readers.bytes.limits import cut, decimal_of, whole
from profharness.readers.rocprof_compute import tool_metrics
from profharness.trace.model import ClockDomain, Device, Problem, Source, Strings, Trace
from profharness.trace.statistics import KERNELS, StatRow, ToolMetric
from profharness.trace.wanted import Wanted

name = "rocprof-compute-machine"

_SYSINFO = ("sysinfo.csv", "sysinfo.csv.gz")
_SYSTEM = "gpu_arch"
_OF_SYSTEM = {"cu_per_gpu", "num_xcd", "rocm_version", "gpu_model"}  # none of them is certain
_CHANNELS = ("num_memory_channels", "num_hbm_channels")
_ROOFLINE = {"device", "hbmbw"}
_METRICS = ("metric", "avg", "unit")
_TOP = ("kernel_name", "count")
_SUM = re.compile(r"sum\s*\((ns|us|ms|s)\)\Z", re.IGNORECASE)
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SHOWN = (
    "rocm_version",
    "compute_partition",
    "memory_partition",
    "gpu_arch",
    "hbm_bw",
    "total_l2_chan",
    "l2_banks",
    "lds_banks_per_cu",
    "max_waves_per_cu",
    "max_mclk",
    "version",
    "workload_name",
    "workload_path",
)


@dataclass(frozen=True)
class Machine:
    """The GPU model of a node. `details` are further facts by the tool's names."""

    host: str
    model: str
    architecture: str
    compute_units: int | None
    dies: int | None
    max_clock_mhz: int | None
    bandwidth_gb_s: float | None
    details: tuple[tuple[str, str], ...]

    def device(self, index: str) -> Device:
        """A device of this model."""
        return Device(
            index=index,
            host=self.host,
            name=self.model,
            vendor="AMD",
            compute_units=self.compute_units,
            architecture=self.architecture,
            dies=self.dies,
            max_clock_mhz=self.max_clock_mhz,
        )


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """The header of one of these files."""
    return (
        _kind(
            _columns(
                head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
            )
        )
        is not None
    )


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """Devices, statistics of kernels, or details; no records. Raises InputError when the file holds
    no row.
    """
    table = read_table(path)
    kind = _kind([column.lower() for column in table.columns])
    if not table.rows or kind is None:
        raise InputError(
            f"{path} holds no row",
            "the tool was interrupted before it wrote anything: record again",
        )
    details: tuple[tuple[str, str], ...] = ()
    devices: tuple[Device, ...] = ()
    statistics: tuple[StatRow, ...] = ()
    problems = table.problems()
    metrics: tuple[ToolMetric, ...] = ()
    host = ""
    if kind == "system":
        machine = _machine(table)
        host, details, devices = machine.host, machine.details, (machine.device("0"),)
    elif kind == "top":
        statistics, lost = _top(table)
        problems += list(_top_problems(path, statistics, lost))
    elif kind == "values":
        metrics = tool_metrics.of_view(table, problems)
    elif kind == "roofline":
        details = tuple(_roofline(table))
    else:
        details = tuple(_metrics(table))
        metrics = tool_metrics.of_report(table, problems)
    source = Source(
        str(path), name, ClockDomain.UNKNOWN, host=host, has_host_calls=False, details=details
    )
    return Trace(
        sources=(source,),
        strings=Strings(),
        devices=devices,
        statistics=statistics,
        tool_metrics=metrics,
        problems=tuple(problems),
    )


def machine_beside(path: Path) -> tuple[Machine | None, list[Problem]]:
    """The machine of sysinfo.csv in the same folder, or of a file below `out` in the workload's,
    None where there is no readable one; and what is wrong with that file.
    """
    beside = file_beside(path, _SYSINFO)
    if beside is None:
        return None, []
    try:
        table = read_table(beside)
    except InputError as error:
        return None, [Problem("warning", str(beside), 1, error.message)]
    return _machine(table) if table.rows else None, table.problems()


def file_beside(path: Path, names: Sequence[str]) -> Path | None:
    """The first of these files in the same folder or, of a file below `out`, in the workload's."""
    parts = path.parts[:-1]
    folders = [path.parent]
    if "out" in parts:
        last = len(parts) - 1 - parts[::-1].index("out")
        folders.append(Path(*parts[:last]))
    return next(
        (beside for folder in folders for name in names if (beside := folder / name).is_file()),
        None,
    )


def _columns(line: str) -> list[str]:
    return [column.strip().strip('"').lower() for column in line.split(",")]


def _kind(columns: list[str]) -> str | None:
    """Which file these columns are of."""
    names = set(columns)
    if _SYSTEM in names and len(names & _OF_SYSTEM) > 1:
        return "system"
    if names >= _ROOFLINE:
        return "roofline"
    if tuple(columns[:2]) == _TOP and any(_SUM.match(column) for column in columns):
        return "top"
    if names >= tool_metrics.VIEW:
        return "values"
    return "metrics" if columns[:2] == list(_METRICS[:2]) and _METRICS[2] in columns else None


def _machine(table: Table) -> Machine:
    fact = {column.lower(): _fact(values[0]) for column, values in table.columns.items()}
    channels = next((fact[name] for name in _CHANNELS if fact.get(name)), "")
    return Machine(
        host=fact.get("hostname", ""),
        model=fact.get("gpu_model", ""),
        architecture=fact.get("gpu_arch", ""),
        compute_units=_count(fact.get("cu_per_gpu", "")),
        dies=_count(fact.get("num_xcd", "")),
        max_clock_mhz=_count(fact.get("max_sclk", "")),
        bandwidth_gb_s=positive(fact.get("hbm_bw", "")),
        details=(
            *((column, fact[column]) for column in _SHOWN if fact.get(column)),
            *((("memory_channels", channels),) if channels else ()),
        ),
    )


def _fact(text: str) -> str:
    """A field as it stands; empty for the words by which the tool says that it does not know."""
    plain = text.strip()
    return "" if plain.lower() in tool_metrics.UNKNOWN else plain


def _count(text: str) -> int | None:
    """A positive whole number; the tool writes 0 or nothing where it does not know."""
    number = whole(text.removesuffix(".0"))
    return number if number is not None and number > 0 else None


def positive(text: str) -> float | None:
    """A number above zero; None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _roofline(table: Table) -> Iterator[tuple[str, str]]:
    """Measured ceilings per device, in GB/s, GFLOP/s or Gop/s."""
    for row in range(table.rows):
        device = (table.first("device") or ["0"])[row]
        for column, values in table.columns.items():
            if (
                column.lower() != "device"
                and not column.lower().endswith(("low", "high"))
                and values[row].strip()
            ):
                yield (
                    f"{column} of device {device}",
                    f"{values[row].strip()} {_ceiling_unit(column)}",
                )


def _ceiling_unit(column: str) -> str:
    low = column.lower()
    return "GB/s" if low.endswith("bw") else "GFLOP/s" if "flops" in low else "Gop/s"


def _metrics(table: Table) -> Iterator[tuple[str, str]]:
    labels, values, units = (
        table.first(column) or [""] * table.rows for column in ("Metric", "Avg", "Unit")
    )
    for label, value, unit in zip(labels, values, units, strict=True):
        if value.strip():
            yield label, f"{value.strip()} {unit}".strip()


def _top(table: Table) -> tuple[tuple[StatRow, ...], int]:
    """Kernels with their calls and total time; how many rows hold no numbers."""
    column = next(name for name in table.columns if _SUM.match(name))
    match = _SUM.match(column)
    unit = _NS[match[1].lower()] if match else 1
    rows = []
    for label, calls, total in zip(
        table.first("Kernel_Name") or [],
        table.first("Count") or [],
        table.columns[column],
        strict=True,
    ):
        try:
            # `analyze` breaks long names into lines
            rows.append(
                StatRow(
                    label.replace("\n", ""),
                    KERNELS,
                    cut(decimal_of(calls)),
                    cut((decimal_of(total) * unit).to_integral_value()),
                )
            )
        except (ArithmeticError, ValueError):
            continue
    return tuple(rows), table.rows - len(rows)


def _top_problems(path: Path, rows: tuple[StatRow, ...], lost: int) -> Iterator[Problem]:
    if rows:
        yield Problem(
            "info",
            str(path),
            len(rows),
            "rows are sums over dispatches of several executions, "
            "as many digits as the tool printed",
        )
    if lost:
        yield Problem("warning", str(path), lost, "rows hold no numbers and were left out")
