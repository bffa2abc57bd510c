"""Which kernel a dispatch ran: samples name the dispatch only, another file of the same process
names its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.rocprofv3 import csv_reader, json_reader, rocpd_reader
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

_ENDINGS = ("", ".gz")
_TELLING = (
    ("kernel_trace.csv", csv_reader),
    ("results.db", rocpd_reader),
    ("results.json", json_reader),
    ("counter_collection.csv", csv_reader),
)


@dataclass(frozen=True)
class KernelNames:
    """Names by number of the dispatch, and by correlation id, which older kernel traces have
    instead.
    """

    by_dispatch: dict[int, str] = field(default_factory=dict)
    by_correlation: dict[int, str] = field(default_factory=dict)

    def of(self, dispatch: int, correlation: int) -> str:
        """The kernel of a dispatch; empty where nothing names it."""
        return self.by_dispatch.get(dispatch) or self.by_correlation.get(correlation, "")


def beside(path: Path, prefix: str) -> KernelNames:
    """The kernels of the process whose files begin with `prefix` in the folder of `path`: by its
    kernel trace, else by its database, its JSON file or its counters. None where none of them can
    be read.
    """
    for ending, reader in _TELLING:
        for suffix in _ENDINGS:
            other = path.with_name(f"{prefix}{ending}{suffix}")
            if other == path or not other.is_file():
                continue
            try:
                return names_in(reader.read(other))
            except InputError:
                continue
    return KernelNames()


def names_in(trace: Trace) -> KernelNames:
    """The kernels of one process. Numbers that stand for two kernels name none of them."""
    kernels, say = trace.kernels, trace.strings

    def by(numbers: list[int]) -> dict[int, str]:
        names: dict[int, str] = {}
        for number, code in zip(numbers, kernels.name.tolist(), strict=True):
            name = say[code]
            if number != NULL and names.setdefault(number, name) != name:
                names[number] = ""
        return names

    by_dispatch = by(kernels.dispatch.tolist())
    return KernelNames(by_dispatch, {} if by_dispatch else by(kernels.correlation.tolist()))
