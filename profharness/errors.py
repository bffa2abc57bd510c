"""Every error that a user can meet, each with its way out.

    ProfharnessError                exit code
    ├── UsageError                  2   a wrong option, value, scan file or combination
    │   └── OutputExists            2   the place to write is taken
    ├── Unavailable                 3   a tool, device, library or permission is missing on this
                                    node
    ├── InputError                  4   a file is damaged, empty or of no known format
    └── WorkloadFailed              1   the workload of a scan (not of a command) failed

Only `profharness.cli` turns one into text and an exit code.
"""

from __future__ import annotations


class ProfharnessError(Exception):
    """What happened, with which file or option (`message`), and what to do (`hint`)."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ProfharnessError):
    """A wrong option, value, scan file or combination of them."""

    exit_code = 2


class OutputExists(UsageError):  # noqa: N818  named by what happened
    """The place to write is taken; nothing is overwritten without `--force`."""


class Unavailable(ProfharnessError):  # noqa: N818  named by what happened
    """A tool, device, library or permission is missing; the hint says how to get it."""

    exit_code = 3


class InputError(ProfharnessError):
    """A file is damaged, empty or of no known format."""

    exit_code = 4


class WorkloadFailed(ProfharnessError):  # noqa: N818  named by what happened
    """The workload of a scan failed; a command's own exit status is passed on instead."""

    exit_code = 1
