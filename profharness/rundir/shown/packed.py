"""Text that a page carries compressed and its script unpacks: the engine of the plots, their data,
later rows of tables. A browser reads the page in half the time.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode

LARGEST = 1 << 26
"""Bytes that one such text has at most."""


def packed(text: str) -> str:
    """The text as zlib stream (RFC 1950) in base64: letters and digits, nothing that could end an
    element.
    """
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> str:
    """What `packed` was given. Raises ValueError where the text is nothing packed, or is larger
    than LARGEST.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(b64decode(text, validate=True), LARGEST)
    except zlib.error as error:
        raise ValueError(f"no zlib stream: {error}") from error
    if not stream.eof:
        raise ValueError(f"cut off, or larger than {LARGEST} bytes")
    return content.decode()
