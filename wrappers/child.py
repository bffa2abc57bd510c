"""Run a command as a child and end exactly as it did, for the small programs that stand around a
workload.

Python 3.8 on, standard library only. The terminal or the launcher sends signals to the whole
process group, so they are not passed on a second time; this process survives them until the child
has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Sequence


_OUTLIVED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def start(argv: Sequence[str], **settings: Any) -> subprocess.Popen[bytes]:
    """Start the command, with `settings` for Popen. Where it cannot be started, end this process as
    a shell would: 127 not found, 126 not executable.
    """
    try:
        process = subprocess.Popen(argv, **settings)
    except OSError as error:
        sys.stderr.write("profharness: %s: %s\n" % (argv[0], error.strerror))
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
    outlive_signals()
    return process


def outlive_signals() -> None:
    """Let signals to the process group pass, so that this process survives them until the child has
    ended. Handlers, not SIG_IGN: a child that was started before keeps its own, and one that execs
    later gets the defaults.
    """
    for number in _OUTLIVED:
        signal.signal(number, lambda *_: None)


def end_as(returncode: int) -> NoReturn:
    """End with the child's exit status, or die of the signal that it died of. Does not return."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    if returncode < 0:
        import resource

        # the child has left its core file; a second one of ours would hide it
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if -returncode != signal.SIGKILL:  # which has no handler to take away
            signal.signal(-returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -returncode)
    os._exit(returncode if returncode >= 0 else 128 - returncode)


def shell_status(returncode: int) -> int:
    """The exit status that a shell reports for Popen's return code: 128 + n for signal n."""
    return returncode if returncode >= 0 else 128 - returncode
