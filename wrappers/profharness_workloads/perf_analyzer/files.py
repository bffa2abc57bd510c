"""What perf_analyzer reads and writes: real inputs as JSON, its CSV row, the times in its profile
export, its words.

The export holds every tensor of every request beside the times: gigabytes for a real model. It is
therefore read as a stream, through a pipe, and only the times are kept.
"""

from __future__ import annotations

import base64
import csv
import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from profharness_workloads.loadgen.messages import Tensor

_CHUNK = 1 << 20
_KEEP = 1 << 16  # far more than the longest key with its numbers: what may go on in the next piece
# the only keys whose value is a number, or a list of numbers, of these names; a tensor of such a
# name is an array of another key's object
_TIMES = re.compile(
    rb'"timestamp"\s*:\s*(\d+)|"response_timestamps"\s*:\s*\[([\d,\s]*)\]|'
    rb'"window_boundaries"\s*:\s*\[([\d,\s]*)\]'
)
_COUNTS = re.compile(r"^\s*(Inference|Execution|Successful request) count: (\d+)", re.MULTILINE)
_UNSTABLE = re.compile(r"Failed to obtain stable measurement[^\n]*")
_NOT_STABLE = re.compile(r"Warning: Request latency is not stabilizing[^\n]*")


def input_data(requests: Sequence[Sequence[Tensor]], batched: bool) -> bytes:
    """The items of the requests one by one, as perf_analyzer puts its batches together itself."""
    entries: List[Dict[str, Any]] = []
    for request in requests:
        rows = request[0].array.shape[0] if batched else 1
        entries.extend(
            {
                tensor.name: _value(tensor.array[row] if batched else tensor.array)
                for tensor in request
            }
            for row in range(rows)
        )
    return json.dumps({"data": entries}, separators=(",", ":")).encode("ascii")


def _value(array: Any) -> Dict[str, Any]:
    return {
        "b64": base64.b64encode(array.tobytes()).decode("ascii"),
        "shape": [int(n) for n in array.shape],
    }


class Times(NamedTuple):
    """(sent, done) of each request and the boundaries of its measurement windows: wall-clock ns."""

    requests: List[Tuple[int, int]]
    boundaries: List[int]


def times(chunks: Iterable[bytes]) -> Times:
    """Times of one experiment from the bytes of a profile export, in any pieces. A request without
    an answer is left out.
    """
    collected = Times([], [])
    sent: Optional[int] = None
    rest = b""
    for chunk in chunks:
        rest += chunk
        after = 0
        for match in _TIMES.finditer(rest):
            if match.group(1) is not None and match.end() == len(rest):
                break  # the number may have further digits
            after = match.end()
            sent = _take(collected, match, sent)
        rest = rest[max(after, len(rest) - _KEEP) :]
    return collected


def _take(collected: Times, match: "re.Match[bytes]", sent: Optional[int]) -> Optional[int]:
    timestamp, answers, boundaries = match.groups()
    if timestamp is not None:
        return int(timestamp)
    if boundaries is not None:
        collected.boundaries.extend(_whole(boundaries))
        return sent
    ends = _whole(answers)
    if sent is not None and ends:
        collected.requests.append((sent, ends[-1]))
    return None


def _whole(text: bytes) -> List[int]:
    return [int(part) for part in text.replace(b",", b" ").split()]


def pieces(path: str) -> Iterable[bytes]:
    """A file, or a pipe until its writer closes it, in pieces."""
    with open(path, "rb", buffering=0) as file:
        while True:
            piece = file.read(_CHUNK)
            if not piece:
                return
            yield piece


def csv_row(path: str) -> Dict[str, str]:
    """The row of the one level of a CSV export; empty when there is none, or no file."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError:
        return {}
    return (
        {str(name): str(value) for name, value in rows[0].items() if value is not None}
        if rows
        else {}
    )


def counts(text: str) -> Dict[str, int]:
    """Inferences, executions and requests as the server counted them in the stable windows, by the
    first word.
    """
    return {name.split()[0].lower(): int(value) for name, value in _COUNTS.findall(text)}


def complaint(text: str) -> str:
    """What it says of a level that it could not measure, or its last line; empty when it said
    nothing.
    """
    match = _UNSTABLE.search(text)
    if match:
        return match.group(0).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def unsettled(text: str) -> bool:
    """Whether it counted an unstable latency as stable, as it does in asynchronous mode."""
    return bool(_NOT_STABLE.search(text))
