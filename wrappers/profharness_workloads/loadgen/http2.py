"""gRPC over HTTP/2 as a byte machine: a request in, bytes out; bytes in, the answer's status out.
No sockets here.

One call at a time on a connection, which is what a client of a load generator is; messages are
serialised beforehand, and of an answer only its status is read. RFC 9113 and the gRPC protocol over
HTTP/2.

Why this is no library: the client runs under the workload's Python, which need not have any, and
this code costs less. CPU time per request over perf_analyzer's, 2026-11-23, six loads: 0.56 to 0.75
here, 1.37 to 1.62 with grpcio 1.85 (asyncio: 1.55 to 1.86), 1.22 to 1.91 with h2 4.4 and hpack 4.2
under the same socket loop (`python benchmarks/load_generator.py --models
sleep:10ms,sleep:1ms,particlenet --rounds 8`; docs/architecture.md#load-generator).
"""

from __future__ import annotations

import struct
from typing import Dict, List, Mapping, Optional, Tuple, Union

from profharness_workloads.loadgen import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0,
    1,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 0x20
TABLE_SIZE, ENABLE_PUSH, INITIAL_WINDOW, FRAME_SIZE = 1, 2, 4, 5
LARGEST_WINDOW = (1 << 31) - 1
OUR_FRAME_SIZE = (
    1 << 18
)  # a frame is handled when it is whole: larger ones would be copied too often
LAST_STREAM = (1 << 31) - 3
_FRAME = struct.Struct(">IBI")  # length and type share the first four bytes
_PREFIX = struct.Struct(">BI")
# names of https://grpc.github.io/grpc/core/md_doc_statuscodes.html
_CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL "
    "UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
).split()


class BadAnswer(ValueError):  # noqa: N818 - named for what came
    """The server broke the protocol or gave up the connection."""


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return _FRAME.pack(len(body) << 8 | kind, flags, stream) + body


def call_headers(
    authority: str, path: str, tls: bool, encoding: str, more: Mapping[str, str]
) -> bytes:
    """The header block of a unary call. `encoding` is that of the message: "", gzip or deflate."""
    headers = [
        (":method", "POST"),
        (":scheme", "https" if tls else "http"),
        (":path", path),
        (":authority", authority),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "profharness"),
    ]
    if encoding:
        headers += [("grpc-encoding", encoding), ("grpc-accept-encoding", "identity,deflate,gzip")]
    return hpack.encode(headers + [(name.lower(), value) for name, value in more.items()])


