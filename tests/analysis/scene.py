"""Small traces written out by hand: kernels, host calls, copies, operators and marks, one line
each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Api,
    Copies,
    Device,
    Kernels,
    Marks,
    Ops,
    Problem,
    Samples,
    Source,
    Stream,
    Strings,
    Trace,
)


@dataclass
class Scene:
    """Adds records in any order; `build` makes the trace. Devices and streams appear as they are
    used.
    """

    sources: tuple[Source, ...] = (Source("a.json", "kineto", pid=7),)
    devices: tuple[Device, ...] = (Device("0", vendor="AMD", compute_units=10),)
    problems: tuple[Problem, ...] = ()
    strings: Strings = field(default_factory=Strings)
    streams: list[Stream] = field(default_factory=list)
    rows: dict[str, list[dict[str, int | float]]] = field(
        default_factory=lambda: {name: [] for name in _TABLES}
    )
    next_correlation: int = 100

    def call(
        self,
        name: str,
        start: int,
        end: int,
        *,
        tid: int = 1,
        pid: int = 7,
        source: int = 0,
        correlation: int | None = None,
    ) -> int:
        """A host call; returns its correlation id."""
        if correlation is None:
            self.next_correlation += 1
            correlation = self.next_correlation
        self._add(
            "api",
            start,
            end,
            name=self.strings.code(name),
            tid=tid,
            pid=pid,
            correlation=correlation,
            source=source,
        )
        return correlation

    def launch(self, start: int, end: int, **where: int) -> int:
        return self.call("hipLaunchKernel", start, end, **where)

    def kernel(
        self,
        start: int,
        end: int,
        by: int = NULL,
        *,
        name: str = "k",
        device: int = 0,
        stream: int = 0,
        workgroups: int = NULL,
        op: int = NULL,
        source: int = 0,
        queue: int = NULL,
        pid: int = NULL,
    ) -> None:
        self._add(
            "kernels",
            start,
            end,
            name=self.strings.code(name),
            correlation=by,
            device=device,
            stream=self._stream(device, stream),
            workgroups=workgroups,
            op=op,
            source=source,
            queue=queue,
            pid=pid,
            workgroup_size_x=64 if workgroups != NULL else NULL,
            workgroup_size_y=1 if workgroups != NULL else NULL,
            workgroup_size_z=1 if workgroups != NULL else NULL,
        )

    def copy(
        self,
        start: int,
        end: int,
        by: int = NULL,
        *,
        device: int = 0,
        stream: int = 0,
        src: int = NULL,
        dst: int = NULL,
        source: int = 0,
        kind: str = "h2d",
    ) -> None:
        self._add(
            "copies",
            start,
            end,
            kind=self.strings.code(kind),
            name=self.strings.code("Memcpy"),
            correlation=by,
            device=device,
            stream=self._stream(device, stream),
            src_device=src,
            dst_device=dst,
            source=source,
        )

    def op(
        self,
        name: str,
        start: int,
        end: int,
        *,
        tid: int = 1,
        source: int = 0,
        shapes: str = "",
        dtype: str = "",
    ) -> int:
        inputs = {
            key: self.strings.code(text)
            for key, text in (("shapes", shapes), ("dtype", dtype))
            if text
        }
        at = {"name": self.strings.code(name), "tid": tid, "pid": 7, "source": source}
        self._add("ops", start, end, **at, **inputs)
        return len(self.rows["ops"]) - 1

    def mark(
        self,
        kind: str,
        start: int,
        end: int,
        name: str = "",
        *,
        point: str = "",
        items: int = NULL,
        pid: int = 7,
        source: int = 0,
    ) -> None:
        self._add(
            "marks",
            start,
            end,
            kind=self.strings.code(kind),
            name=self.strings.code(name or kind),
            items=items,
            pid=pid,
            tid=1,
            point=self.strings.code(point) if point else NULL,
            source=source,
        )

    def sample(
        self,
        metric: str,
        start: int,
        end: int,
        value: float,
        *,
        device: int = NULL,
        source: int = 0,
    ) -> None:
        self.rows["samples"].append(
            {
                "at_ns": start,
                "until_ns": end,
                "metric": self.strings.code(metric),
                "value": value,
                "device": device,
                "source": source,
            }
        )

    def build(self) -> Trace:
        tables = {
            name: kind.build(
                **{
                    column: [row[column] for row in self.rows[name]]
                    for column in self.rows[name][0]
                }
            )
            for name, kind in _TABLES.items()
            if self.rows[name]
        }
        return Trace(
            sources=self.sources,
            strings=self.strings,
            devices=self.devices,
            streams=tuple(self.streams),
            problems=self.problems,
            **tables,
        )

    def _add(self, table: str, start: int, end: int, **columns: int) -> None:
        self.rows[table].append({"start_ns": start, "dur_ns": end - start, **columns})

    def _stream(self, device: int, stream: int) -> int:
        wanted = Stream(device, str(stream))
        if wanted not in self.streams:
            self.streams.append(wanted)
        return self.streams.index(wanted)


_TABLES = {
    "kernels": Kernels,
    "copies": Copies,
    "api": Api,
    "ops": Ops,
    "marks": Marks,
    "samples": Samples,
}
