"""Interned state of the sequences of a Perfetto trace: what is known when, and what an event finds
of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.proto_scan import I64, Mask
from profharness.readers.perfetto.events import CONTEXTS, TABLES, Uses
from profharness.readers.perfetto.packets import MISSING, Packets
from profharness.trace.columns.column import repeated

_TABLE_ORDER = np.asarray(sorted(TABLES))


@dataclass(frozen=True)
class States:
    """Per packet: the number of its state (unique over the file) and whether it was ever cleared
    before it.
    """

    number: npt.NDArray[np.int32]
    cleared: Mask


def sequence_keys(packets: Packets) -> I64:
    """A number per packet for its machine and sequence."""
    return (
        packets.machine.astype(np.int64) * (1 << 32) + packets.sequence
    )  # both are uint32 in the format


def states(packets: Packets) -> States:
    """A state begins with a sequence and at each packet that clears it."""
    key = sequence_keys(packets)
    order = np.argsort(key, kind="stable")
    cleared = packets.cleared[order]
    first = (
        np.concatenate(([True], np.diff(key[order]) != 0)) if len(order) else np.zeros(0, np.bool_)
    )
    total = np.cumsum(cleared)
    at_start = (total - cleared)[first][np.cumsum(first) - 1]
    number, cleared_before = np.empty(len(order), np.int32), np.empty(len(order), np.bool_)
    number[order] = np.cumsum(first | cleared)
    cleared_before[order] = total - at_start > 0
    return States(number, cleared_before)


def latest_of_state(state: npt.NDArray[np.integer[Any]], rows: I64, values: I64) -> I64:
    """Per packet the value that the last of these packets of its state gave; MISSING for none.

    Writers give defaults once, with the packet that clears the state, so order within a state is
    left aside.
    """
    table = np.full(int(state.max()) + 1 if len(state) else 1, MISSING, np.int64)
    table[state[rows]] = values
    if (table == table[0]).all():  # most writers give no defaults
        return repeated(table[0], np.int64, len(state))
    return np.asarray(table[state], np.int64)


def unresolved(uses: Uses, entries: Uses, state: States) -> I64:
    """Packets of the uses that find no entry given before them (or with them) in their state, one
    per use.

    Uses in a state that was never cleared are another fault. A context may be a driver's handle, so
    it is looked up only in files that describe any.
    """
    keep = state.cleared[uses.packet]
    if not (entries.table == CONTEXTS).any():
        keep &= uses.table != CONTEXTS
    packet: I64 = uses.packet[keep]
    table, iid = uses.table[keep], uses.iid[keep]
    if not len(entries.iid):
        return packet
    numbers = np.unique(entries.iid)
    given = _key(
        state.number[entries.packet],
        entries.table,
        np.searchsorted(numbers, entries.iid),
        len(numbers),
    )
    dense = np.searchsorted(numbers, iid).clip(max=len(numbers) - 1)
    wanted = _key(state.number[packet], table, dense, len(numbers))
    order = np.lexsort((entries.packet, given))
    given, given_at = given[order], entries.packet[order]
    at = np.searchsorted(given, wanted).clip(max=len(given) - 1)
    given_before: Mask = (numbers[dense] == iid) & (given[at] == wanted) & (given_at[at] <= packet)
    return packet[~given_before]


def _key(state: npt.NDArray[np.integer[Any]], table: I64, iid: I64, reach: int) -> I64:
    position = np.searchsorted(_TABLE_ORDER, table)
    key: I64 = (state.astype(np.int64) * len(TABLES) + position) * reach + iid
    return key
