"""How a stand-in for a tool starts the command: with our stand-in for its library in every Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[3]


def traced(**variables: str) -> dict[str, str]:
    """The environment of what a tool starts: our stand-in for its library is loaded into every
    Python of it.
    """
    path = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        **variables,
        "PYTHONPATH": f"{ROOT / 'tests' / 'fakes' / 'stand_in_site'}{':' if path else ''}{path}",
    }


def replace_by(argv: Sequence[str], **variables: str) -> NoReturn:
    """As the real tools do: the command takes this process over, and with it the exit status."""
    try:
        os.execvpe(argv[0], list(argv), traced(**variables))
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.exit(127)


def fatal(text: str) -> NoReturn:
    sys.stderr.write(f"Fatal error: {text}\n")
    sys.exit(1)
