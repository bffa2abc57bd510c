"""Where a Triton server runs: free ports, a workspace of its own, the interpreter's library on the
loader's path.

PyTriton copies the server's programs (22 MB) into a workspace under PYTRITON_HOME
(~/.cache/pytriton) and leaves it there when it is killed. Ours lie beside a lock file that lives as
long as the process, so that the next start sees which are stale.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import socket
import sys
import sysconfig
import tempfile
from typing import Any, List, NamedTuple, Optional, Sequence

from profharness_workloads.serving import children
from profharness_workloads.serving.plan import Door
from profharness_workloads.shared import leftovers
from profharness_workloads.shared.protocol import MISSING, USAGE, Refusal

PREFIX = "ph-"
LOCK = re.compile(r"ph-\d+-[0-9a-z]+\.lock")
# bytes that the kernel takes for a Unix socket's path (unix(7): sun_path, with its closing zero)
SOCKET_PATH = 107
MEMORY = "pytrtion%d-"  # PyTriton's own spelling (triton.py, _shm_prefix)
LONGEST_SOCKET = "_0_000-server.sock"  # what PyTriton appends to workspace and model name


class Ports(NamedTuple):
    """Ports that were free a moment ago."""

    grpc: int
    http: int
    metrics: int


def free_ports(door: Door) -> Ports:
    """The ports asked for, or free ones for those that are 0. Raises Refusal (USAGE) for one that
    is taken.
    """
    held = []
    try:
        for name, port in (
            ("grpc", door.grpc_port),
            ("http", door.http_port),
            ("metrics", door.metrics_port),
        ):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            held.append(sock)
            sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # one that was just closed is free
            try:
                sock.bind((door.host, port))
            except OSError as error:
                raise Refusal(
                    "%s port %d of %s cannot be used: %s"
                    % (name, port, door.host, os.strerror(error.errno or 0)),
                    "another server may be running there: choose other ports, "
                    "or leave them out to have free ones chosen",
                    USAGE,
                ) from error
        return Ports(*[sock.getsockname()[1] for sock in held])
    finally:
        for sock in held:
            sock.close()


def library_folder() -> str:
    """The folder of this interpreter's shared library, which the server's Python stub is linked
    against by name.

    With another build's library on the loader's path the stub would mix two versions, and with none
    it cannot start. Raises Refusal (MISSING) when this Python has no shared library.
    """
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folder, arch = (
        sysconfig.get_config_var("LIBDIR") or "",
        sysconfig.get_config_var("MULTIARCH") or "",
    )
    if not re.search(r"\.so(\.|$)", name):
        # a static build names its archive here, though a shared one may lie beside it
        name = "libpython%s.so.1.0" % sysconfig.get_config_var("LDVERSION")
    for place in (folder, os.path.join(folder, arch)):
        if os.path.isfile(os.path.join(place, name)):
            return place
    raise Refusal(
        "this Python has no shared library %s in %s (Py_ENABLE_SHARED is %s), "
        "and Triton's Python backend needs it"
        % (name, folder, sysconfig.get_config_var("Py_ENABLE_SHARED")),
        "use a Python that was built with --enable-shared (pyenv: "
        "PYTHON_CONFIGURE_OPTS=--enable-shared)",
        MISSING,
    )


def check_packages() -> Any:
    """The module pytriton. Raises Refusal (MISSING) when it, or the NumPy that it needs, is not
    there.
    """
    import numpy

    if int(numpy.__version__.split(".")[0]) >= 2:
        raise Refusal(
            "NumPy %s does not go with PyTriton, whose server needs NumPy 1" % numpy.__version__,
            "pip install 'numpy<2'",
            MISSING,
        )
    try:
        import pytriton.triton
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "PyTriton cannot be imported: %s" % error,
            "pip install 'nvidia-pytriton>=0.7' 'numpy<2'",
            MISSING,
        ) from error
    return pytriton


class Workspace:
    """A folder for one server: `path` does not exist yet, as PyTriton wants it; `close` removes
    what is left.
    """

    def __init__(self, models: Sequence[str], root: Optional[str] = None):
        self.root = _fitting(root or home(), models)
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        if os.stat(self.root).st_uid != os.getuid():
            raise Refusal(
                "%s belongs to another user" % self.root,
                "set PYTRITON_HOME to a folder of your own",
            )
        left = sweep(self.root)
        if left:
            sys.stderr.write(
                "profharness: removed what a killed server left: %s\n" % ", ".join(left)
            )
        leftovers.sweep(leftovers.SHARED_MEMORY)
        leftovers.sweep(tempfile.gettempdir())
        while True:
            name = "%s%d-%s" % (PREFIX, os.getpid(), secrets.token_hex(2))
            self.path = os.path.join(self.root, name)
            self._lock = _locked(self.path + ".lock", create=True)
            if self._lock is not None:
                return

    def note(self, left: Sequence[str]) -> None:
        """Write into the lock file what else a later start is to remove if this process cannot do
        it: folders of stubs, marks of processes, names of shared memory.
        """
        if self._lock is not None:
            os.write(self._lock, "".join(one + "\n" for one in left).encode())

    def close(self) -> None:
        """Remove the workspace, once the server has ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        _unlocked(self.path + ".lock", self._lock)
        self._lock = None


