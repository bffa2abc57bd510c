"""Ways to record what is missing, each in two wordings: one for every device, which stands in what
figures, verdicts and findings need, and one for people whose devices are NVIDIA's, for which no
tool of AMD records anything.

Whoever makes such a sentence takes the words from here, so that the report can put the others into
their place (`profharness/report/text/measured/vendors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Way:
    """One way, as a part of a sentence. `words` suit every device and stand in JSON; `on_nvidia` is
    read in their place where all devices are NVIDIA's. In a sentence it stands as its `words`.
    """

    words: str
    on_nvidia: str

    def __str__(self) -> str:
        return self.words


KERNELS: Final = Way("--profile torch, or rocprofv3 on AMD", "--profile torch")
KERNELS_TOO: Final = Way("--profile torch, or --kernel-trace with rocprofv3", "--profile torch")
CALLS: Final = Way("--profile torch, or --hip-trace with rocprofv3", "--profile torch")
CALLS_BESIDE: Final = Way("--hip-trace (or --profile torch)", "--profile torch")
WAITING: Final = Way(
    "--profile torch, or --profile rocprofv3 --hip-trace on AMD", "--profile torch"
)
OR_ROCPROF: Final = Way(" (or rocprofv3 on AMD)", "")
GEOMETRY: Final = Way("--profile rocprofv3", "--profile torch")
REGISTERS: Final = Way("--profile rocprofv3 of ROCm 7, or torch on NVIDIA", "--profile torch")
MORE_REGISTERS: Final = Way("--profile rocprofv3 of ROCm 7", "--profile torch")
RANGES: Final = Way("roctx by rocprofv3, record_function by torch", "record_function by torch")
NEWER_TRACER: Final = Way(
    "update the tracer (ROCm 7.2.0 drops kernels of graph launches)", "update the tracer"
)
COUNTERS: Final = Way("--profile rocprofv3 --pmc NAMES, or rocprof-compute", "Nsight Compute (ncu)")
ALLOCATIONS: Final = Way(
    "--profile rocprofv3 --memory-allocation-trace", "Nsight Systems (nsys --cuda-memory-usage)"
)
COUNTING: Final = Way("hardware counters (--pmc)", "hardware counters (Nsight Compute, ncu)")
COUNTING_ON_AMD: Final = Way(
    "hardware counters (--pmc on AMD)", "hardware counters (Nsight Compute, ncu)"
)
COUNTING_PASS: Final = Way(
    "a hardware counter pass on the top kernels (--pmc)", "Nsight Compute (ncu) on the top kernels"
)
OR_COUNTING: Final = Way(", or hardware counters (--pmc)", "")
OR_COUNTERS: Final = Way(", or counters (--pmc)", "")
COUNTING_OR: Final = Way("--pmc, or ", "")

WAYS: Final = (
    KERNELS,
    KERNELS_TOO,
    CALLS,
    CALLS_BESIDE,
    WAITING,
    OR_ROCPROF,
    GEOMETRY,
    REGISTERS,
    MORE_REGISTERS,
    RANGES,
    NEWER_TRACER,
    COUNTERS,
    ALLOCATIONS,
    COUNTING,
    COUNTING_ON_AMD,
    COUNTING_PASS,
    OR_COUNTING,
    OR_COUNTERS,
    COUNTING_OR,
)
"""All of them: whose words are not here, nothing replaces."""
