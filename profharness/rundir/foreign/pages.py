"""The sizes that the pages of a Parquet column state, without unfolding one.

A page header is a struct of Thrift's compact protocol
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md), of which field
2 is the size behind decompression and field 3 the size in the file
(https://parquet.apache.org/docs/file-format/data-pages/).
"""

from __future__ import annotations

_DECOMPRESSED, _COMPRESSED = 2, 3
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    0, 1, 2, 3, 7, 8, 9, 10, 11, 12,
)  # fmt: skip  # the types of the protocol by their numbers
_NUMBERS = (4, 5, 6)
_DEEPEST = 16
_VARINT_BYTES = 10


def page_sizes(data: bytes, start: int, length: int) -> list[int]:
    """Bytes of each page of a column behind decompression; the column lies from `start` on in so
    many bytes. Raises ValueError for bytes that are no page header.
    """
    end = start + length
    if not 0 <= start <= end <= len(data):
        raise ValueError("a column lies outside of the file")
    sizes: list[int] = []
    while start < end:
        header = _Header(data, start, end)
        header.skip_struct(0)
        decompressed, compressed = (header.sizes.get(at, -1) for at in (_DECOMPRESSED, _COMPRESSED))
        if decompressed < 0 or compressed < 0 or header.at + compressed > end:
            raise ValueError("the header of a page has no size that fits")
        sizes.append(decompressed)
        start = header.at + compressed
    return sizes


class _Header:
    """One page header, walked through. `sizes` are the numbers among its own fields."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data = data
        self._end = end
        self.at = start
        self.sizes: dict[int, int] = {}

    def skip_struct(self, depth: int) -> None:
        """Go behind a struct; of the outermost the numbers are kept."""
        if depth > _DEEPEST:
            raise ValueError("the header of a page is nested too deeply")
        field = 0
        while (lead := self._byte()) != _STOP:
            kind, step = lead & 15, lead >> 4
            field = field + step if step else self._signed()
            if kind in _NUMBERS:
                number = self._signed()
                if not depth:
                    self.sizes[field] = number
            else:
                self._skip(kind, depth, in_list=False)

    def _skip(self, kind: int, depth: int, *, in_list: bool) -> None:
        if kind in (_TRUE, _FALSE):
            self.at += in_list
        elif kind == _BYTE:
            self.at += 1
        elif kind in _NUMBERS:
            self._varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind in (_LIST, _SET):
            lead = self._byte()
            count = lead >> 4 if lead >> 4 != 15 else self._varint()
            self._skip_each(count, (lead & 15,), depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            self._skip_each(count, (kinds >> 4, kinds & 15), depth)
        elif kind == _STRUCT:
            self.skip_struct(depth + 1)
        else:
            raise ValueError("the header of a page is of no known form")

    def _skip_each(self, count: int, kinds: tuple[int, ...], depth: int) -> None:
        if count > self._end - self.at:  # each entry takes a byte at least
            raise ValueError("the header of a page names more entries than it has bytes")
        for _ in range(count):
            for kind in kinds:
                self._skip(kind, depth + 1, in_list=True)

    def _byte(self) -> int:
        if self.at >= self._end:
            raise ValueError("the header of a page is cut")
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for place in range(_VARINT_BYTES):
            byte = self._byte()
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value
        raise ValueError("the header of a page holds a number that does not end")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
