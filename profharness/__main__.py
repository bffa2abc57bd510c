"""Entry point of `profharness` and `python -m profharness`."""

from __future__ import annotations

import sys

from profharness.cli import run_cli


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run_cli(sys.argv[1:]))


if __name__ == "__main__":
    main()
