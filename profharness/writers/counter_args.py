"""Hardware counters as launch arguments of the kernels that have them: as many arguments in each
launch as its kernel has values, whatever the others have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from profharness.trace.model import I64, Counters, Strings
from profharness.writers.protobuf.proto_columns import (
    Double,
    Field,
    Message,
    Ragged,
    encode,
    integers,
)
from profharness.writers.protobuf.schema import Launch

_ARGUMENT_BYTES: Final = 18
"""Of one encoded argument at most: two tags of a byte, a length, a number of three and a value of
eight bytes, each behind a tag."""

_SLOT_BYTES: Final = 64 << 20
"""Of the launches that are encoded at a time: each takes as much room as the one with most
arguments."""


@dataclass(frozen=True)
class CounterArgs:
    """Values of counters in the order of their kernels' rows, and of one kernel in that of `names`;
    `counter` says for each value which of the `names` it belongs to.
    """

    names: tuple[str, ...]
    kernel: I64
    counter: I64
    value: npt.NDArray[np.float64]

    @classmethod
    def of(cls, counters: Counters, strings: Strings) -> CounterArgs:
        """Of a trace. Where a dispatch has several values of one counter, the last one counts; what
        is no number, or of no kernel, is left out.
        """
        known = np.flatnonzero(np.isfinite(counters.value) & (counters.kernel >= 0))
        codes, counter = np.unique(counters.name[known], return_inverse=True)
        kernel = counters.kernel[known].astype(np.int64)
        order = np.lexsort((counter, kernel))  # equal ones stay in the order of the file
        kernel, counter = kernel[order], counter[order].astype(np.int64)
        is_last = np.ones(len(order), np.bool_)
        is_last[:-1] = (kernel[1:] != kernel[:-1]) | (counter[1:] != counter[:-1])
        return cls(
            tuple(strings[code] for code in codes.tolist()),
            kernel[is_last],
            counter[is_last],
            counters.value[known][order][is_last],
        )

    def rows_at_once(self, most: int) -> int:
        """How many launches can be encoded at a time, `most` where they have few arguments."""
        if not len(self.kernel):
            return most
        starts = np.flatnonzero(np.diff(self.kernel, prepend=-1))
        widest = int(np.diff(starts, append=len(self.kernel)).max())
        return max(1, min(most, _SLOT_BYTES // (widest * _ARGUMENT_BYTES)))

    def fields(self, rows: I64, first_iid: int) -> tuple[Field, ...]:
        """The arguments of some kernels, whose rows are in order; `first_iid` is the interned name
        of the first counter.
        """
        at = slice(*np.searchsorted(self.kernel, (rows[0], rows[-1] + 1)).tolist())
        place = np.searchsorted(rows, self.kernel[at])
        mine = np.flatnonzero(rows[place] == self.kernel[at])  # others are other processes'
        if not len(mine):
            return ()
        argument = Message(
            Launch.ARGS,
            (
                integers(Launch.ARG_NAME_IID, self.counter[at][mine] + first_iid),
                Double(Launch.ARG_DOUBLE, self.value[at][mine]),
            ),
        )
        encoded = encode((argument,), len(mine))
        sizes = np.zeros(len(rows), np.int64)
        np.add.at(sizes, place[mine], encoded.sizes)
        return (Ragged(encoded.data, sizes),)
