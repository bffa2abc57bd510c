"""A model server that stays up until it is asked to end: what `profharness serve` starts, waits for
and stops.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.node.ceilings import cache_dir
from profharness.options import providers
from profharness.options.declared import Limit, Option
from profharness.options.serving import BY_TRITON
from profharness.options.shapes import read_items
from profharness.options.workload import SERVED_BACKENDS
from profharness.rundir import harness_process
from profharness.serving import other_backends, ready
from profharness.serving.model_folder import model_file
from profharness.workers import protocol as control
from profharness.workers.server import READY, Server, ServerSetup

BUILT_IN = ("particlenet", "sleep")
FROM_REPOSITORY = "repository"
_BACKENDS = {
    ".onnx": "onnxruntime",
    ".pt": "torch",
    ".pth": "torch",
    ".ts": "torch",
    ".graphdef": "tensorflow",
    ".pb": "tensorflow",
}


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What to serve, and where: the line of `profharness serve`.

    `models` are MODEL or NAME=MODEL; a port of 0 is chosen; `backend` "" goes by the model.
    """

    models: Annotated[
        tuple[str, ...],
        Option(
            "particlenet, sleep:TIME (a model of known service time), "
            "an ONNX or TorchScript file, a frozen TensorFlow graph or a SavedModel folder; "
            "NAME=MODEL names it.",
            argument=True,
            metavar="MODEL...",
        ),
    ]
    backend: Annotated[
        str,
        Option(
            "torch, onnxruntime or tensorflow (default: by the model).", examples=SERVED_BACKENDS
        ),
    ] = ""
    device: Annotated[
        str,
        Option(
            "auto, cpu, cuda, cuda:INDEX; a list such as cuda:0,cuda:1 spreads the instances over "
            "these devices."
        ),
    ] = "auto"
    instances: Annotated[
        int,
        Option("Copies of each model that compute at the same time.", limit=Limit(least=1)),
    ] = 1
    max_batch_size: Annotated[
        int, Option("Largest batch that the server puts together.", limit=Limit(least=1))
    ] = 64
    queue_delay_us: Annotated[
        int,
        Option("Time that a request may wait for a larger batch.", limit=Limit(least=0)),
    ] = 0
    threads: Annotated[
        int | None, Option("CPU threads of the framework.", limit=Limit(least=1))
    ] = None
    shapes: Annotated[
        dict[str, tuple[int, ...]],
        Option(
            "NAME:d1,d2 of an input, without the batch, where the model leaves it open.",
            names=("--shape",),
            gather=read_items,
        ),
    ] = {}
    host: Annotated[
        str,
        Option("Address to listen on; 0.0.0.0 opens it to other machines, with a token."),
    ] = "127.0.0.1"
    grpc_port: Annotated[
        int,
        Option(
            "0: a free one.",
            names=("--grpc-port", "--port"),
            limit=Limit(least=0, most=65535),
        ),
    ] = 0
    http_port: Annotated[int, Option("0: a free one.", limit=Limit(least=0, most=65535))] = 0
    metrics_port: Annotated[int, Option("0: a free one.", limit=Limit(least=0, most=65535))] = 0
    token: Annotated[
        str,
        Option(
            "Token that clients must send (default: none on 127.0.0.1; on other addresses a new "
            "random one).",
            envvar="PROFHARNESS_TOKEN",
        ),
    ] = ""
    tls_cert: Annotated[str, Option("Certificate (PEM) for gRPC; HTTP then stays on loopback.")] = (
        ""
    )
    tls_key: Annotated[str, Option("Its key (PEM).")] = ""
    provider: Annotated[
        tuple[str, ...],
        Option(
            "onnxruntime's execution provider, best first: migraphx, rocm, cuda, tensorrt or cpu, "
            "with its options as migraphx:KEY=VALUE,KEY=VALUE. Repeatable.",
            examples=providers.NAMES,
            metavar="NAME[:KEY=VALUE,...]",
        ),
    ] = ()
    ort_optimization: Annotated[
        providers.Optimization,
        Option("How far onnxruntime optimises the graph: all (default), extended, basic or off."),
    ] = "all"
    autocast: Annotated[
        Literal["off", "bf16", "fp16"],
        Option("Run models of torch under torch.autocast: off (default), bf16 or fp16."),
    ] = "off"
    torchscript: Annotated[bool, Option("Run the built-in model as TorchScript.")] = False
    ragged: Annotated[
        bool,
        Option(
            "Let Triton itself put requests of different lengths into one batch: the models run "
            "from a model repository that is written for it."
        ),
    ] = False
    repository: Annotated[
        str,
        Option(
            "Let Triton's own Python backend serve the models from a model repository that is "
            "written into this folder and stays there, to copy it to another Triton."
        ),
    ] = ""
    allow_fallback: Annotated[
        bool,
        Option("Serve from what is there where the device or provider is missing, and say so."),
    ] = False
    python: Annotated[str, Option("The server's interpreter (default: this one).")] = ""

    def settings(self, cache: Path) -> dict[str, object]:
        """The server's spec. Raises UsageError for a file that is not there or of no known kind."""
        own = (
            "device",
            "instances",
            "max_batch_size",
            "queue_delay_us",
            "threads",
            "shapes",
            "host",
            "grpc_port",
            "http_port",
            "metrics_port",
            "token",
            "allow_fallback",
            "autocast",
            "torchscript",
        )
        if self.shapes and len(self.models) > 1:
            raise UsageError(
                "--shape: it is not said which of the models it is for",
                "serve models with open shapes one at a time",
            )
        built_in = "onnxruntime" if self._of_onnxruntime else "torch"
        models = [_model(text, self.backend, built_in) for text in self.models]
        self._check_ragged([model["backend"] for model in models])
        self._check_providers([model["backend"] for model in models])
        cert, key = (
            str(Path(path).resolve()) if path else "" for path in (self.tls_cert, self.tls_key)
        )
        return {
            "backend": models[0]["backend"],
            "model": models[0]["model"],
            "models": models,
            "cache_dir": str(cache),
            "records": False,
            "ragged": BY_TRITON if self.ragged else FROM_REPOSITORY if self.repository else "none",
            "repository": str(Path(self.repository).resolve()) if self.repository else "",
            "tls_cert": cert,
            "tls_key": key,
            "providers": providers.as_settings(self.provider),
            "optimization": self.ort_optimization,
            **{name: getattr(self, name) for name in own},
        }

    @property
    def _of_onnxruntime(self) -> str:
        """The option that speaks of onnxruntime; "" for none."""
        if self.provider:
            return providers.OPTION
        return "" if self.ort_optimization == "all" else "--ort-optimization"

    def _check_ragged(self, backends: list[str]) -> None:
        if (self.ragged or self.repository) and "tensorflow" in backends:
            option = "--ragged" if self.ragged else "--repository"
            raise UsageError(
                f"{option}: Triton runs models of torch and onnxruntime here",
                "leave it out, or serve the other models only",
            )
        if self.repository and any(Path(self.repository).glob("*")):
            raise UsageError(
                f"--repository: {self.repository} is not empty",
                "name a new folder: Triton serves every model in it",
            )

    def _check_providers(self, backends: list[str]) -> None:
        providers.check(self.provider)
        providers.check_optimization(self.ort_optimization)
        if wrong := providers.contradiction(self.provider, self.device):
            raise UsageError(*wrong)
        if self.autocast != "off" and "torch" not in backends:
            raise UsageError(
                f"--autocast {self.autocast} is torch's, and none of these models runs in it",
                "leave it out, or say --backend torch",
            )
        if self._of_onnxruntime and "onnxruntime" not in backends:
            raise UsageError(
                f"{self._of_onnxruntime} is onnxruntime's, and none of these models runs in it",
                "leave it out, or say --backend onnxruntime",
            )


