"""Text that the page carries compressed and its script unpacks: the engine of the plots, their
data, later rows of tables. A browser reads the page in half the time.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode


def packed(text: str) -> str:
    """The text as zlib stream (RFC 1950) in base64: letters and digits, nothing that could end an
    element.
    """
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> str:
    """What `packed` was given."""
    return zlib.decompress(b64decode(text)).decode()
