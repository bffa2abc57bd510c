"""Kineto's events to columns where calls also say which kernels they launch: what is launched into
a graph that is being captured has no other record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.records import (
    AskedArgs,
    CallArgs,
    NamingArgs,
    Number,
    UsualNamingArgs,
)
from profharness.readers.kineto.unions import UsualOfLaunched
from profharness.trace.columns.build import Pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, Strings
from profharness.trace.wanted import Wanted


class LaunchedRows(KinetoRows):
    """All rows, and of calls the names of their kernels."""

    usual: ClassVar[object] = UsualOfLaunched
    wanted: ClassVar[Wanted] = Wanted.LAUNCHED
    call_args: ClassVar[type[CallArgs]] = NamingArgs

    def __init__(self, strings: Strings) -> None:
        super().__init__(strings)
        self._kernels: Pool[Number] = Pool(
            lambda kernel: NULL if kernel in (None, "") else strings.code(str(kernel))
        )

    def _launched(self, args: Sequence[AskedArgs]) -> I32 | int:
        names = [a.kernel if isinstance(a, (NamingArgs, UsualNamingArgs)) else None for a in args]
        if names.count(None) == len(names):
            return NULL
        return self._kernels.codes(names)