def _model(text: str, backend: str, built_in: str) -> dict[str, str]:
    name, equals, model = text.rpartition("=")
    named = {"name": name} if equals else {}
    if model.split(":", maxsplit=1)[0] in BUILT_IN:
        return {**named, "model": model, "backend": backend or built_in}
    path = Path(model_file(model)).resolve()
    if not path.exists():
        raise UsageError(
            f"there is no model or file {model!r}",
            "name particlenet, sleep:TIME, or a .onnx, .pt or .graphdef file",
        )
    kind = backend or _BACKENDS.get(path.suffix.lower(), "tensorflow" if path.is_dir() else "")
    if not kind:
        raise UsageError(
            f"{model}: not a model of a known kind",
            f"known endings: {', '.join(_BACKENDS)}; or say --backend",
        )
    return {**named, "model": str(path), "backend": kind}


@contextmanager
def standing(offer: Offer, poll: Callable[[], None]) -> Iterator[tuple[ready.Ready, Server]]:
    """The server, ready to serve; it has ended when the context is left. Raises what it said when
    it refuses.

    `poll` is called while it starts, and may raise to give up. The folder with its logs stays where
    it failed.
    """
    # the name that wrappers/profharness_workloads/shared/leftovers.py sweeps once we are killed
    own_process = harness_process.identify()
    number = "".join(filter(str.isdigit, own_process.namespace)) or "0"
    mark = f"p{own_process.pid}n{number}s{own_process.start_ticks}"
    folder = Path(tempfile.mkdtemp(prefix=f"profharness-serve-{mark}-"))
    spec = folder / "server.json"
    control.write_spec(spec, offer.settings(cache_dir()))
    spec.chmod(0o600)
    own = {
        "PROFHARNESS_CONTROL_DIR": str(folder),
        "PROFHARNESS_SPEC": str(spec),
        "PROFHARNESS_PARENT_PID": str(os.getpid()),
    }
    if not os.environ.get(
        "PROFHARNESS_HOOKS_DIR"
    ):  # else a run profiles this command, and its hooks go on into the server
        own |= {
            "PROFHARNESS_RUN_DIR": str(folder),
            "PROFHARNESS_LAYERS": "",
            "PROFHARNESS_WORKER": "1",
        }
    command = Command(
        (
            offer.python or sys.executable,
            str(wrappers_dir() / "profharness_workloads" / "serving" / "triton_server.py"),
        ),
        own,
    )
    server = Server(
        ServerSetup(folder, "serve", command, command, managed=True),
        LocalLauncher(),
        lambda _: None,
        poll,
    )
    try:
        server.ensure(command)
        told = ready.read(folder / READY)
        if offer.repository and offer.ragged:
            other_backends.write_beside(told)
        yield told, server
    finally:
        died = server.died()
        server.stop()
        if died:
            (folder / "kept").touch()
        else:
            shutil.rmtree(folder, ignore_errors=True)
