"""Advice for the device that was used: on NVIDIA's no tool of AMD records anything.

What figures and verdicts need is worked out for every device alike and stands so in JSON; only what
people read is cut to the tools that they have.
"""

from __future__ import annotations

import re
from typing import Final

from profharness.analysis.records import Summary

_NVIDIA: Final = re.compile(r"nvidia|tesla|geforce|quadro", re.IGNORECASE)
_NCU: Final = "Nsight Compute (ncu)"
_ON_NVIDIA: Final = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        # ways that AMD's tools offer beside torch
        (r",? or (?:--profile )?rocprofv3(?: --hip-trace)? on AMD", ""),
        (r",? or --(?:hip|kernel)-trace with rocprofv3", ""),
        (r" \(or rocprofv3 on AMD\)", ""),
        (r"--hip-trace \(or --profile torch\)", "--profile torch"),
        (r",? or (?:hardware )?counters \(--pmc\)", ""),
        (r"--pmc, or ", ""),
        (r"a hardware counter pass on the top kernels \(--pmc\)", f"{_NCU} on the top kernels"),
        (r"hardware counters \(--pmc\)", f"hardware counters ({_NCU})"),
        # what torch records of NVIDIA's devices
        (r"--profile rocprofv3 of ROCm 7, or torch on NVIDIA", "--profile torch"),
        (r"--profile rocprofv3 (?=does|of ROCm 7)", "--profile torch "),
        (r"--profile rocprofv3(?! --)", "--profile torch"),
    )
)


def on_nvidia(summary: Summary) -> bool:
    """Whether all devices were NVIDIA's, by what the run or its files call them; False where nobody
    wrote down which devices they were.
    """
    if summary.run is not None and summary.run.device:
        return _NVIDIA.search(summary.run.device) is not None
    return bool(summary.device_names) and all(map(_NVIDIA.search, summary.device_names))


def for_device(advice: str, summary: Summary) -> str:
    """The advice without tools that do not know the device of the summary."""
    if not on_nvidia(summary):
        return advice
    for pattern, instead in _ON_NVIDIA:
        advice = pattern.sub(instead, advice)
    return advice
