"""What all hooks share inside the user's process: settings, the hello file, arming at import, and
fork.

It runs in somebody else's program: Python 3.8 on, standard library only, nothing on stdout, at most
one line on stderr, and every failure ends here. Nothing is imported before it is needed, since
every Python process of the workload passes through this file. It knows no framework: each has a
hook of its own, armed at its first import.

Annotations stand in quotation marks here, since `from __future__` is an import of 0.1 ms as well.
"""

import os
import sys
import time

from profharness_hooks import command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Mapping, Optional, Sequence

    Handler = Optional[Callable[[], object]]  # called around os.fork(), or nothing


HERE = os.path.dirname(os.path.abspath(__file__))
MASKS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
RANKS = ("PROFHARNESS_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
# found by the import hook wherever sys.path points; the package itself finds its own modules
OWN = {
    "profharness_mark": os.path.join(os.path.dirname(os.path.dirname(HERE)), "profharness_mark.py")
}
# The names by which profharness_mark knows modules of this package. Users copy that file, so that
# the names must stay.
SELF_FOR_MARKS = "profharness_hook"
FOR_MARKS = {"profharness_steps": "step_log", "profharness_ranges": "marks"}
# frameworks of which the hello tells the version; those with a module have a hook
WATCHED = {"torch": "torch_hook", "onnxruntime": "onnxruntime_hook", "tensorflow": ""}


class Settings:
    """The PROFHARNESS_* variables, read once. `layers` are the hooks asked for, `owner` names this
    process's folder.
    """

    def __init__(self, environ: "Mapping[str, str]") -> None:
        self.hooks_dir = environ.get("PROFHARNESS_HOOKS_DIR", "")
        self.artifacts = environ.get("PROFHARNESS_ARTIFACTS", "")
        self.layers = tuple(
            name for name in environ.get("PROFHARNESS_LAYERS", "").split(",") if name
        )
        self.pass_name = environ.get("PROFHARNESS_PASS", "")
        self.capture = environ.get("PROFHARNESS_CAPTURE", "") or "default"
        # a server computes in other threads than the one that imports torch
        self.all_threads = environ.get("PROFHARNESS_ALL_THREADS", "") == "1"
        self.regions = environ.get("PROFHARNESS_REGIONS", "")
        # where the levels of a server's load are told; empty: windows go by steps or by the clock
        self.levels = environ.get("PROFHARNESS_LEVELS", "")
        self.notes_status = environ.get("PROFHARNESS_EXIT_STATUS", "") == "1"
        self.host_samples = environ.get("PROFHARNESS_HOST_SAMPLES", "")
        self.max_events = _number(environ.get("PROFHARNESS_MAX_EVENTS")) or 500000
        self.is_worker = environ.get("PROFHARNESS_WORKER", "") == "1"
        self.rank = next(
            (rank for rank in (_number(environ.get(name)) for name in RANKS) if rank is not None),
            None,
        )
        self.host = os.uname().nodename
        self.start_ns = time.monotonic_ns()

    def folder(self, layer: str) -> str:
        """Where this process's files of one layer go, made on first use:
        artifacts/<layer>/<host>/<rank or pid>.
        """
        owner = str(os.getpid() if self.rank is None else self.rank)
        path = os.path.join(self.artifacts, layer, self.host, owner)
        os.makedirs(path, exist_ok=True)
        return path


def masks(environ: "Mapping[str, str]") -> "dict[str, str]":
    """What hides devices from this process. A script may set it before it imports a framework."""
    return {name: environ[name] for name in MASKS if name in environ}


def _number(text: "str | None") -> "int | None":
    return int(text) if text and text.isdigit() else None


class Hello:
    """`hello-<pid>.json` records that the hooks loaded in this process, and what became of them.

    Its name is claimed by exclusive creation, since processes of several nodes or containers may
    share a pid. Every change replaces the file as a whole.
    """

    def __init__(self, settings: "Settings", loader: str, forked: bool = False) -> None:
        self._folder = settings.hooks_dir
        self._path = ""
        self._warned = False
        self._previous = b""
        self.facts: dict[str, Any] = {
            "v": 1,
            "pid": os.getpid(),
            "parent_pid": os.getppid(),
            "argv": command_line.own(),
            "executable": sys.executable or "",
            "prefix": sys.prefix,
            "hooks": [loader],
            "frameworks": {},
            "rank": settings.rank,
            "host": settings.host,
            "forked": forked,
            "used": [],
            "devices": [],
            "masks": masks(os.environ),
            "messages": [],
            "windows": [],
            "layers": list(settings.layers),
            "pass_name": settings.pass_name,
        }

    def update(self, **changes: "Any") -> None:
        """Set fields and write. Never raises."""
        self.facts.update(changes)
        try:
            self._write()
        except Exception as error:  # a full or read-only disk must not reach the workload
            self._warn(
                "cannot write to %s (%s); the workload goes on without its record"
                % (self._folder, error)
            )

    def add(self, field: str, value: "Any") -> None:
        """Append to a list field (once), or set one entry of a dict field given as a (key, value)
        pair.
        """
        entries = self.facts[field]
        if isinstance(entries, dict):
            entries[value[0]] = value[1]
        elif value not in entries:
            entries.append(value)
        self.update()

    def failed(self, action: str) -> None:
        """Record the exception being handled: a sentence here, its traceback in hook-<pid>.log, one
        line on stderr.
        """
        import traceback

        error = sys.exc_info()[1]
        sentence = "%s failed: %s: %s" % (action, type(error).__name__, error)
        try:
            with open(
                os.path.join(self._folder, "hook-%d.log" % os.getpid()), "a", encoding="utf-8"
            ) as log:
                log.write(sentence + "\n" + traceback.format_exc() + "\n")
        except Exception:  # the same disk may be what failed
            pass
        self._warn(sentence + " (the workload is not affected)")
        self.add("messages", sentence)

    def _warn(self, sentence: str) -> None:
        if not self._warned:
            self._warned = True
            try:
                os.write(
                    2,
                    ("profharness: %s\n" % sentence.replace("\n", " ")).encode("utf-8", "replace"),
                )
            except OSError:  # stderr may be closed
                pass

    def _write(self) -> None:
        data = _json(self.facts)
        if data == self._previous:
            return
        if not self._path:
            self._path = self._claim()
        partial = "%s.%d.part" % (self._path, os.getpid())
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, self._path)
        self._previous = data

    def _claim(self) -> str:
        os.makedirs(self._folder, exist_ok=True)
        base, again = os.path.join(self._folder, "hello-%d" % os.getpid()), 0
        while True:
            path = base + ("-%d" % again if again else "") + ".json"
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                return path
            except FileExistsError:
                again += 1


