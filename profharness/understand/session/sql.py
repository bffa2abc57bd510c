"""Questions in SQL to Perfetto's trace processor, about the merged trace.

The program is one that the user has: PROFHARNESS_TRACE_PROCESSOR is its path, or the HOST:PORT of
one that serves already. Nothing is downloaded.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profharness.errors import Unavailable, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from profharness.understand.session.recording import Recording

VARIABLE = "PROFHARNESS_TRACE_PROCESSOR"
_ADDRESS = re.compile(r"[\w.\-\[\]:]+:\d{1,5}")


def answer(recording: Recording, query: str) -> pd.DataFrame:
    """The rows as a frame. Raises UsageError where no program is named or the query is wrong, and
    Unavailable where it cannot be started or reached.
    """
    place = os.environ.get(VARIABLE, "")
    if not place:
        raise UsageError(
            f"a question in SQL needs a trace processor, and {VARIABLE} is not set",
            "set it to the path of a trace_processor_shell, or to the HOST:PORT of one that runs; "
            "profharness downloads none",
        )
    from profharness.rundir.private.folders import private_folder

    with private_folder() as folder:
        merged = _merged(recording, folder)
        client = _client(place, merged)
        try:
            return _asked(client, query)
        finally:
            client.close()


def _asked(client: Any, query: str) -> pd.DataFrame:
    from perfetto.trace_processor import TraceProcessorException

    try:
        frame: pd.DataFrame = client.query(query).as_pandas_dataframe()
    except TraceProcessorException as error:
        raise UsageError(f"the trace processor refuses the query: {error}", "") from error
    return frame


def _merged(recording: Recording, folder: Path) -> Path:
    """The trace that is asked: the merged trace that a run keeps, else one as `merge` writes it,
    made for this question.
    """
    from profharness.rundir.paths import RunDir
    from profharness.understand.merge.command import MergeOptions, merge_to_file

    kept = RunDir(recording.paths[0]).merged
    if len(recording.paths) == 1 and kept.is_file():
        return kept
    path = folder / "merged.pftrace"
    merge_to_file(list(recording.paths), path, MergeOptions(allow_unaligned=True))
    return path


def _client(place: str, trace: Path) -> Any:
    """A client with the trace loaded. The client's own way to get a program is never taken: it is
    always told which one.
    """
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    program = Path(place)
    try:
        if program.is_file():
            return TraceProcessor(
                trace=str(trace), config=TraceProcessorConfig(bin_path=str(program))
            )
        if _ADDRESS.fullmatch(place):
            return TraceProcessor(trace=str(trace), addr=place)
    except Exception as error:  # the client raises whatever its sockets and the program do
        raise Unavailable(
            f"the trace processor {place} does not answer: {error}",
            f"{VARIABLE} is the path of a trace_processor_shell, or HOST:PORT of one that runs",
        ) from error
    raise UsageError(
        f"{VARIABLE}={place}: there is no such program, and it is no HOST:PORT",
        "name a trace_processor_shell, or where one runs",
    )
