"""Start Python programs as often as tests need them without paying each time for their imports.

One process imports what such a program needs and then waits. For each start it forks: the child
takes over the folder, the environment and the streams that the test names, and runs the same
program to the same end, so that it is a real process with its own number, signals, children and
exit status. Where the environment speaks to the interpreter itself (a `PYTHONPATH` with hooks),
nothing is forked: the program gets the fresh interpreter that it asks for.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import runpy
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMAND_LINE = (
    *("numpy", "pyarrow", "pyarrow.csv", "jinja2", "psutil"),
    *("rich.console", "rich.jupyter", "rich.table", "rich.text"),
    "profharness",
)
_FRESH = ("PYTHON", "LD_", "COVERAGE")  # what an interpreter reads as it starts
_ONCE = (
    "OMP_",
    "KMP_",
    "OPENBLAS",
    "MKL_",
    "ARROW_",
    "TORCH",
    "PYTORCH",
    "CUDA",
    "ORT_",
)  # libraries
_LENGTH = 8  # bytes before each message


def run(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """`python -m profharness WORDS` to its end, its output caught as text.

    Raises `subprocess.TimeoutExpired` after `timeout` seconds, as `subprocess.run` does.
    """
    argv = [sys.executable, "-m", "profharness", *map(str, words)]
    return finished(argv, COMMAND_LINE, cwd=cwd, env=env, timeout=timeout)


def finished(
    argv: Sequence[str],
    imported: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """A program of `python` below to its end, its output caught as text.

    Raises `subprocess.TimeoutExpired` after `timeout` seconds, as `subprocess.run` does.
    """
    with python(argv, imported, cwd=cwd, env=env) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(list(argv), process.returncode, out, err)


def python(
    argv: Sequence[str],
    imported: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """A started Python program (`-m profharness` or a script) whose libraries are `imported`
    already; its output is text in pipes.
    """
    wanted = dict(os.environ if env is None else env)
    if any(wanted.get(name) != os.environ.get(name) for name in _speaking(_FRESH, wanted)):
        kind: type[subprocess.Popen[str]] = subprocess.Popen
    else:
        kind = _Forked
        _Forked.origin = _waiting_process(tuple(imported), wanted)
    return kind(
        list(argv),
        cwd=cwd,
        env=wanted,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _speaking(prefixes: tuple[str, ...], env: Mapping[str, str]) -> set[str]:
    return {name for name in {*env, *os.environ} if name.startswith(prefixes)}


class _Forked(subprocess.Popen[str]):
    """A process that another one forks for us: only its start and the wait for its end differ."""

    origin: _WaitingProcess

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        cwd, env, pipes = rest[4], rest[5], rest[9:15]
        self._end, told = os.pipe()
        self._child_created = True
        order = (args, os.fspath(cwd or Path.cwd()), env)
        self.pid = self.origin.start(order, [pipes[0], pipes[3], pipes[5], told])
        os.close(told)
        self._close_pipe_fds(*pipes)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], 0)[0]:
            self._take()
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if flags and not select.select([self._end], [], [], 0)[0]:
            return 0, 0
        return self.pid, self._take()

    def _take(self) -> int:
        status = int(os.read(self._end, _LENGTH) or b"9")  # its parent is gone: killed
        os.close(self._end)
        self.returncode = os.waitstatus_to_exitcode(status)
        return status


class _WaitingProcess:
    """Our end of the process that forks."""

    def __init__(self, imported: Sequence[str], env: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.started", str(theirs.fileno()), *imported],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={"OPENBLAS_NUM_THREADS": "1", **env},  # no thread may live where it forks
        )
        theirs.close()
        atexit.register(self.end)

    def start(self, order: tuple[object, ...], ends: list[int]) -> int:
        """Fork for this order; the streams' ends and the one that its status goes to become the
        child's and its parent's.
        """
        socket.send_fds(self._socket, [b"+"], ends)
        data = pickle.dumps(order)
        self._socket.sendall(len(data).to_bytes(_LENGTH, "little") + data)
        return int.from_bytes(_exactly(self._socket, _LENGTH), "little")

    def end(self) -> None:
        """It ends when our end of the socket is closed."""
        self._socket.close()
        self._process.wait()


def _exactly(at: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = at.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


_waiting: dict[tuple[object, ...], _WaitingProcess] = {}


def _waiting_process(imported: tuple[str, ...], env: Mapping[str, str]) -> _WaitingProcess:
    """The one with these modules, whose libraries were loaded under the same variables."""
    key = (imported, *sorted((name, env.get(name)) for name in _speaking(_ONCE, env)))
    if key not in _waiting:
        _waiting[key] = _WaitingProcess(imported, env)
    return _waiting[key]


# ---------------------------------------------------------------- in the process that forks


def _import(name: str) -> None:
    """A module, of `profharness` all modules; what is not installed may be missing."""
    with suppress(ImportError):
        module = importlib.import_module(name)
        if name != "profharness":
            return
        for found in pkgutil.walk_packages(module.__path__, "profharness."):
            if not found.name.endswith("__main__"):
                _import(found.name)


def _prepare() -> None:
    """What nearly every command makes of profharness's own files and then keeps: the pages'
    templates and scripts, the tables of operators and devices, the signs in logs. All of it is the
    same in every process, and makes up half of what a short run computes.
    """
    from profharness import errors
    from profharness.analysis.kernels import categories
    from profharness.analysis.operators import engine
    from profharness.node import devices
    from profharness.report.page import script, templating
    from profharness.supervise import diagnosis

    page, sheets = "profharness.report.page", "profharness.report.sheets"
    for packages in ((page,), (sheets, page)):
        environment = templating.environment(*packages)
        for name in environment.list_templates(extensions=["j2"]):
            environment.get_template(name)
    script.own_script()
    script.unpacker()
    with suppress(errors.Unavailable):
        script.packed_engine()
    engine.own_engine()
    devices.table()
    diagnosis._signs()
    categories.kernel_category("a name that no rule knows")


def _serve(at: socket.socket) -> Sequence[str]:
    """Fork for each order, until nobody is there to give one. Returns in the children, with the
    words of their program.
    """
    told: dict[int, tuple[int, int]] = {}  # of each living child: its number, where its status goes
    while True:
        ready, _, _ = select.select([at, *told], [], [])
        for ended in (one for one in ready if one is not at):
            pid, where = told.pop(ended)
            with suppress(BrokenPipeError):
                os.write(where, b"%d" % os.waitpid(pid, 0)[1])
            os.close(where)
            os.close(ended)
        if at not in ready:
            continue
        byte, ends, _, _ = socket.recv_fds(at, 1, 4)
        if not byte:
            sys.exit(0)
        argv, cwd, env = pickle.loads(_exactly(at, int.from_bytes(_exactly(at, _LENGTH), "little")))
        pid = os.fork()
        if pid == 0:
            for one in (*told, *(where for _, where in told.values()), ends.pop()):
                os.close(one)
            at.close()
            _become(argv, cwd, env, ends)
            return argv
        for end in ends[:3]:
            os.close(end)
        told[os.pidfd_open(pid)] = (pid, ends[3])
        at.sendall(pid.to_bytes(_LENGTH, "little"))


def _become(argv: list[str], cwd: str, env: Mapping[str, str], ends: list[int]) -> None:
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.orig_argv[:] = argv


def _run(argv: Sequence[str]) -> None:
    """What the interpreter does with these words: `-m profharness ...` or a script with its own."""
    if argv[1] != "-m":
        sys.argv = list(argv[1:])
        sys.path[0] = str(Path(argv[1]).resolve().parent)
        runpy.run_path(argv[1], run_name="__main__")
        return
    main = importlib.import_module("profharness.__main__")
    sys.modules["__main__"] = main  # what processes of its own would import
    sys.argv = [str(main.__file__), *argv[3:]]
    sys.path[0] = str(Path.cwd())
    main.main()


def _status(argv: Sequence[str]) -> int:
    """The status with which the program leaves; a traceback goes where the interpreter would print
    it.
    """
    try:
        _run(argv)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001  # as the interpreter does
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]  # there is one
        return 1
    return 0


def _end(status: int) -> None:
    """The interpreter's end, but for taking all modules apart, which costs more than a short
    command.
    """
    threading._shutdown()  # type: ignore[attr-defined]  waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        _import(name)
    if "profharness" in sys.argv[2:]:
        _prepare()
    gc.collect()
    gc.freeze()  # what is here stays shared with the children
    _end(_status(_serve(socket.socket(fileno=int(sys.argv[1])))))
