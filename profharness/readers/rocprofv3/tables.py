"""The tables of a trace from the columns that rocprofiler-sdk records, the same for its CSV, JSON
and SQLite forms.

Grids are recorded in work-items and become workgroups here, rounded up. Times are CLOCK_BOOTTIME
ns. A correlation id of 0 means none. Where a form gives static and dynamic LDS as one figure, that
figure is the static one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from profharness.readers.bytes.limits import LATEST_NS
from profharness.readers.bytes.zero_times import times_of_zero
from profharness.readers.kineto.tables import marks_from
from profharness.readers.rocprofv3.agents import Places, Process
from profharness.readers.rocprofv3.memory import MemoryRows, held
from profharness.trace import nesting
from profharness.trace.columns.build import Growing, per_text
from profharness.trace.columns.table import NULL, TableT, concat
from profharness.trace.model import (
    I64,
    Api,
    Copies,
    Counters,
    Kernels,
    Marks,
    Ops,
    Problem,
    Samples,
    Source,
    Strings,
    Trace,
)
from profharness.trace.statistics import StatRow

MARKER = "marker"
_DIRECTIONS = {
    "HOST_TO_DEVICE": "h2d",
    "DEVICE_TO_HOST": "d2h",
    "DEVICE_TO_DEVICE": "d2d",
    "HOST_TO_HOST": "h2h",
}
_DOMAINS = ("hip", "hsa", MARKER, "rccl", "rocdecode", "rocjpeg")

# Kernels: start, end, name, agent, queue, stream, tid, correlation, dispatch, grid_x ..., size_x
# ..., vgpr, accum_vgpr, sgpr, lds, lds_dynamic, scratch. Copies: start, end, name, bytes,
# source_agent, target_agent, stream, correlation. Calls: start, end, name, domain, tid,
# correlation. Times in ns; names and domains are codes of the strings; all other columns are plain
# numbers.
Columns = Mapping[str, I64]


def domain_of(recorded: str) -> str:
    """`hip` for HIP_RUNTIME_API_EXT, `hsa` for HSA_AMD_EXT_API, and so on; other domains in their
    own words.
    """
    low = recorded.lower()
    return next(
        (domain for domain in _DOMAINS if low.startswith(domain) or f"_{domain}_" in low),
        low.removesuffix("_api"),
    )


def is_runtime(domain: str) -> bool:
    """Whether a domain is one of the libraries whose calls the tool intercepts."""
    return domain in _DOMAINS


class RocmTables:
    """Collects the tables of one file, process by process."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        self.places = Places()
        self._negative = self._zero_calls = 0
        self._kernels: list[Kernels] = []
        self._copies: list[Copies] = []
        self._api: list[Api] = []
        self._marks: list[Marks] = []
        self._counters: list[Counters] = []
        self._samples: list[Samples] = []
        self._events: list[Api] = []
        self._ops: list[Ops] = []

    def trace(
        self,
        sources: Sequence[Source],
        problems: Sequence[Problem],
        statistics: Sequence[StatRow] = (),
    ) -> Trace:
        """The trace of all that was collected."""
        return Trace(
            sources=tuple(sources),
            strings=self.strings,
            devices=tuple(self.places.devices),
            streams=tuple(self.places.streams),
            kernels=_joined(Kernels, self._kernels),
            copies=_joined(Copies, self._copies),
            api=_joined(Api, [*self._api, *self._events]),
            ops=_joined(Ops, self._ops),
            marks=_joined(Marks, self._marks),
            counters=_joined(Counters, self._counters),
            samples=_joined(Samples, self._samples),
            problems=tuple(problems),
            statistics=tuple(statistics),
        )

    def problems(self, where: str) -> Iterator[Problem]:
        """What was repaired or left out of the records' times."""
        for count, said in (
            (self._negative, "records end before they start: their duration counts as zero"),
            (self._zero_calls, "host records have times of 0 and 0 and were left out"),
        ):
            if count:
                yield Problem("warning", where, count, said)

    @property
    def has_calls(self) -> bool:
        """Whether any host call was collected."""
        return bool(self._api)

    def add_kernels(self, process: Process, columns: Columns, source: int) -> None:
        """Add kernels. A column `workgroups` goes before what the grid gives."""
        start, dur = self._device_times(columns)
        device = self.places.device_positions(process, columns["agent"])
        stream = columns["stream"] if np.any(columns["stream"] != NULL) else columns["queue"]
        count, size = _geometry(columns)
        kernels = Kernels.build(
            start_ns=start,
            dur_ns=dur,
            name=columns["name"],
            device=device,
            queue=columns["queue"],
            stream=self.places.stream_positions(process, device, stream),
            tid=columns["tid"],
            correlation=_ids(columns["correlation"]),
            dispatch=columns["dispatch"],
            graph=_ids(columns["graph"]) if "graph" in columns else NULL,
            workgroups=_product(count) if "workgroups" not in columns else columns["workgroups"],
            workgroup_count_x=count[0],
            workgroup_count_y=count[1],
            workgroup_count_z=count[2],
            workgroup_size_x=size[0],
            workgroup_size_y=size[1],
            workgroup_size_z=size[2],
            vgpr=columns["vgpr"],
            accum_vgpr=columns["accum_vgpr"],
            sgpr=columns["sgpr"],
            lds_bytes=columns["lds"],
            lds_dynamic_bytes=columns["lds_dynamic"],
            scratch_bytes=columns["scratch"],
            **self._shared(process, source),
        )
        if len(kernels):
            self._kernels.append(kernels)

    @property
    def kernels(self) -> int:
        """How many kernels were added so far."""
        return sum(len(part) for part in self._kernels)

    def add_counters(self, kernel: I64, name: I64, value: I64, source: int) -> None:
        """Add counter values; `kernel` are positions among all kernels. Values of one counter and
        kernel are added up.
        """
        if not len(kernel):
            return
        width = len(self.strings)
        key, row = np.unique(kernel * width + name, return_inverse=True)
        total = np.zeros(len(key))
        np.add.at(total, row, value)
        self._counters.append(
            Counters.build(kernel=key // width, name=key % width, value=total, source=source)
        )

    def add_copies(self, process: Process, columns: Columns, source: int) -> None:
        """Add copies. Their kind is the recorded direction; a copy between two devices is peer to
        peer.
        """
        start, dur = self._device_times(columns)
        kind = self._copy_kinds(columns)
        codes = {name: self.strings.find(name) for name in ("h2d", "d2h", "h2h")}
        reads_host, writes_host = (
            np.isin(kind, [codes["h2d"], codes["h2h"]]),
            np.isin(kind, [codes["d2h"], codes["h2h"]]),
        )
        from_device = self.places.device_positions(
            process, np.where(reads_host, NULL, columns["source_agent"])
        )
        to_device = self.places.device_positions(
            process, np.where(writes_host, NULL, columns["target_agent"])
        )
        device = np.where(to_device != NULL, to_device, from_device)
        copies = Copies.build(
            start_ns=start,
            dur_ns=dur,
            kind=kind,
            name=columns["name"],
            bytes=columns["bytes"],
            device=device,
            src_device=from_device,
            dst_device=to_device,
            stream=self.places.stream_positions(process, device, columns["stream"]),
            correlation=_ids(columns["correlation"]),
            **self._shared(process, source),
        )
        if len(copies):
            self._copies.append(copies)

    def add_calls(self, process: Process, columns: Columns, source: int) -> None:
        """Add host calls; those of domain `marker` (a code of the strings) are marks. A column
        `pid` goes before the process's.
        """
        columns = self._placed(columns)
        calls = self._calls(process, columns, source)
        is_mark = columns["domain"] == self.strings.code(MARKER)
        if not is_mark.all():
            self._api.append(calls.take(~is_mark) if is_mark.any() else calls)
        if is_mark.any():
            rows = Growing("start", "dur", "name", "pid", "tid")
            rows.add(
                int(is_mark.sum()),
                start=calls.start_ns[is_mark],
                dur=calls.dur_ns[is_mark],
                name=columns["name"][is_mark],
                pid=calls.pid[is_mark],
                tid=columns["tid"][is_mark],
            )
            shared = self._shared(process, source)
            del shared["pid"]
            self._marks.append(marks_from(rows, self.strings, 0, shared))

    def add_memory(self, process: Process, rows: MemoryRows, source: int) -> Counter[str]:
        """Add what the process held of its devices' memory; the answer counts records that tell
        nothing of it, by what they are.
        """
        found = held(rows, self.strings, self.places, process, source)
        if len(found.samples):
            self._samples.append(found.samples)
        return Counter(
            {
                "releases of memory that was allocated before the recording": found.unpaired,
                "memory records that say too little": found.unsure,
            }
        )

    def add_events(self, process: Process, columns: Columns, domain: str, source: int) -> None:
        """Add what a runtime or driver did for the process: columns as of calls, without domain and
        correlation, since such records launch nothing. They do not count as host calls
        (`trace.call_names.EVENT_DOMAINS`).
        """
        columns = self._placed(columns)
        if count := len(columns["start"]):
            codes = np.full(count, self.strings.code(domain), np.int64)
            none = np.full(count, NULL, np.int64)
            full = {**columns, "domain": codes, "correlation": none}
            self._events.append(self._calls(process, full, source))

    def add_functions(self, process: Process, columns: Columns, source: int) -> None:
        """Add functions of the program (columns as of calls) as operators, nested per thread."""
        columns = self._placed(columns)
        if not len(columns["start"]):
            return
        calls = self._calls(process, columns, source)
        thread = nesting.threads(calls.pid, calls.tid)
        self._ops.append(
            Ops.build(
                start_ns=calls.start_ns,
                dur_ns=calls.dur_ns,
                name=calls.name,
                host=calls.host,
                pid=calls.pid,
                tid=calls.tid,
                depth=nesting.nest(calls.start_ns, calls.dur_ns, thread).depth,
                source=source,
            )
        )

    def _calls(self, process: Process, columns: Columns, source: int) -> Api:
        start, dur = self._times(columns)
        shared = self._shared(process, source)
        pid = columns.get("pid", np.full(len(start), process.pid))
        del shared["pid"]
        return Api.build(
            start_ns=start,
            dur_ns=dur,
            name=columns["name"],
            domain=columns["domain"],
            tid=columns["tid"],
            correlation=_ids(columns["correlation"]),
            pid=pid,
            **shared,
        )

    def _placed(self, columns: Columns) -> Columns:
        """Records of the host without those that have times of 0 and 0, which are counted."""
        lost = times_of_zero(columns["start"], columns["end"])
        if not lost.any():
            return columns
        self._zero_calls += int(lost.sum())
        return {name: column[~lost] for name, column in columns.items()}

    def domains(self, recorded: I64) -> I64:
        """Codes of domains for codes of the tool's own names of them."""
        names = {
            text: self.strings.code(text)
            for text in sorted({domain_of(self.strings[int(c)]) for c in np.unique(recorded)})
        }
        return per_text(self.strings, recorded, lambda text: names[domain_of(text)])

    def _shared(self, process: Process, source: int) -> dict[str, int]:
        return {
            "host": self.strings.code(process.host) if process.host else NULL,
            "pid": process.pid,
            "source": source,
        }

    def _times(self, columns: Columns) -> tuple[I64, I64]:
        """Starts and durations. A record that ends before it starts has no length; it is
        counted.
        """
        dur = columns["end"] - columns["start"]
        negative = dur < 0
        self._negative += int(negative.sum())
        return columns["start"], np.where(negative, 0, dur)

    def _device_times(self, columns: Columns) -> tuple[I64, I64]:
        """The same, for what ran on a device: times of 0 and 0 are none."""
        start, dur = self._times(columns)
        return np.where(times_of_zero(columns["start"], columns["end"]), NULL, start), dur

    def _copy_kinds(self, columns: Columns) -> I64:
        codes = {
            kind: self.strings.code(kind) for kind in (*_DIRECTIONS.values(), "p2p", "unknown")
        }
        kind = per_text(self.strings, columns["name"], lambda text: codes[_direction(text)])
        ends = columns["source_agent"], columns["target_agent"]
        between = (
            (kind == codes["d2d"]) & (ends[0] != ends[1]) & (ends[0] != NULL) & (ends[1] != NULL)
        )
        return np.where(between, codes["p2p"], kind)


def _joined(kind: type[TableT], parts: list[TableT]) -> TableT:
    return concat(parts) if parts else kind.empty()


def _direction(name: str) -> str:
    return next((kind for word, kind in _DIRECTIONS.items() if name.endswith(word)), "unknown")


def _ids(correlation: I64) -> I64:
    return np.where(correlation > 0, correlation, NULL)


def _geometry(columns: Columns) -> tuple[list[I64], list[I64]]:
    """Workgroups and work-items per workgroup along x, y, z; NULL where either is not recorded."""
    sizes = [columns[f"size_{axis}"] for axis in "xyz"]
    grids = [columns[f"grid_{axis}"] for axis in "xyz"]
    both_recorded = np.logical_and.reduce([part > 0 for part in (*sizes, *grids)])
    counts = [
        np.where(both_recorded, -(-grid // np.maximum(size, 1)), NULL)
        for grid, size in zip(grids, sizes, strict=True)
    ]
    return counts, [np.where(size > 0, size, NULL) for size in sizes]


def _product(count: list[I64]) -> I64:
    """Workgroups of each launch; NULL where they are not known, or more than a column holds."""
    size = np.abs(count[0].astype(np.float64) * count[1] * count[2])
    known = (count[0] != NULL) & (size < LATEST_NS)
    product: I64 = np.where(known, count[0] * count[1] * count[2], NULL)
    return product