class Http2:
    """One connection. After `feed` returned True, `error` is "" or says what the server
    answered.
    """

    def __init__(self, headers: bytes, compressed: bool = False):
        self._headers, self._compressed = headers, 1 if compressed else 0
        self._stream = -1
        self._in = b""
        self._connection_window = self._initial_window = 65535
        self._stream_window = 0
        self._frame_size = 16384
        self._left: List[memoryview] = []
        self._received = 0
        self._block: Optional[bytes] = None
        self._block_ends = False
        self._meaning: Dict[bytes, Tuple[str, Optional[str]]] = {}
        self._status: Optional[str] = None
        self._answered = 0
        self.error = ""
        self.reply = b""
        self.usable = True

    def opening(self) -> bytes:
        """What the client says first: no dynamic table, no push, windows as wide as they go."""
        settings = [
            (TABLE_SIZE, 0),
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW, LARGEST_WINDOW),
            (FRAME_SIZE, OUR_FRAME_SIZE),
        ]
        body = b"".join(struct.pack(">HI", *pair) for pair in settings)
        widen = struct.pack(">I", LARGEST_WINDOW - 65535)
        return PREFACE + frame(SETTINGS, 0, 0, body) + frame(WINDOW_UPDATE, 0, 0, widen)

    def begin(self, head: bytes, payload: bytes) -> bytes:
        """Bytes of a call whose message is `head` + `payload`, as far as the server's window lets
        them go now.
        """
        self._stream += 2
        self.usable = self._stream < LAST_STREAM
        self._status, self._answered, self.error = None, 0, ""
        self._stream_window = self._initial_window
        length = len(head) + len(payload)
        opening = frame(HEADERS, END_HEADERS, self._stream, self._headers)
        prefix = _PREFIX.pack(self._compressed, length)
        length += 5
        if (
            length <= self._frame_size
            and length <= self._connection_window
            and length <= self._stream_window
        ):
            self._connection_window -= length
            self._stream_window -= length
            self._left = []
            return b"".join(
                (opening, _FRAME.pack(length << 8, END_STREAM, self._stream), prefix, head, payload)
            )
        self._left = [memoryview(part) for part in (prefix + head, payload) if part]
        return opening + self.more()

    def more(self) -> bytes:
        """Further bytes of the message that the windows allow by now; empty when there are none."""
        out: List[Union[bytes, memoryview]] = []
        while self._left:
            room = min(self._frame_size, self._connection_window, self._stream_window)
            if room <= 0:
                break
            piece = self._left[0][:room]
            rest = self._left[0][room:]
            self._left[0:1] = [rest] if len(rest) else []
            self._connection_window -= len(piece)
            self._stream_window -= len(piece)
            flags = 0 if self._left else END_STREAM
            out += [_FRAME.pack(len(piece) << 8, flags, self._stream), piece]
        return b"".join(out)

    def feed(self, data: bytes) -> bool:
        """Take received bytes; True when the call is over. Raises BadAnswer when the connection
        cannot go on.

        What is to be sent in answer stands in `reply`; the caller sends and empties it.
        """
        self._in = self._in + data if self._in else data
        buffer, at, over = self._in, 0, False
        while len(buffer) - at >= 9:
            word, flags, stream = _FRAME.unpack_from(buffer, at)
            length = word >> 8
            if len(buffer) - at - 9 < length:
                break
            over = self._frame(word & 255, flags, stream, buffer[at + 9 : at + 9 + length]) or over
            at += 9 + length
        self._in = buffer[at:]
        return over

    def _frame(self, kind: int, flags: int, stream: int, body: bytes) -> bool:
        if kind == DATA:
            return self._data(flags, stream, body)
        if kind in (HEADERS, CONTINUATION):
            return self._header_block(kind, flags, stream, body)
        if kind == WINDOW_UPDATE:
            step = struct.unpack(">I", body)[0] & LARGEST_WINDOW
            if stream == 0:
                self._connection_window += step
            elif stream == self._stream:
                self._stream_window += step
            self.reply += self.more()
        elif kind == SETTINGS and not flags & ACK:
            self._settings(body)
        elif kind == PING and not flags & ACK:
            self.reply += frame(PING, ACK, 0, body)
        elif kind == GOAWAY:
            self._goaway(body)
        elif kind == RST_STREAM and stream == self._stream:
            self.error = (
                "the server reset the call (HTTP/2 error %d)" % struct.unpack(">I", body)[0]
            )
            self._left = []
            return True
        return False

    def _data(self, flags: int, stream: int, body: bytes) -> bool:
        self._received += len(body)
        if self._received > LARGEST_WINDOW // 2:
            self.reply += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._received))
            self._received = 0
        if stream != self._stream:
            return False
        self._answered += len(body)
        return bool(flags & END_STREAM) and self._over()

    def _header_block(self, kind: int, flags: int, stream: int, body: bytes) -> bool:
        if kind == HEADERS:
            if flags & PADDED:
                body = body[1 : len(body) - body[0]]
            if flags & PRIORITY:
                body = body[5:]
            self._block, self._block_ends = b"", bool(flags & END_STREAM)
        self._block = (self._block or b"") + body
        if not flags & END_HEADERS or stream != self._stream:
            return False
        meaning = self._meaning.get(self._block)
        if meaning is None:
            meaning = self._meant(self._block)
        http_error, status = meaning
        if http_error:
            self.error = http_error
        if status is not None:
            self._status = status
        return self._block_ends and self._over()

    def _meant(self, block: bytes) -> Tuple[str, Optional[str]]:
        """(HTTP error or "", gRPC status as words, "" for OK, None when the block holds none);
        blocks that recur are kept.
        """
        try:
            headers = dict(hpack.decode(block))
        except hpack.BadHeaders as error:
            raise BadAnswer(str(error)) from error
        http = headers.get(":status", "200")
        status = headers.get("grpc-status")
        words = None
        if status is not None:
            name = _CODES[int(status)] if status.isdigit() and int(status) < len(_CODES) else status
            words = (
                ""
                if status == "0"
                else ("%s: %s" % (name, headers.get("grpc-message", ""))).rstrip(": ")
            )
        meaning = ("" if http == "200" else "HTTP status %s" % http, words)
        if len(self._meaning) < 64:
            self._meaning[block] = meaning
        return meaning

    def _over(self) -> bool:
        if self._status:
            self.error = self._status
        elif self._status is None and not self.error:
            self.error = "the answer has no gRPC status"
        elif not self._answered and not self.error:
            self.error = "the answer holds no message"
        if self._left:  # the server did not want the rest; a stream left open would be in the way
            self.usable = False
        return True

    def _settings(self, body: bytes) -> None:
        for at in range(0, len(body) - 5, 6):
            name, value = struct.unpack_from(">HI", body, at)
            if name == INITIAL_WINDOW:
                self._stream_window += value - self._initial_window
                self._initial_window = value
            elif name == FRAME_SIZE:
                self._frame_size = value
        self.reply += frame(SETTINGS, ACK, 0) + self.more()

    def _goaway(self, body: bytes) -> None:
        last, code = struct.unpack_from(">II", body)
        self.usable = False
        if code or last < self._stream:
            raise BadAnswer("the server closes the connection (HTTP/2 error %d)" % code)
