"""Entry point of `profharness` and `python -m profharness`."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from profharness.cli import run_cli

# objects between collections: imports and columns make many that live on, and hardly any cycles
_RARELY = 200_000


def main() -> None:
    """Run the command line and leave with its exit code."""
    _open_what_is_closed()
    gc.set_threshold(_RARELY, *gc.get_threshold()[1:])
    status = run_cli(sys.argv[1:])
    # the interpreter looks through everything for cycles before it ends: 0.04 CPU s for nothing
    gc.freeze()
    sys.exit(status)


def _open_what_is_closed() -> None:
    """A stream that was closed before the start (`<&-`, a daemon's child) becomes /dev/null. The
    next file to be opened would get its number otherwise, and what a program says would go there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        with suppress(OSError):
            null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: its own
            os.set_inheritable(null, True)  # noqa: FBT003  its only argument
            setattr(sys, name, os.fdopen(null, mode, closefd=False))


if __name__ == "__main__":
    main()
