"""Which files come from one process: a scan's worker writes one per point, and torch's hook goes
on in a new file where one would grow too large.
"""

from __future__ import annotations

from profharness.trace.model import Source

Process = tuple[str, int, int | None, str, str]
"""Host, process id (that of its container), rank, pass and file format."""


def recording_process(source: Source) -> Process | None:
    """The process of a run that a file was recorded in; None where that is not known. Loose files
    name no pass, and their process ids are of any host.
    """
    if source.pid is None or not source.host or not source.pass_name:
        return None
    return source.host, source.pid, source.rank, source.pass_name, source.format
