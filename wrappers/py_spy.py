"""Run a command and sample its Python stacks with py-spy: `python py_spy.py FOLDER PY-SPY WORDS ...
-- COMMAND ...`.

Three processes: this one, which waits and ends as the command did; py-spy, which it starts; and the
command, which is a child of py-spy's process. So py-spy is an ancestor of all that it samples, as
Yama's default (ptrace_scope 1) asks, and yet neither its words nor its failure reach the command:
it attaches to a process that it has not started itself, and writes to a log of its own.

FOLDER/py-spy-<pid of the command>.json is py-spy's trace. The file beside it, of the same name and
.profharness.json, says between which two times of CLOCK_MONOTONIC its time zero lies, at which rate
it sampled, and until when each thread was there.
"""

from __future__ import annotations

import ctypes
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


PR_SET_CHILD_SUBREAPER = 36
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
        self.after_ns = 0
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
            "after_ns": self.first_said_ns,
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


def _become_command(argv: List[str]) -> NoReturn:
    """In the grandchild: run the command as a shell would."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, ("profharness: %s: %s\n" % (argv[0], error.strerror)).encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _become_py_spy(folder: str, words: List[str], argv: List[str], told: int) -> NoReturn:
    """In the child: start the command, and become py-spy once a Python process is there. `told` is
    the pipe to the process that waits; the first line has the pid, the second the time.
    """
    command = os.fork()
    if command == 0:
        _become_command(argv)
    os.write(told, b"%d\n" % command)
    os.setpgid(0, 0)  # a signal to the command's group is not for py-spy, which ends after it
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(told, 1)
    os.dup2(told, 2)
    while not any(runs_python(pid) for pid in processes(command)):
        if has_ended(command):
            os.write(2, b"Error: no Python process ran\n")
            os._exit(1)
        time.sleep(0.005)
    output = os.path.join(folder, "py-spy-%d.json" % command)
    os.environ.setdefault("RUST_LOG", "warn")  # why a process cannot be read
    os.write(told, b"%d\n" % time.monotonic_ns())
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


def _collected(pid: int) -> int:
    """The return code of the command, as Popen has it, once it is this process's own child. Others
    that lost their parent are collected too.
    """
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


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
    # the command loses its parent when py-spy ends, and becomes a child of this process
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    source, told = os.pipe()
    py_spy = os.fork()
    if py_spy == 0:
        os.close(source)
        _become_py_spy(folder, words, argv, told)
    os.close(told)
    child.outlive_signals()
    command = int(_line(source))
    output = os.path.join(folder, "py-spy-%d.json" % command)
    watched = Watched(command, output[: -len(".json")] + ".log")
    stamp = _line(source)
    if stamp.isdigit():
        watched.before_ns = int(stamp)
    else:
        watched.heard(stamp + b"\n", time.monotonic_ns())
    _follow(watched, py_spy, source)
    if watched.wrote_ns:
        watched.note(output + ".profharness.json")
    else:
        reasons = [line.decode("utf-8", "replace") for line in _ERROR.findall(watched.said)]
        told_all = "; ".join(dict.fromkeys(reasons[-3:]))
        _say("it recorded nothing: %s" % (told_all or "it ended without a word"))
    child.end_as(_collected(command))


if __name__ == "__main__":
    main(sys.argv[1:])
