"""A running Triton. A failure of its start is reported at once in the server's own words, and it is
ended within seconds.

The server is a child of the thread that starts it and dies with that thread, which must therefore
be the main thread. Tools and hooks of this process are kept out of the server: it computes nothing,
since the models run here.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import threading
import urllib.request
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.serving import children, place
from profharness_workloads.serving.plan import Door, Served
from profharness_workloads.serving.repository import Store
from profharness_workloads.serving.repository_model import VARIABLE
from profharness_workloads.serving.runner import Offered
from profharness_workloads.shared import inputs, models
from profharness_workloads.shared.protocol import Refusal

HTTP_TOKEN = "triton-access-token"
GRPC_TOKEN = "triton-grpc-protocol-triton-access-token"
# Loading a model means running its code: never open to others, not even on loopback of a shared
# node.
ADMINISTRATION = ["model-repository", "trace", "logging"]
EVERYTHING = [
    *ADMINISTRATION,
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "statistics",
]
# what the server waits for open connections when it ends; with less, its stubs outlive a kill of
# this process
EXIT_TIMEOUT_S = 2
KILL_AFTER_S = 4.0
ATTEMPTS = 3  # a port found free may be taken before the server has it
TAKEN = "already in use"
WORD_CHARACTERS = 300
_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class Failed(Exception):  # noqa: N818  named by what happened
    """The server ended while it started; the message is its own last words."""


class Bound(NamedTuple):
    """A model with its runner and one inference function per instance."""

    model: Served
    runner: Offered
    functions: Sequence[Callable[[List[Any]], List[Any]]]


class Server:
    """Triton with its models loaded. Made in the main thread; `stop` ends it there."""

    def __init__(self, door: Door, bound: Sequence[Bound], log: str, store: Optional[Store] = None):
        place.check_packages()
        library = place.library_folder()
        self.door, self.log, self._store = door, log, store
        names = [bound_model.model.name for bound_model in bound]
        # one token for all: the server knows only one; clients on loopback need none for what they
        # use
        self.secret = door.token or secrets.token_urlsafe(24)
        self._id = "profharness-%d-%s" % (os.getpid(), secrets.token_hex(4))
        for attempt in range(ATTEMPTS):
            self.ports = place.free_ports(door)
            self._workspace = place.Workspace(names)
            try:
                self._triton = self._run(bound, library)
                break
            except Failed as failure:
                self._workspace.close()
                if attempt == ATTEMPTS - 1 or TAKEN not in str(failure):
                    raise Refusal(
                        "Triton did not start: %s" % failure, "its log is %s" % log, 1
                    ) from failure
            except BaseException:  # Ctrl-C too: the workspace must not stay
                self._workspace.close()
                raise
        self.pid = children.server_process()
        self._workspace.note(
            [
                *children.stub_folders(children.stubs(self.pid)),
                *children.marks(self.pid),
                *place.memory(os.getpid()),
            ]
        )

    @property
    def token(self) -> str:
        """What clients must show; "" when they need nothing."""
        return self.secret if self.door.token or self.door.opened else ""

    @property
    def repository(self) -> str:
        """The folder of the models that it runs itself; "" where they run in this process."""
        return "" if self._store is None else self._store.repository

    @property
    def local(self) -> str:
        """The address by which this machine reaches the server."""
        return "127.0.0.1" if self.door.host in ("0.0.0.0", "localhost") else self.door.host

    @property
    def http_host(self) -> str:
        """Triton's HTTP speaks no TLS: with a certificate it stays on loopback."""
        return "127.0.0.1" if self.door.tls_cert else self.local

    def alive(self) -> bool:
        return bool(self._triton.is_alive())

    def _run(self, bound: Sequence[Bound], library: str) -> Any:
        from pytriton.triton import Triton, TritonSecurityConfig

        guarded = EVERYTHING if self.token else ADMINISTRATION
        security = TritonSecurityConfig(access_token=self.secret, restricted_endpoints=guarded)
        triton = Triton(
            config=self._config(), workspace=self._workspace.path, security_config=security
        )
        try:
            for bound_model in bound if self._store is None else ():
                _bind(triton, bound_model)
            with _environment(library, self._store), _watched(self.log):
                triton.run()
            self._check_identity()
        except BaseException as error:  # Ctrl-C too: a server that half started must end
            _ended(triton, children.server_process())
            if isinstance(error, Exception) and not isinstance(
                error, Failed
            ):  # whatever its client raises
                raise Failed(_reason(str(error))) from error
            raise
        return triton

    def _config(self) -> Any:
        from pytriton.triton import TritonConfig

        door = self.door
        host = "127.0.0.1" if door.host == "localhost" else door.host
        safe: Dict[str, Any] = {}
        if door.tls_cert:
            safe = {
                "grpc_use_ssl": True,
                "grpc_server_cert": door.tls_cert,
                "grpc_server_key": door.tls_key,
            }
        return TritonConfig(
            id=self._id,
            http_address="127.0.0.1" if door.tls_cert else host,
            grpc_address=host,
            http_port=self.ports.http,
            grpc_port=self.ports.grpc,
            metrics_port=self.ports.metrics,
            exit_timeout_secs=EXIT_TIMEOUT_S,
            exit_on_error=True,
            allow_gpu_metrics=False,
            log_file=self.log,
            model_repository=self._store and pathlib.Path(self._store.repository),
            **safe,
        )

    def _check_identity(self) -> None:
        """Raises unless the process that answers there is the server that was started here."""
        url = "http://%s:%d/v2" % (self.http_host, self.ports.http)
        asked = urllib.request.Request(url, headers={HTTP_TOKEN: self.secret})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=5) as answer:
            name = json.load(answer).get("name")
        if name != self._id:
            raise Failed("another server (%s) answers on port %d" % (name, self.ports.http))

    def stop(self) -> None:
        """End it, in at most about five seconds even when clients are still connected."""
        _ended(self._triton, self.pid)
        self._workspace.close()


