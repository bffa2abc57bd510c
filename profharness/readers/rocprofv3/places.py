"""Devices and streams of a file whose records name both by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Stream


@dataclass(frozen=True, eq=False)
class Places:
    """`numbers` are the device numbers of the file, in order; `device[t]` and `stream[t]` are the
    columns of table t, as positions in `numbers` and `streams`.
    """

    numbers: tuple[int, ...]
    streams: tuple[Stream, ...]
    device: tuple[I64, ...]
    stream: tuple[I64, ...]


def places(devices: Sequence[I64], streams: Sequence[I64]) -> Places:
    """Positions for the device and stream numbers of several tables, one column each; NULL stays
    NULL.

    A stream belongs to a device; the same number on another device is another stream.
    """
    device = np.concatenate([*devices, np.zeros(0, np.int64)])
    stream = np.concatenate([*streams, np.zeros(0, np.int64)])
    numbers = np.unique(device[device != NULL])
    position = np.where(device == NULL, NULL, np.searchsorted(numbers, device))
    has = stream != NULL
    pairs, row = np.unique(
        np.stack((position[has], stream[has]), axis=1), axis=0, return_inverse=True
    )
    at = np.full(len(stream), NULL, np.int64)
    at[has] = row.reshape(-1)
    ends = np.cumsum([len(column) for column in devices])[:-1]
    return Places(
        tuple(numbers.tolist()),
        tuple(Stream(int(d), str(s)) for d, s in pairs.tolist()),
        tuple(np.split(position, ends)),
        tuple(np.split(at, ends)),
    )
