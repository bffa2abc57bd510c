"""`--ranks N`: this harness starts itself N times on this node, as torchrun or mpirun would start
it.

Each copy finds its rank in RANK, WORLD_SIZE and LOCAL_RANK and joins the others' run directory, as
under any launcher. In a scan of a command it is the command that is started N times for each
execution, by this file as a program of its own: `python -I -S local_ranks.py N -- COMMAND ...`,
which needs nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profharness.launchers.command import Command

GRACE_S = 15.0
_PR_SET_PDEATHSIG = 1
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def started(command: Command, ranks: int) -> Command:
    """A command that runs the given one once per rank. What starts them is under no hook (-I), they
    are.
    """
    return command.with_prefix(
        (sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(ranks), "--")
    )


def start(argv: Sequence[str], ranks: int, *, pass_on: bool = True) -> int:
    """Run `argv` once per rank and wait for all; the first exit status that is not 0, in order of
    time, else 0.

    When one rank fails, the others, which may wait for it in a collective, are ended after a grace
    time. Without `pass_on` signals reach the whole process group by themselves, and are survived
    here until the ranks have ended.
    """
    port, dies_with_us = _free_port(), _dying_with(os.getpid())
    processes = [
        subprocess.Popen(
            argv,
            env={**os.environ, **variables(rank, ranks, port)},
            stdin=None if rank == 0 else subprocess.DEVNULL,
            preexec_fn=dies_with_us,  # noqa: PLW1509  no other thread runs yet
        )
        for rank in range(ranks)
    ]
    told = processes if pass_on else ()
    before = {number: signal.signal(number, _passed_to(told)) for number in _PASSED_ON}
    try:
        return _wait(processes)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def variables(rank: int, ranks: int, port: int) -> dict[str, str]:
    """What torch.distributed and our own ranks read. The run id tells apart runs that start at the
    same time.
    """
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": f"local-{os.getpid()}",
    }


def _dying_with(starter: int) -> Callable[[], None]:
    """Called in each rank before it becomes a harness: whatever kills the process that started all
    of them kills them too, and so ends all that a killed harness does not leave behind.
    """
    prctl = ctypes.CDLL(None).prctl

    def die_with_it() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != starter:  # it had gone before the kernel knew that we care
            os._exit(128 + signal.SIGKILL)

    return die_with_it


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    first, deadline = 0, None
    while None in [process.poll() for process in processes]:
        failed = [process.returncode for process in processes if process.returncode]
        if failed and deadline is None:
            first, deadline = failed[0], time.monotonic() + GRACE_S
        if deadline is not None and time.monotonic() > deadline:
            for process in processes:
                if process.poll() is None:
                    process.terminate()
            deadline = time.monotonic() + GRACE_S
        time.sleep(0.02)
    status = first or next((process.returncode for process in processes if process.returncode), 0)
    return status if status >= 0 else 128 - status


def _passed_to(
    processes: Sequence[subprocess.Popen[bytes]],
) -> Callable[[int, FrameType | None], None]:
    def handler(number: int, _frame: FrameType | None) -> None:
        for process in processes:
            # on a terminal Ctrl-C reached the whole group already
            if process.poll() is None and not (number == signal.SIGINT and os.isatty(0)):
                process.send_signal(number)

    return handler


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(words: Sequence[str]) -> int:
    """`N -- COMMAND ...`; the exit status of the ranks, 127 where the command is no program."""
    if len(words) < 3 or not words[0].isdecimal() or words[1] != "--":
        sys.stderr.write("usage: local_ranks.py N -- COMMAND [ARGUMENTS ...]\n")
        return 2
    argv = words[2:]
    if shutil.which(argv[0]) is None:
        sys.stderr.write(f"profharness: {argv[0]}: no such program here\n")
        return 127
    try:
        return start(argv, int(words[0]), pass_on=False)
    except OSError as error:
        sys.stderr.write(f"profharness: {argv[0]}: {error.strerror}\n")
        return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
