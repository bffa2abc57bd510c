"""A finding on every trace that holds a kernel of the name `gemm`."""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.time.device_work import Work
from profharness.findings import Finding, FindingKind, finding
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

kinds = (FindingKind("demo-gemm", "info", "enjoy it"),)


def check(trace: Trace, work: Work) -> Sequence[Finding]:
    return (finding("demo-gemm", "a gemm ran"),) if trace.strings.find("gemm") != NULL else ()
