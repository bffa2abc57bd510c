"""The records of a trace as tables that turn into pandas frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from profharness.report.frame import integers
from profharness.rundir.shown.screen import one_line
from profharness.trace.columns.strings import Strings
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32
from profharness.trace.sample_metrics import unit_of

if TYPE_CHECKING:
    import pandas as pd

    from profharness.trace.columns.table import Table
    from profharness.trace.model import Problem, Samples, Trace


@dataclass(frozen=True, repr=False)
class Records:
    """Records of one kind. `len` is their number; each call of `to_pandas` makes a frame that is
    the caller's own.
    """

    kind: str
    count: int
    make: Callable[[], pd.DataFrame]

    def to_pandas(self) -> pd.DataFrame:
        """One row per record, with the columns of docs/formats.md#tables."""
        return self.make()

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<{self.count} {self.kind}; .to_pandas() makes a DataFrame>"


@dataclass(frozen=True, eq=False, repr=False)
class TraceTables:
    """The records of a run or of trace files, one table per kind of record.

    Kernels, copies, calls, operators, marks and counters are those of one pass, that of
    `hotspots`, so that their sums are its totals; telemetry and requests are those of all passes.
    Times are int64 ns as recorded: of a run on the run's clock, of a single file on its own.
    """

    whole: Trace
    chosen: Trace
    pass_name: str | None = None

    @property
    def kernels(self) -> Records:
        """Device kernels: `name`, `start_ns`, `dur_ns`, place, launch geometry, `op`."""
        return self._of_pass("kernels")

    @property
    def copies(self) -> Records:
        """Copies and fills of devices, `bytes` in B."""
        return self._of_pass("copies")

    @property
    def api(self) -> Records:
        """Host calls into a runtime, driver or communication library."""
        return self._of_pass("api")

    @property
    def ops(self) -> Records:
        """Framework operators, nested per thread (`depth`)."""
        return self._of_pass("ops")

    @property
    def marks(self) -> Records:
        """Points, trials, steps and ranges of the program, by `kind`."""
        return self._of_pass("marks")

    @property
    def counters(self) -> Records:
        """Hardware counters per dispatch; `kernel` is a row of `kernels`."""
        return self._of_pass("counters")

    @property
    def samples(self) -> Records:
        """Telemetry: one value of one metric, in its `unit`, from `at_ns` to `until_ns`."""
        table = self.whole.samples
        return Records("samples", len(table), lambda: telemetry_frame(self.whole, table))

    @property
    def requests(self) -> Records:
        """Served requests: when each was meant, sent and answered."""
        table = self.whole.requests
        return Records("requests", len(table), lambda: trace_frame(self.whole, table))

    @property
    def host_samples(self) -> Records:
        """Where threads of Python stood: `stack`, one line per frame, the innermost first."""
        return self._of_pass("host_samples")

    @property
    def problems(self) -> Records:
        """What the readers dropped, repaired or could not link, with counts."""
        rows = self.whole.problems
        return Records("problems", len(rows), lambda: _problems_frame(rows))

    def _of_pass(self, name: str) -> Records:
        table: Table = getattr(self.chosen, name)
        return Records(name, len(table), lambda: trace_frame(self.chosen, table))

    def __repr__(self) -> str:
        held = ", ".join(f"{len(table)} {name}" for name, table in self.chosen.tables())
        of_pass = f" of pass {one_line(self.pass_name)}" if self.pass_name else ""
        return f"<trace{of_pass}: {held}>"


def trace_frame(trace: Trace, table: Table) -> pd.DataFrame:
    """Every column as it is declared, with names in place of positions, and missing what was not
    recorded; then the pass. Texts are categories; units stand in `attrs["units"]`.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    units = {}
    for column in fields(table):
        values, unit = getattr(table, column.name), column.metadata["unit"]
        if unit == "string":
            values = _texts(values, trace.strings.texts)
        elif unit == "index" and column.metadata["of"] == "ops":
            values = _texts(np.append(trace.ops.name, np.int32(NULL))[values], trace.strings.texts)
        elif unit == "index":
            values = _texts(values, _pool(trace, column.metadata["of"]))
        elif unit != "ns" and values.dtype.kind == "i":
            values = integers(values.copy(), values == NULL)
        columns[column.name] = values
        if unit not in ("", "ns", "string", "index"):
            units[column.name] = unit
    columns["pass"] = _texts(
        getattr(table, "source"),  # noqa: B009  every kind of record has one, their base does not
        [one.pass_name for one in trace.sources],
    )
    frame = pd.DataFrame(columns)
    frame.attrs["units"] = units
    return frame


def _pool(trace: Trace, of: str) -> Sequence[str]:
    """The names that the positions of a column refer to."""
    if of == "devices":
        return [device.index for device in trace.devices]
    if of == "streams":
        return [stream.name for stream in trace.streams]
    return [source.path for source in trace.sources]


def telemetry_frame(trace: Trace, table: Samples) -> pd.DataFrame:
    """One row per sample, with its host and the unit of its metric."""
    frame = trace_frame(trace, table)
    hosts = [source.host for source in trace.sources]
    units = {name: unit_of(name) for name in trace.strings.decode(np.unique(table.metric))}
    frame.insert(2, "host", _texts(table.source, hosts))
    frame.insert(5, "unit", frame["metric"].map(units))
    return frame


def _problems_frame(rows: Sequence[Problem]) -> pd.DataFrame:
    import pandas as pd

    names = ("severity", "source", "count", "message")
    return pd.DataFrame({name: [getattr(row, name) for row in rows] for name in names})


def _texts(positions: Any, texts: Sequence[str]) -> Any:
    """Categories: the texts at these positions of the list; missing are NULL and empty texts."""
    import pandas as pd

    pool = Strings()
    codes: I32 = np.full(len(texts) + 1, NULL, np.int32)  # the last one is that of NULL
    used = np.bincount(np.asarray(positions, np.int64) + 1, minlength=len(texts) + 1)
    for at in np.flatnonzero(used[1:]).tolist():
        if texts[at]:
            codes[at] = pool.code(texts[at])
    found: I32 = codes[positions]
    return pd.Categorical.from_codes(found, pd.Index(pool.texts))
