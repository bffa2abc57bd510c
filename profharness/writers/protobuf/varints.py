"""Columns of numbers as protobuf varints, eight bytes of all rows at a time.

A varint holds seven bits per byte, lowest first, and the top bit says that another byte follows
("Encoding", protobuf.dev). Seven-bit groups are spread over the bytes of one machine word per row,
so that a row's bytes are written at once instead of one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]
Words = npt.NDArray[np.unsignedinteger[Any]]
_GROUP = 7
_PER_WORD = 8
_STEPS = ((8, np.dtype("<u8")), (4, np.dtype("<u4")), (2, np.dtype("<u2")), (1, np.dtype("u1")))


class Varints:
    """The varints of a column of non-negative numbers (or uint64). `width` is the length of the
    longest, at least 1.
    """

    def __init__(self, values: Ints) -> None:
        wide = values.astype(np.uint64)
        self.width = max(-(-int(wide.max(initial=0)).bit_length() // _GROUP), 1)
        self._values: Words = wide.astype(np.uint32) if self.width <= 4 else wide
        one = self._values.dtype.type(1)
        self._longer = [
            self._values >= one << self._values.dtype.type(_GROUP * k) for k in range(1, self.width)
        ]
        while self._longer and self._longer[0].all():  # a byte that all rows have needs no mask
            del self._longer[0]

    @property
    def lengths(self) -> npt.NDArray[np.int64] | int:
        """Bytes of each row; a plain number where all rows have the same."""
        shared = self.width - len(self._longer)
        if not self._longer:
            return shared
        total = self._longer[0].view(np.uint8)
        for mask in self._longer[1:]:
            total = total + mask.view(np.uint8)
        return total.astype(np.int64) + shared

    def fill(self, slots: U8, used: Mask) -> None:
        """Write into `slots` [rows, width], and into `used`, all set before, where a row has no
        such byte.
        """
        put(slots[:, :_PER_WORD], self._low())
        if self.width > _PER_WORD:
            put(slots[:, _PER_WORD:], self._high())
        shared = self.width - len(self._longer)
        if not self._longer:
            return
        if self.width > 4:
            for k, mask in enumerate(self._longer, shared):
                used[:, k] = mask
            return
        words = np.full(len(self._values), int.from_bytes(b"\1" * shared, "little"), np.uint32)
        for k, mask in enumerate(self._longer, shared):
            words |= mask.astype(np.uint32) << np.uint32(8 * k)
        put(used.view(np.uint8), words)

    def _low(self) -> Words:
        """The first eight bytes at most."""
        values = self._values
        number = values.dtype.type
        words = values & number(0x7F)
        for k in range(1, min(self.width, _PER_WORD)):
            words |= (values << number(k)) & number(0x7F << 8 * k)
        always = sum(
            0x80 << 8 * k for k in range(min(self.width - len(self._longer) - 1, _PER_WORD))
        )
        words |= number(always)
        for k, mask in enumerate(self._longer, self.width - len(self._longer) - 1):
            if k < _PER_WORD:
                words |= mask.astype(values.dtype) << number(8 * k + 7)
        return words

    def _high(self) -> Words:
        """Bytes nine and ten: bits 56 to 63."""
        high = self._values >> np.uint64(_GROUP * _PER_WORD)
        if self.width == _PER_WORD + 1:
            return high
        ninth: Words = high & np.uint64(0x7F) | (high > np.uint64(0x7F)).astype(
            np.uint64
        ) << np.uint64(7)
        return ninth | high >> np.uint64(7) << np.uint64(8)


def put(slots: U8, words: npt.NDArray[Any]) -> None:
    """The lowest bytes of each row's word (any number in little-endian order) into `slots` [rows,
    up to eight].
    """
    words = words.astype(words.dtype.newbyteorder("<"), copy=False)
    at, width = 0, slots.shape[1]
    for size, kind in _STEPS:
        while width - at >= size:
            every = words.itemsize // size
            slots[:, at : at + size].view(kind)[:, 0] = words.view(kind)[at // size :: every]
            at += size
