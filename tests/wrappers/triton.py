"""Real Triton servers for tests: started through the worker's own protocol, and spoken to by
Triton's client library.
"""

from __future__ import annotations

import atexit
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.wrappers.control import Control, until

HTTP_TOKEN, GRPC_TOKEN = "triton-access-token", "triton-grpc-protocol-triton-access-token"


class Server:
    """One server process, its ready file, and the levels that it is told."""

    def __init__(
        self, root: Path, spec: Mapping[str, object], *, layers: str = "", **env: str
    ) -> None:
        self.control = Control(
            root, {"backend": "torch", "model": "particlenet", **spec}, layers=layers
        )
        self.home = short_home()
        begun = time.monotonic()
        self.process = self.control.start(
            "serving/triton_server.py", PYTRITON_HOME=str(self.home), **env
        )
        self.ready_path = self.control.folder / "server-ready.json"
        until(self.ready_path.exists, self.process, 180)
        self.started_s = time.monotonic() - begun
        self.ready: dict[str, Any] = json.loads(self.ready_path.read_text())

    def tell(self, kind: str, key: str = "") -> None:
        with (self.control.folder / "levels.jsonl").open("a") as file:
            file.write(json.dumps({"v": 1, "kind": kind, **({"id": key} if key else {})}) + "\n")

    def answers(self) -> list[dict[str, Any]]:
        return self.control.records("windows.jsonl")  # type: ignore[return-value]  # JSON

    def window(self, kind: str, key: str) -> dict[str, Any]:
        """Open or close a level, and wait for the answer."""
        self.tell(kind, key)
        past = {"open": "opened", "close": "closed"}[kind]
        until(
            lambda: any((one["kind"], one["id"]) == (past, key) for one in self.answers()),
            self.process,
        )
        return next(one for one in self.answers() if (one["kind"], one["id"]) == (past, key))

    def end(self) -> tuple[int, float, str]:
        """By request: exit status, seconds that it took, and what it said."""
        begun = time.monotonic()
        self.tell("stop")
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, time.monotonic() - begun, out + err

    def kill(self) -> None:
        """For the end of a test, which may have failed before the server's own."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=120)
        shutil.rmtree(self.home, ignore_errors=True)

    def memory(self) -> list[str]:
        """Shared memory that Triton's Python backend made for this server."""
        return [path.name for path in Path("/dev/shm").glob(f"pytrtion{self.ready['pid']}-*")]

    def model(self, name: str) -> dict[str, Any]:
        return next(one for one in self.ready["models"] if one["name"] == name)


def slowest_end_s(started_s: float) -> float:
    """Six seconds, which the end of a server takes less than; as long as its start where a slow or
    busy machine took longer for that.
    """
    return max(6.0, started_s)


def short_home() -> Path:
    """A folder for Triton's workspaces, gone when the tests' process ends; pytest's own are too deep
    for the sockets in it.
    """
    home = Path(tempfile.mkdtemp(prefix="ph-test-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def client(server: Server, protocol: str, **options: object) -> Any:
    """Triton's own client for one protocol."""
    import tritonclient.grpc as grpc
    import tritonclient.http as http

    module = grpc if protocol == "grpc" else http
    return module.InferenceServerClient(server.ready[protocol], **options)


def infer(
    speaker: Any,
    model: str,
    arrays: Mapping[str, np.ndarray],
    output: str,
    *,
    sequence: int | None = None,
    token: str = "",
) -> np.ndarray:
    """One request; its one output."""
    import tritonclient.grpc as grpc
    import tritonclient.http as http

    module = grpc if "grpc" in type(speaker).__module__ else http
    given = []
    for name, array in arrays.items():
        tensor = module.InferInput(name, list(array.shape), "FP32")
        tensor.set_data_from_numpy(array)
        given.append(tensor)
    headers = {GRPC_TOKEN if module is grpc else HTTP_TOKEN: token} if token else None
    parameters = None if sequence is None else {"profharness_seq": sequence}
    return speaker.infer(model, given, parameters=parameters, headers=headers).as_numpy(output)  # type: ignore[no-any-return]  # untyped client
