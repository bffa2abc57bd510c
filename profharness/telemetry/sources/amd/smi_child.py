"""The process that holds AMD's library: says on its first line what it can read, then answers each
request byte with a row.

    python -c ... smi_child.main()    stdin: requests (one byte each), stdout: the line of JSON,
                                         then rows

A row is a byte (1: read, 0: the read failed) and the fields of all columns, 8 bytes each, little
endian. It ends with its stdin, and the kernel ends it with the sampler. What the package prints
goes to stderr.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
from collections.abc import Sequence
from typing import Any

from profharness.telemetry.records import FLOAT_MISSING, INTEGER_MISSING
from profharness.telemetry.sources import Column
from profharness.telemetry.sources.amd.smi_library import AmdsmiSource, load, words_of

_PR_SET_PDEATHSIG = 1


def row_struct(columns: Sequence[Column]) -> struct.Struct:
    """How an answer is packed."""
    return struct.Struct("<B" + "".join(column.type for column in columns))


def main() -> int:
    """Exit status 0 once stdin ends, 1 where nothing can be read (the reason stands in the
    line).
    """
    answers = os.dup(1)
    os.dup2(2, 1)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    )  # the sampler blocks them for itself
    try:
        sources = load()
        missing = [absent for source in sources for absent in source.probe()]
        usable = [source for source in sources if source.columns]
        for source in usable:
            source.read(_blank(source.columns), 0)
    except Exception as error:  # noqa: BLE001  any failure is the answer
        _say(answers, {"why": words_of(error)})
        return 1
    _say(
        answers,
        {
            "sources": [
                {
                    "device": source.devices[0]._asdict(),
                    "columns": [column._asdict() for column in source.columns],
                    "max_hz": source.max_hz,
                }
                for source in usable
            ],
            "missing": [absent._asdict() for absent in missing],
        },
    )
    _serve(answers, usable)
    return 0


def _serve(answers: int, sources: Sequence[AmdsmiSource]) -> None:
    columns = [column for source in sources for column in source.columns]
    packed = row_struct(columns)
    while os.read(0, 1):
        row = _blank(columns)
        at, read = 0, 0
        for source in sources:
            try:
                source.read(row, at)
                read = 1
            except Exception as error:  # noqa: BLE001  one that fails must not end the others
                sys.stderr.write(words_of(error) + "\n")
            at += len(source.columns)
        os.write(answers, packed.pack(read, *row))


def _blank(columns: Sequence[Column]) -> list[int | float]:
    return [FLOAT_MISSING if column.type == "d" else INTEGER_MISSING for column in columns]


def _say(answers: int, content: dict[str, Any]) -> None:
    os.write(answers, json.dumps(content).encode() + b"\n")
