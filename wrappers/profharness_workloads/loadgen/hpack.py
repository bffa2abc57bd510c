"""Header blocks of HTTP/2 without a dynamic table (RFC 7541): plain literals out, everything a
server may send in.

We announce a table of size 0, so that every block stands for itself and equal blocks mean equal
headers; a server that uses its dynamic table all the same breaks the protocol and is refused.
"""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

Headers = List[Tuple[str, str]]

# RFC 7541 appendix A: index, name and value, one entry a line
_STATIC = tuple(
    tuple(line.split("|"))
    for line in (
        ":authority|;:method|GET;:method|POST;:path|/;:path|/index.html;:scheme|http;"
        ":scheme|https;:status|200;:status|204;"
        ":status|206;:status|304;:status|400;:status|404;:status|500;accept-charset|;"
        "accept-encoding|gzip, deflate;"
        "accept-language|;accept-ranges|;accept|;access-control-allow-origin|;age|;allow|;"
        "authorization|;cache-control|;"
        "content-disposition|;content-encoding|;content-language|;content-length|;"
        "content-location|;content-range|;"
        "content-type|;cookie|;date|;etag|;expect|;expires|;from|;host|;if-match|;"
        "if-modified-since|;if-none-match|;"
        "if-range|;if-unmodified-since|;last-modified|;link|;location|;max-forwards|;"
        "proxy-authenticate|;"
        "proxy-authorization|;range|;referer|;refresh|;retry-after|;server|;set-cookie|;"
        "strict-transport-security|;"
        "transfer-encoding|;user-agent|;vary|;via|;www-authenticate|"
    ).split(";")
)

# RFC 7541 appendix B: bits of the code of each byte, and of the end mark; the code is canonical, so
# lengths say it all
_LENGTHS = (
    "13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 "
    "28 28 6 10 10 12 13 6 8 11 "
    "10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10 13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 "
    "7 7 7 7 7 7 7 8 7 8 13 19 13 "
    "14 6 15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28 20 22 20 20 22 "
    "22 22 23 22 23 23 23 23 23 "
    "24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24 22 21 20 22 22 23 23 21 23 22 22 24 "
    "21 22 23 23 21 21 22 21 23 "
    "22 23 23 20 22 22 22 23 22 22 23 26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 "
    "27 27 26 27 24 21 21 26 26 "
    "28 27 27 27 20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 "
    "27 27 27 27 27 26 30"
)


class BadHeaders(ValueError):  # noqa: N818 - named for what came
    """A block that does not follow RFC 7541, or needs a dynamic table."""


def encode(headers: Sequence[Tuple[str, str]]) -> bytes:
    """Literals without indexing and without Huffman code."""
    out = bytearray()
    for name, value in headers:
        out += b"\x00" + _text(name.encode("ascii")) + _text(value.encode("utf-8"))
    return bytes(out)


def _text(raw: bytes) -> bytes:
    return _number(len(raw), 7) + raw


def _number(value: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    out = bytearray([most])
    value -= most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(block: bytes) -> Headers:
    """All headers of one block, in order. Raises BadHeaders."""
    headers: Headers = []
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _read_number(block, at, 7)
                headers.append(_entry(index))
                continue
            if first & 0xE0 == 0x20:  # a new size of the table, which stays empty
                _, at = _read_number(block, at, 5)
                continue
            index, at = _read_number(block, at, 6 if first & 0x40 else 4)
            if index:
                name = _entry(index)[0]
            else:
                name, at = _read_text(block, at)
            value, at = _read_text(block, at)
            headers.append((name, value))
    except IndexError as error:
        raise BadHeaders("a header block ends early") from error
    return headers


def _entry(index: int) -> Tuple[str, str]:
    if not 1 <= index <= len(_STATIC):
        raise BadHeaders("a header refers to entry %d, beyond the static table" % index)
    name, value = _STATIC[index - 1]
    return name, value


def _read_number(block: bytes, at: int, bits: int) -> Tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        part = block[at]
        at += 1
        value += (part & 127) << shift
        shift += 7
        if part < 128:
            return value, at


def _read_text(block: bytes, at: int) -> Tuple[str, int]:
    coded = block[at] & 0x80
    length, at = _read_number(block, at, 7)
    raw = block[at : at + length]
    if len(raw) < length:
        raise BadHeaders("a header block ends early")
    return (_unpacked(raw) if coded else raw).decode("utf-8", "replace"), at + length


def _codes() -> Dict[Tuple[int, int], int]:
    """(length, code) -> byte: codes count up by length, and within a length by byte."""
    lengths = [int(text) for text in _LENGTHS.split()]
    codes, code, before = {}, 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths)):
        code <<= length - before
        before = length
        codes[length, code] = symbol
        code += 1
    return codes


_CODES = _codes()


def _unpacked(raw: bytes) -> bytes:
    out = bytearray()
    code = length = 0
    for byte in raw:
        for shift in range(7, -1, -1):
            code, length = code << 1 | byte >> shift & 1, length + 1
            symbol = _CODES.get((length, code))
            if symbol is not None:
                if symbol > 255:
                    raise BadHeaders("an end mark inside a text")
                out.append(symbol)
                code = length = 0
            elif length > 30:
                raise BadHeaders("no such Huffman code")
    if length > 7 or code != (1 << length) - 1:
        raise BadHeaders("a text is padded with other bits than ones")
    return bytes(out)
