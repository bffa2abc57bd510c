"""Interned entries of a Perfetto trace, and what the numbers in its packets stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.proto_scan import I64, LENGTH, U8, Fields, scan
from profharness.readers.perfetto.events import TABLES
from profharness.readers.perfetto.packets import Packets
from profharness.trace.columns.build import Pool, text_pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import Strings

_NAME = 2  # of every interned entry that has one


@dataclass(frozen=True, eq=False)
class Interned:
    """All entries, sorted by state, table, number and packet. `name` is a code of the strings;
    `start` and `end` bound an entry's bytes in the data.
    """

    key: I64
    packet: I64
    table: I64
    name: I64
    start: I64
    end: I64
    numbers: I64
    state: npt.NDArray[np.int32]

    def find(self, packet: I64, table: int, number: I64) -> I64:
        """The entry that each number stands for in its packet: the last one given by then; NULL for
        none.
        """
        if not len(self.key):
            return np.full(len(packet), NULL, np.int64)
        dense = np.searchsorted(self.numbers, number).clip(max=len(self.numbers) - 1)
        wanted = _key(self.state[packet], np.full(len(packet), table), dense, len(self.numbers))
        # position behind all entries of this key that stand in this packet or before it
        reach = int(self.packet.max()) + 2
        groups, group = np.unique(self.key, return_inverse=True)
        place = np.searchsorted(groups, wanted).clip(max=len(groups) - 1)
        at = (
            np.searchsorted(
                group * reach + self.packet, place * reach + np.minimum(packet, reach - 1), "right"
            )
            - 1
        )
        good = (at >= 0) & (self.numbers[dense] == number) & (self.key[at.clip(min=0)] == wanted)
        return np.where(good, at, NULL)

    def names(self, packet: I64, table: int, number: I64) -> I64:
        """Codes of the names that numbers stand for; NULL for none."""
        entry = self.find(packet, table, number)
        return np.where(entry == NULL, NULL, self.name[entry]) if len(self.name) else entry


def read_interned(packets: Packets, state: npt.NDArray[np.int32], strings: Strings) -> Interned:
    """All interned entries of a file; `state` is the number of each packet's state."""
    rows = np.flatnonzero(packets.interned_end > packets.interned_start)
    fields = scan(packets.data, packets.interned_start[rows], packets.interned_end[rows])
    entries = fields.take((fields.wire == LENGTH) & np.isin(fields.number, TABLES))
    inner = scan(packets.data, entries.start, entries.end)
    iid = inner.last(1, len(entries.row))
    name = texts(packets.data, inner.pick(_NAME, LENGTH), len(entries.row), text_pool(strings))
    numbers = np.unique(iid)
    packet = rows[entries.row]
    key = _key(state[packet], entries.number, np.searchsorted(numbers, iid), len(numbers))
    order = np.lexsort((packet, key))
    return Interned(
        key[order],
        packet[order],
        entries.number[order],
        name[order],
        entries.start[order],
        entries.end[order],
        numbers,
        state,
    )


def texts(data: U8, fields: Fields, rows: int, pool: Pool[bytes]) -> I64:
    """The text field of each message as a code, the last one where it is repeated; NULL for
    none.
    """
    out = np.full(rows, NULL, np.int64)
    out[fields.row] = text_codes(data, fields, pool)
    return out


def text_codes(data: U8, fields: Fields, pool: Pool[bytes]) -> I64:
    """The code of each of these text fields."""
    pieces = (
        data[start:end].tobytes()
        for start, end in zip(fields.start.tolist(), fields.end.tolist(), strict=True)
    )
    return pool.codes(pieces).astype(np.int64)


def _key(state: npt.NDArray[np.int32], table: I64, dense: I64, reach: int) -> I64:
    order = np.asarray(sorted(TABLES))
    key: I64 = (
        state.astype(np.int64) * len(TABLES) + np.searchsorted(order, table)
    ) * reach + dense
    return key
