"""Run a command and sample its Python stacks with py-spy: `python py_spy.py FOLDER PY-SPY WORDS ...
-- COMMAND ...`.

Four processes: this one, which ends as the command did; py-spy's, its child; the command's parent,
a child of that; and the command. So py-spy is an ancestor of all that it samples, as Yama's default
(ptrace_scope 1) asks, and yet neither its words nor its failure reach the command: it attaches to a
process that it has not started, and writes to a log of its own. It must not be the parent: whoever
traces its own child may take its exit status.

FOLDER/py-spy-<pid of the command>.json is py-spy's trace. The file beside it, of the same name and
.profharness.json, says between which two times of CLOCK_MONOTONIC its time zero lies, at which rate
it sampled, and until when each thread was there.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under python -I
import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, NoReturn, Optional, Set, Tuple


BEGIN_S = 2.0
LOOK_S = 0.1  # how often threads are counted
LINGER_S = 1.0  # for children that end with the command
WRITING_S = 60.0  # for py-spy to write what it has
LONGEST = 1 << 20
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*$")
_RATE = re.compile(rb"Sampling process (\d+) times a second")
_WROTE = re.compile(rb"Wrote chrome trace to .*?Samples: (\d+) Errors: (\d+)")
_ERROR = re.compile(
    rb"^(?:Error|Reason|Permission Denied)\b.*|Failed to profile python from.*",
    re.MULTILINE | re.IGNORECASE,
)


def processes(root: int) -> List[int]:
    """The process and those below it, as far as the kernel lists children."""
    found, position = [root], 0
    while position < len(found):
        pid = found[position]
        position += 1
        for tid in threads(pid):
            try:
                with open("/proc/%d/task/%d/children" % (pid, tid), encoding="ascii") as file:
                    found += [int(word) for word in file.read().split()]
            except (OSError, ValueError):
                continue
    return found


def threads(pid: int) -> List[int]:
    """The threads of a process; none of one that has ended."""
    try:
        return [int(name) for name in os.listdir("/proc/%d/task" % pid)]
    except OSError:
        return []


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be collected."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in ("Z", "X")
    except (OSError, IndexError):
        return True


def runs_python(pid: int) -> bool:
    """Whether the process runs an interpreter: by its program's name, or by its libraries."""
    try:
        if _PYTHON.search(os.path.basename(os.readlink("/proc/%d/exe" % pid))):
            return True
        with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as file:
            return "libpython" in file.read()
    except OSError:
        return False


class Watched:
    """What py-spy said and when, and until when each thread of the command was there."""

    def __init__(self, root: int, log_path: str) -> None:
        self.root = root
        self.said = b""
        self.before_ns = 0
        self.threads_ns = 0
        self.wrote_ns = 0
        self.first_said_ns = 0
        self._log_path = log_path
        self._alive: Dict[int, int] = {}
        self._gone: Dict[int, Tuple[int, int]] = {}

    def heard(self, chunk: bytes, now_ns: int) -> None:
        """Take up what py-spy wrote, which arrived at this time."""
        self.said = (self.said + chunk)[-LONGEST:]
        if not self.first_said_ns and _RATE.search(self.said):
            self.first_said_ns = now_ns
        if not self.wrote_ns and _WROTE.search(self.said):
            self.wrote_ns = now_ns
        try:
            with open(self._log_path, "ab") as file:
                file.write(chunk)
        except OSError:
            pass  # the log is for people; the run goes on without it

    def look(self, now_ns: int) -> None:
        """Note which threads are there now, and which no longer are."""
        present: Set[int] = set()
        for pid in processes(self.root):
            if not has_ended(pid):
                present.update(threads(pid))
        for tid, seen_ns in list(self._alive.items()):
            if tid not in present:
                self._gone[tid] = (seen_ns, now_ns)
                del self._alive[tid]
        for tid in present:
            self._alive[tid] = now_ns

    def note(self, path: str) -> None:
        """Write what the trace does not say, beside it."""
        rate, wrote = _RATE.search(self.said), _WROTE.search(self.said)
        facts = {
            "v": 1,
            "tool": "py-spy",
            "pid": self.root,
            "before_ns": self.before_ns,
            "after_ns": self.threads_ns or self.first_said_ns,
            "wrote_ns": self.wrote_ns,
            "rate": int(rate.group(1)) if rate else None,
            "samples": int(wrote.group(1)) if wrote else None,
            "errors": int(wrote.group(2)) if wrote else None,
            "ended": [[tid, low, high] for tid, (low, high) in sorted(self._gone.items())],
        }
        partial = path + ".part"
        try:
            with open(partial, "w", encoding="ascii") as file:
                json.dump(facts, file)
            os.replace(partial, path)
        except OSError as error:
            _say("cannot write %s: %s" % (path, error.strerror))


def _say(text: str) -> None:
    try:
        os.write(2, ("profharness: py-spy: %s\n" % text).encode("utf-8", "replace"))
    except OSError:
        pass  # nobody reads that any more


def _become_parent(argv: List[str], *told: int) -> NoReturn:
    """In the grandchild: start the command and tell its pid, wait for it, and tell how it ended.
    py-spy could not do that: whoever traces its own child takes its exit status.
    """
    try:
        process = child.start(argv)
    except SystemExit as error:  # it says why
        for pipe in told:
            os.write(pipe, b"0\n%d\n" % int(error.code or 0))
        os._exit(0)
    for pipe in told:
        os.write(pipe, b"%d\n" % process.pid)
    returncode = process.wait()
    for pipe in told:
        try:
            os.write(pipe, b"%d\n" % returncode)
        except OSError:
            pass  # py-spy has long taken that process's place
    os._exit(0)


