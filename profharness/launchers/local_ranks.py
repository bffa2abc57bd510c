"""`--ranks N`: this harness starts itself N times on this node, as torchrun or mpirun would start
it.

Each copy finds its rank in RANK, WORLD_SIZE and LOCAL_RANK and joins the others' run directory, as
under any launcher.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from types import FrameType

GRACE_S = 15.0
_PR_SET_PDEATHSIG = 1
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start(argv: Sequence[str], ranks: int) -> int:
    """Run `argv` once per rank and wait for all; the first exit status that is not 0, in order of
    time, else 0.

    When one rank fails, the others, which may wait for it in a collective, are ended after a grace
    time.
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
    before = {number: signal.signal(number, _passed_to(processes)) for number in _PASSED_ON}
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
