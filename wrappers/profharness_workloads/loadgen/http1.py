"""HTTP/1.1 as a byte machine: a request in, bytes out; bytes in, the answer's status out. No
sockets here (RFC 9112).

CPU time per request over perf_analyzer's, measured as `http2` says: 0.64 to 0.85 here, 1.07 to 1.37
with h11 0.16 under the same socket loop, 1.11 to 1.47 with http.client, 2.30 to 3.10 with httpx
0.28 (docs/architecture.md#load-generator).
"""

from __future__ import annotations

import re
from typing import Mapping

_STATUS = re.compile(rb"HTTP/1\.[01] (\d\d\d)")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_ERROR_CHARACTERS = 300


class BadAnswer(ValueError):  # noqa: N818 - named for what came
    """The server broke the protocol."""


def post_head(host: str, path: str, encoding: str, more: Mapping[str, str]) -> bytes:
    """The request's head up to the lengths, which differ by message. `encoding` is the body's: "",
    gzip or deflate.
    """
    lines = ["POST %s HTTP/1.1" % path, "Host: %s" % host, "User-Agent: profharness"]
    if encoding:
        lines += ["Content-Encoding: %s" % encoding, "Accept-Encoding: %s" % encoding]
    lines += ["%s: %s" % pair for pair in more.items()]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")


class Http1:
    """One connection. After `feed` returned True, `error` is "" or says what the server
    answered.
    """

    def __init__(self, head: bytes):
        self._head = head
        self._in = b""
        self._body_at = -1
        self._length = -1
        self._chunked = False
        self._words = b""
        self.error = ""
        self.reply = b""
        self.usable = True

    def opening(self) -> bytes:
        """Empty: HTTP/1.1 sends nothing before the first request."""
        return b""

    def begin(self, head: bytes, payload: bytes, json_length: int = -1) -> bytes:
        """Bytes of a request with body `head` + `payload`; `json_length` is the JSON part's,
        uncompressed (-1: not said).
        """
        self._in, self._body_at, self._words, self.error = b"", -1, b"", ""
        part = b"Inference-Header-Content-Length: %d\r\n" % json_length if json_length >= 0 else b""
        lengths = b"%sContent-Length: %d\r\n\r\n" % (part, len(head) + len(payload))
        return b"".join((self._head, lengths, head, payload))

    def more(self) -> bytes:
        """Empty: HTTP/1.1 has no windows of its own."""
        return b""

    def feed(self, data: bytes) -> bool:
        """Take received bytes; True when the answer is whole. Raises BadAnswer when the connection
        cannot go on.
        """
        self._in = self._in + data if self._in else data
        if self._body_at < 0 and not self._read_head():
            return False
        if self.error and len(self._words) < _ERROR_CHARACTERS:
            self._words += self._in[self._body_at :]
        if self._chunked:
            whole = self._chunks_end()
        else:  # of a plain answer nothing is kept
            self._length -= len(self._in) - self._body_at
            self._in, self._body_at = b"", 0
            whole = self._length <= 0
        if whole and self.error:
            text = self._words.decode("utf-8", "replace").strip()
            self.error = ("%s %s" % (self.error, text))[:_ERROR_CHARACTERS]
        return whole

    def _read_head(self) -> bool:
        end = self._in.find(b"\r\n\r\n")
        if end < 0:
            if len(self._in) > 1 << 16:
                raise BadAnswer("the answer's head does not end")
            return False
        head = self._in[: end + 2]
        status = _STATUS.match(head)
        if status is None:
            raise BadAnswer("the answer is not HTTP: %r" % head[:40])
        code = int(status.group(1))
        if code == 100:
            self._in = self._in[end + 4 :]
            return self._read_head()
        self.error = "" if 200 <= code < 300 else "HTTP status %d" % code
        length = _LENGTH.search(head)
        self._chunked = _CHUNKED.search(head) is not None
        if length is None and not self._chunked and code not in (204, 304):
            raise BadAnswer("the answer does not say its length")
        self._length = int(length.group(1)) if length else 0
        self.usable = _CLOSE.search(head) is None
        self._body_at = end + 4
        return True

    def _chunks_end(self) -> bool:
        """Whether the last chunk is there; reads on from the first chunk that was not whole
        before.
        """
        while True:
            line = self._in.find(b"\r\n", self._body_at)
            if line < 0:
                return False
            try:
                size = int(self._in[self._body_at : line].split(b";")[0], 16)
            except ValueError as error:
                raise BadAnswer("a chunk without a size") from error
            after = line + 2 + size + 2
            if size == 0:
                return self._in.find(b"\r\n\r\n", line) >= 0
            if len(self._in) < after:
                return False
            self._body_at = after
