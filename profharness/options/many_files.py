"""Options of the commands that take many or large files: where the work is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec

from profharness.node.cores import READING, helpers_for, reading_by
from profharness.node.spare import started_early
from profharness.options.declared import MANY_FILES, Limit, Option


class ManyFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Who reads the files: processes of this node, or a Dask cluster."""

    processes: Annotated[
        int | None,
        Option(
            "Processes that read files, or parts of one large file, at once (default: one per CPU "
            "where it is worth it).",
            MANY_FILES,
            limit=Limit(least=1),
        ),
    ] = None
    dask: Annotated[
        str | None,
        Option(
            "Work on a Dask cluster: its scheduler's address or file, "
            "or jobs started through dask-jobqueue.",
            MANY_FILES,
            metavar="ADDRESS|FILE|slurm",
        ),
    ] = None
    dask_workers: Annotated[
        int, Option("Jobs to start with --dask slurm.", MANY_FILES, limit=Limit(least=0))
    ] = 0

    @contextmanager
    def reading(self, paths: Sequence[Path] = ()) -> Iterator[None]:
        """While the command works: files that it reads itself may take so many processes each.
        Those that help with these paths start at once, before what the command needs is imported.
        """
        with reading_by(self.processes), started_early(READING, helpers_for(paths)):
            yield