def _become_py_spy(
    folder: str, words: List[str], argv: List[str], pipes: Tuple[int, int]
) -> NoReturn:
    """In the child: have the command started, and become py-spy once a Python process is there.
    `pipes` lead to the process that waits: for what py-spy says, and for what becomes of the
    command.
    """
    said, ended = pipes
    started, telling = os.pipe()
    if os.fork() == 0:
        os.close(said)
        os.close(started)
        _become_parent(argv, telling, ended)
    os.close(telling)
    os.close(ended)
    command = int(_line(started) or b"0")
    os.setpgid(0, 0)  # a signal to the command's group is not for py-spy, which ends after it
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    while not any(runs_python(pid) for pid in processes(command)):
        if not command or has_ended(command):
            os.write(2, b"Error: no Python process ran\n")
            os._exit(1)
        time.sleep(0.005)
    output = os.path.join(folder, "py-spy-%d.json" % command)
    os.environ.setdefault("RUST_LOG", "warn")  # why a process cannot be read
    os.write(said, b"%d\n" % time.monotonic_ns())
    try:
        os.execvp(words[0], [*words, "--output", output, "--pid", str(command)])
    except OSError as error:
        os.write(2, ("Error: %s: %s\n" % (words[0], error.strerror)).encode())
        os._exit(1)


def _line(source: int) -> bytes:
    """One line from the pipe, without a byte of what follows; what there is of it at its end."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(source, 1)
        if not byte:
            break
        line += byte
    return line.strip()


def _watch_begin(watched: Watched, py_spy: int, source: int) -> None:
    """Narrow down when py-spy takes its time zero: after its program was loaded, and before it has
    threads, which it starts just after.
    """
    before = _name(os.getpid())  # from which it was forked
    until_s = time.monotonic() + BEGIN_S
    while time.monotonic() < until_s:
        now_ns = time.monotonic_ns()
        if _name(py_spy) == before:
            watched.before_ns = now_ns
        elif len(threads(py_spy)) > 1:
            watched.threads_ns = time.monotonic_ns()
            return
        if select.select([source], [], [], 0.0005)[0]:
            return  # it says something: how it failed, or that it samples


def _name(pid: int) -> bytes:
    """The name of a process, which changes with its program."""
    try:
        with open("/proc/%d/comm" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _follow(watched: Watched, py_spy: int, source: int) -> None:
    """Hear py-spy until it has ended; make it write when the command has ended and it goes on."""
    ended_s: Optional[float] = None
    told = False
    while True:
        ready, _, _ = select.select([source], [], [], LOOK_S)
        now_ns = time.monotonic_ns()
        if ready:
            chunk = os.read(source, 65536)
            if not chunk:
                return
            watched.heard(chunk, now_ns)
        watched.look(now_ns)
        if not has_ended(watched.root):
            continue
        ended_s = ended_s or time.monotonic()
        waited_s = time.monotonic() - ended_s
        try:
            if waited_s > LINGER_S + WRITING_S:
                _say("it went on after the command had ended, and was killed")
                os.kill(py_spy, signal.SIGKILL)
                return
            if waited_s > LINGER_S and not told:
                told = True
                os.kill(py_spy, signal.SIGINT)
        except ProcessLookupError:
            return


def main(arguments: List[str]) -> NoReturn:
    """Run the command after `--` under py-spy, and end as it did."""
    if len(arguments) < 4 or "--" not in arguments[2:-1]:
        sys.exit("usage: py_spy.py FOLDER PY-SPY [WORDS ...] -- COMMAND [ARGUMENTS ...]")
    folder, at = arguments[0], arguments.index("--", 2)
    words, argv = arguments[1:at], arguments[at + 1 :]
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        pass  # py-spy says so
    said, saying = os.pipe()
    ended, ending = os.pipe()
    py_spy = os.fork()
    if py_spy == 0:
        os.close(said)
        os.close(ended)
        _become_py_spy(folder, words, argv, (saying, ending))
    os.close(saying)
    os.close(ending)
    child.outlive_signals()
    command = int(_line(ended) or b"0")
    if command:
        _record(folder, command, py_spy, (said, ended))
    status = _line(ended)
    child.end_as(int(status) if status else -signal.SIGKILL)


def _await(command: int, ended: int) -> None:
    """Wait for the command where it outlives py-spy, and say so if it runs Python again: py-spy
    ends with the last Python process that it knows.
    """
    while not select.select([ended], [], [], LOOK_S)[0]:
        if any(runs_python(pid) for pid in processes(command)):
            _say("it had ended when a further Python process was started, which is not sampled")
            return


def _record(folder: str, command: int, py_spy: int, pipes: Tuple[int, int]) -> None:
    """Follow py-spy until it has ended, and write what its trace does not say."""
    said, ended = pipes
    output = os.path.join(folder, "py-spy-%d.json" % command)
    watched = Watched(command, output[: -len(".json")] + ".log")
    stamp = _line(said)
    if stamp.isdigit():
        watched.before_ns = int(stamp)
        _watch_begin(watched, py_spy, said)
    else:
        watched.heard(stamp + b"\n", time.monotonic_ns())
    _follow(watched, py_spy, said)
    if watched.wrote_ns:
        watched.note(output + ".profharness.json")
        _await(command, ended)
        return
    reasons = [line.decode("utf-8", "replace") for line in _ERROR.findall(watched.said)]
    told_all = "; ".join(dict.fromkeys(reasons[-3:]))
    _say("it recorded nothing: %s" % (told_all or "it ended without a word"))


if __name__ == "__main__":
    main(sys.argv[1:])