def home() -> str:
    """The folder of all workspaces, by PyTriton's own rule (pytriton.constants)."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.abspath(os.environ.get("PYTRITON_HOME") or os.path.join(cache, "pytriton"))


def _fitting(root: str, models: Sequence[str]) -> str:
    """`root`, or the folder for temporary files where the sockets' paths would be too long for the
    kernel.
    """
    longest = (
        len(PREFIX) + len("4194304-abcd/") + max(len(name) for name in models) + len(LONGEST_SOCKET)
    )
    for place in (root, os.path.join(tempfile.gettempdir(), "pytriton-%d" % os.getuid())):
        if len(os.fsencode(place)) + 1 + longest <= SOCKET_PATH:
            return place
    raise Refusal(
        "a model's name is too long for the sockets of Triton's backend",
        "give it a shorter one: NAME=MODEL",
    )


def sweep(root: str) -> List[str]:
    """Remove what is left of our servers that no longer run: Triton and its stubs, workspaces,
    shared memory; returns the workspaces.
    """
    removed = []
    for entry in sorted(os.listdir(root)):
        if not LOCK.fullmatch(entry):
            continue
        lock = _locked(os.path.join(root, entry), create=False)
        if lock is None:
            continue  # its server runs
        path = os.path.join(root, entry[: -len(".lock")])
        notes = os.read(lock, 65536).decode("utf-8", "replace").splitlines()
        children.end_what_is_left(path, notes)
        shutil.rmtree(path, ignore_errors=True)
        for folder in filter(children.STUB_FOLDER.fullmatch, notes):
            shutil.rmtree(folder, ignore_errors=True)
        pid = int(entry[len(PREFIX) :].split("-")[0])
        _forget([name for name in notes if name.startswith(MEMORY % pid) and "/" not in name])
        if not os.path.isdir("/proc/%d" % pid):  # else another one may have its number by now
            sweep_memory(pid)
        _unlocked(os.path.join(root, entry), lock)
        removed.append(path)
    return removed


def sweep_memory(pid: int) -> None:
    """Remove the shared memory of a server by the name that PyTriton gives it."""
    _forget(memory(pid))


def memory(pid: int) -> List[str]:
    """The names of the shared memory that the server of this process has now."""
    if not os.path.isdir(leftovers.SHARED_MEMORY):
        return []
    names = os.listdir(leftovers.SHARED_MEMORY)
    return sorted(name for name in names if name.startswith(MEMORY % pid))


def _forget(names: Sequence[str]) -> None:
    for name in names:
        try:
            os.unlink(os.path.join(leftovers.SHARED_MEMORY, name))
        except OSError:
            pass  # another user's, or gone


def _locked(path: str, *, create: bool) -> Optional[int]:
    """A descriptor that holds the lock on this file, or None: somebody else has it, or file systems
    without locks.
    """
    try:
        handle = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == os.stat(path).st_ino:
            return handle
    except OSError:
        if create:
            # no locks here: the workspace is used, and never swept by others, who cannot lock it
            # either
            return handle
    os.close(handle)
    return None


def _unlocked(path: str, handle: Optional[int]) -> None:
    if handle is None:
        return
    try:
        os.unlink(path)
    except OSError:
        pass  # gone already
    os.close(handle)
