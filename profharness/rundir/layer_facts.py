"""What reading a run needs to know of a layer: written into the manifest, so that nobody needs the
layer that made the run.

`left_files` looks for the files by it; `older_layers` says it of runs whose manifests do not.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class LeftFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One kind of file that a tool leaves. `name` is a regular expression for all of its name.

    `aside`: it is kept and never read. Of several kinds that hold the same records, the one of the
    smallest `turn` that is whole is read; a file is whole when it is `filled` (longer than nothing)
    or `closed` (JSON written to its end).
    """

    name: str
    format: str
    aside: bool = False
    turn: int | None = None
    whole: Literal["", "filled", "closed"] = ""


class LeftFiles(msgspec.Struct, frozen=True, omit_defaults=True):
    """All files that a layer leaves under artifacts/LAYER/, and how they tell to which pass and
    process they belong.

    `place` is where a pass's files lie: `hook` anywhere (a file beside each says which process it
    is of), `execution` in HOST/OWNER/PASS or HOST/OWNER/PASS.*, `process` anywhere under names that
    begin with the pass and hold the pid. `pid` finds the process in a name, as its first group;
    `folder` in the name of the folder that a file lies in, where the file's own says nothing.
    `deep`: subfolders are looked into; `beside`: only folders that hold a file of this name, and
    what is below them. `filled`: empty files are passed over; `first`: where no file is whole, the
    first one is read all the same.
    """

    place: Literal["hook", "execution", "process"]
    files: tuple[LeftFile, ...]
    pid: str = ""
    folder: str = ""
    deep: bool = False
    beside: str = ""
    filled: bool = False
    first: bool = False


class LayerFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """One layer, for the readers of a run.

    `hooked`: it works inside the process, so that steps there have its cost. `kernels`: of passes
    and tools that hold kernels, the smallest number speaks for them; None where its files hold none
    that may.
    """

    leaves: LeftFiles
    hooked: bool = False
    kernels: int | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Every regular expression by which names of files are searched."""
        leaves = self.leaves
        given = (*(kind.name for kind in leaves.files), leaves.pid, leaves.folder)
        return tuple(pattern for pattern in given if pattern)
