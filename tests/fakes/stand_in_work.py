"""Stand-ins for the work of a process that was started early."""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection


def echo() -> None:
    """Answer each word with itself and the process id, until the questions end."""
    questions = Connection(os.dup(sys.stdin.fileno()), writable=False)
    answers = Connection(os.dup(sys.stdout.fileno()), readable=False)
    try:
        while True:
            answers.send((questions.recv(), os.getpid()))
    except EOFError:
        return


def wait() -> None:
    """Do nothing until the questions end."""
    sys.stdin.buffer.read()
