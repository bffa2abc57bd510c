"""The options of AMD's tracers, shared by `run` and `wrap`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

PANEL = "AMD tracers"


def _switch(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=PANEL)


def _value(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel=PANEL)


HipTrace = Annotated[bool | None, _switch("--hip-trace", "HIP calls of the host.")]
HsaTrace = Annotated[bool | None, _switch("--hsa-trace", "HSA calls of the host (voluminous).")]
KernelTrace = Annotated[
    bool | None, _switch("--kernel-trace", "Kernels (they always are recorded).")
]
MemoryCopyTrace = Annotated[
    bool | None, _switch("--memory-copy-trace", "Copies (they always are recorded).")
]
MarkerTrace = Annotated[bool | None, _switch("--marker-trace", "roctx ranges.")]
RcclTrace = Annotated[bool | None, _switch("--rccl-trace", "RCCL calls.")]
SysTrace = Annotated[bool | None, _switch("--sys-trace", "All interfaces (voluminous).")]
Stats = Annotated[bool | None, _switch("--stats", "The tool's own statistics files too.")]
Pmc = Annotated[
    list[str] | None,
    _value(
        'Hardware counters, "C1 C2" or C1,C2, or sets such as activity; '
        "in passes of their own (rocprofv3, rocprof)."
    ),
]
KernelIncludeRegex = Annotated[
    str | None, _value("Count only kernels whose name matches (rocprofv3).")
]
KernelIterationRange = Annotated[
    str | None, _value("Count only these launches of a kernel, for example [10-20] (rocprofv3).")
]
RocprofSysMode = Annotated[str | None, _value("sample (default), run or python (rocprof-sys).")]
ToolArg = Annotated[
    list[str] | None, _value("LAYER:ARG, passed to that layer's tool as it is. Repeatable.")
]
ExitLimit = Annotated[
    float | None,
    typer.Option(
        help=(
            "Seconds that a profiler may go on, writing nothing, "
            "after the workload's own end (default 300)."
        )
    ),
]


def joined(flags: dict[str, Any]) -> dict[str, Any]:
    """Repeated --pmc as one text, which the request takes apart."""
    if "pmc" in flags:
        flags["pmc"] = " ".join(flags["pmc"])
    return flags