def _json(facts: "dict[str, Any]") -> bytes:
    import json

    return json.dumps(facts).encode("ascii") + b"\n"


class Finder:
    """First on sys.meta_path: finds our own modules, and has the hook armed once a framework's
    import has finished.

    The framework's own loader object stays in place; only its `exec_module` is replaced for one
    call, so that reloads, lazy loaders and look-ups that never execute the module see nothing
    unusual.
    """

    def __init__(self, arm: "Callable[[str, ModuleType], None]") -> None:
        self._arm = arm
        self._looking: set[str] = set()

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The specification of one of our modules, or of a framework with its hook behind it; None
        leaves the search to the finders that follow (importlib.abc.MetaPathFinder).
        """
        if name in OWN:
            from importlib.util import spec_from_file_location

            return spec_from_file_location(name, OWN[name])
        if name in FOR_MARKS:
            second_name: ModuleSpec | None = _sibling("second_names").spec(name, FOR_MARKS[name])
            return second_name
        if name not in WATCHED or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = _next_spec(self, name, path, target)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                self._wrap(name, spec.loader)
            return spec
        except Exception:  # let the import system find it alone
            return None
        finally:
            self._looking.discard(name)

    def _wrap(self, name: str, loader: "Any") -> None:
        original = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            loader.__dict__.pop("exec_module", None)
            original(module)
            self._arm(name, module)

        loader.exec_module = exec_module


def _next_spec(
    finder: "Finder", name: str, path: "Sequence[str] | None", target: "ModuleType | None"
) -> "ModuleSpec | None":
    for other in list(sys.meta_path):
        if other is not finder and hasattr(other, "find_spec"):
            spec = other.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


def _sibling(name: str) -> "Any":
    from importlib import import_module

    return import_module("%s.%s" % (__package__, name))


class Process:
    """The hooks of this process: its settings, its hello, and which frameworks are armed."""

    def __init__(self, settings: "Settings", loader: str) -> None:
        self.settings = settings
        self.hello = Hello(settings, loader)
        self._armed: dict[str, Any] = {}
        self._at_fork: list[tuple[Handler, Handler, Handler]] = []

    def arm(self, name: str, module: "ModuleType") -> None:
        """Called when the framework's import has finished, in the importing thread. Never
        raises.
        """
        try:
            self.hello.add("frameworks", (name, str(getattr(module, "__version__", "unknown"))))
            if name in self._armed or not WATCHED[name]:
                return
            self._armed[name] = hook = _sibling(WATCHED[name])
            if hook.arm(self, module):
                self.hello.add("hooks", name)
        except Exception:  # a framework that we do not understand is the user's no less
            self.hello.failed("the %s hook" % name)

    def on_fork(
        self, before: "Handler" = None, parent: "Handler" = None, child: "Handler" = None
    ) -> None:
        """Call these around os.fork(); child functions disarm what must not go on in two
        processes.
        """
        self._at_fork.append((before, parent, child))

    def around_fork(self, when: int) -> None:
        """Run the functions of one moment: 0 before, 1 in the parent, 2 in the child. Never
        raises.
        """
        if when == 2:
            self._after_fork()
        for entry in self._at_fork:
            try:
                handler = entry[when]
                if handler is not None:
                    handler()
            except Exception:  # the child belongs to the user
                self.hello.failed("the hooks' fork handler")
        if when == 2:
            self._at_fork = []
            self.hello.update()

    def _after_fork(self) -> None:
        frameworks = self.hello.facts["frameworks"]
        self.hello = Hello(self.settings, "fork", forked=True)
        self.hello.facts["frameworks"] = dict(frameworks)


class Goodbye:
    """`bye-<pid>.json` records that this process's Python ended by itself, whatever a profiler's
    finalisation does to the process afterwards.

    It is registered first and therefore called last, after the exit functions of the user and of
    the frameworks. Where a profiler may change the exit status, `bye-<pid>.status` gets it as well
    (see exit_status).
    """

    def __init__(self, process: "Process") -> None:
        settings = process.settings
        self._folder, self._notes_status = settings.hooks_dir, settings.notes_status
        self._process = process  # whose hello is another one in a forked child

    def __call__(self) -> None:
        uncaught = hasattr(sys, "last_exc") or hasattr(sys, "last_type")
        facts = {
            "v": 1,
            "pid": os.getpid(),
            "argv": command_line.own(),
            "uncaught": uncaught,
            "monotonic_ns": time.monotonic_ns(),
        }
        try:
            with open(os.path.join(self._folder, "bye-%d.json" % os.getpid()), "wb") as file:
                file.write(_json(facts))
            if uncaught and (why := _sibling("exit_status").ended_by()):
                self._process.hello.add("messages", why)
            if self._notes_status:
                from profharness_hooks import exit_status

                exit_status.note(os.path.join(self._folder, "bye-%d.status" % os.getpid()))
        except Exception:  # the folder may be gone by now, or the C library another one
            pass


_process: "Process | None" = None


def process() -> "Process | None":
    """The hooked process, or None where the hooks were not asked for."""
    return _process


def install(loader: str) -> None:
    """Say hello and arm at the first import of a framework. Idempotent; does nothing unless
    PROFHARNESS_HOOKS_DIR is set.
    """
    global _process
    if _process is not None or not os.environ.get("PROFHARNESS_HOOKS_DIR"):
        return
    _process = Process(Settings(os.environ), loader)
    sys.modules[SELF_FOR_MARKS] = sys.modules[__name__]
    _process.hello.update()
    import atexit

    atexit.register(Goodbye(_process))
    sys.meta_path.insert(0, Finder(_process.arm))
    os.register_at_fork(
        before=lambda: _process.around_fork(0),
        after_in_parent=lambda: _process.around_fork(1),
        after_in_child=lambda: _process.around_fork(2),
    )
    for name in WATCHED:  # a .pth file may have been faster
        if name in sys.modules:
            _process.arm(name, sys.modules[name])
    if _process.settings.regions:
        from profharness_hooks import step_log

        step_log.guarded(_process, step_log.recorder)(_process)