def heed_no_signals() -> None:
    """Ignore signals from here on, since the process ends by itself: a second Ctrl-C must not leave
    half of it running.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _bind(triton: Any, bound_model: Bound) -> None:
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor

    def tensors(specs: Sequence[inputs.TensorSpec]) -> List[Any]:
        return [
            Tensor(name=spec.name, dtype=np.dtype(spec.dtype), shape=shape(spec) or (1,))
            for spec in specs
        ]

    model = bound_model.model
    batcher = DynamicBatcher(
        max_queue_delay_microseconds=model.queue_delay_us,
        preferred_batch_size=list(model.preferred) or None,
    )
    triton.bind(
        model_name=model.name,
        infer_func=list(bound_model.functions),
        inputs=tensors(bound_model.runner.signature.inputs),
        outputs=tensors(bound_model.runner.signature.outputs),
        config=ModelConfig(max_batch_size=model.max_batch_size, batcher=batcher),
        strict=True,
    )


def shape(spec: inputs.TensorSpec) -> Tuple[int, ...]:
    """Dimensions without the batch, free ones as -1."""
    return tuple(-1 if d is None else d for d in spec.dims)


class _environment:  # noqa: N801  used as a function
    """While the server is started: nothing of this process's tools, and its interpreter's library
    first.
    """

    def __init__(self, library: str, store: Optional[Store]):
        self._new = models.quiet_environment(os.environ)
        if store is not None:  # the models run there, and on their devices
            self._new.update(
                {name: os.environ[name] for name in _DEVICES if name in os.environ},
                **({VARIABLE: store.executions} if store.executions else {}),
            )
            for name in _DEVICES:
                if name not in os.environ:
                    del self._new[name]
        inherited = self._new.get("LD_LIBRARY_PATH", "")
        self._new["LD_LIBRARY_PATH"] = library + (":" + inherited if inherited else "")
        # one instance's stub after the other: PyTriton's later ones ask the first one, which must
        # be there by then
        self._new["TRITON_PARALLEL_INSTANCE_LOADING"] = "0"

    def __enter__(self) -> None:
        self._before = dict(os.environ)
        _replace(self._new)

    def __exit__(self, *_error: object) -> None:
        _replace(self._before)


def _replace(environ: Dict[str, str]) -> None:
    for name in set(os.environ) - set(environ):
        del os.environ[name]
    os.environ.update(environ)


class _watched:  # noqa: N801  used as a function
    """PyTriton waits two minutes for a server that has died; inside this, its end raises Failed in
    the main thread.
    """

    PERIOD_S = 0.1

    def __init__(self, log: str):
        self._log = log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGUSR1, self._ended)
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()
        signal.signal(signal.SIGUSR1, self._before)

    def _look(self) -> None:
        seen = False
        while not self._over.wait(self.PERIOD_S):
            running = children.server_process() is not None
            if seen and not running:
                os.kill(os.getpid(), signal.SIGUSR1)
                return
            seen = seen or running

    def _ended(self, _number: int, _frame: Any) -> None:
        if not self._over.is_set():
            self._over.set()
            raise Failed(last_words(self._log))


def last_words(log: str) -> str:
    """The last error line of the server's log, without its time stamp; its last line where none is
    an error.
    """
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError:
        return "it wrote no log"
    errors = [line for line in lines if line.startswith("E") or "error" in line.lower()]
    words: Optional[str] = (errors or lines or ["it said nothing"])[-1]
    text = words.partition("] ")[2] or words if words else ""
    return text.strip('"')[:WORD_CHARACTERS]


def _reason(text: str) -> str:
    """The exception's own line of a message with a remote traceback in it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception): ", line)]
    return (raised or lines or ["it gave no reason"])[-1][:WORD_CHARACTERS]


def _ended(triton: Any, pid: Optional[int]) -> None:
    """Stop Triton, and what it leaves behind when it gives up waiting for clients: stubs, and the
    folders they run from.
    """
    stubs = children.stubs(pid)
    folders = children.stub_folders(stubs)
    killer = threading.Timer(KILL_AFTER_S, children.kill, [[pid] if pid else []])
    killer.daemon = True
    killer.start()
    try:
        triton.stop()
    except Exception as error:  # its clients raise anything once the server is gone
        # only told: the reason for the end counts
        print("profharness server: while it ended: %s" % error, flush=True)
    finally:
        killer.cancel()
        children.kill(stubs)
        place.sweep_memory(os.getpid())
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
