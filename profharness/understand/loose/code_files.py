"""Which loose files say where time went inside of kernels, and nothing else."""

from __future__ import annotations

from pathlib import Path

from profharness.readers.border import reading
from profharness.rundir.blocks import read_head

_HEAD_BYTES = 1 << 14


def holds_code(path: Path) -> bool:
    """Whether a CSV file holds samples or a thread trace: nothing else can be listed of it."""
    if path.is_dir() or ".csv" not in path.name:
        return False
    # not for every file: most are no CSV, and these readers need others
    from profharness.readers.code import sample_csv, thread_trace

    head = read_head(path, _HEAD_BYTES)
    with reading(path):
        return thread_trace.sniff(head, path.name) or sample_csv.is_samples(head, path.name)
