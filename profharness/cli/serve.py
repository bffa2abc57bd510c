"""`profharness serve`: a real Triton with the user's models, up until it is told to end."""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from profharness.rundir.shown.screen import mention
from profharness.workers.standing_server import Offer

if TYPE_CHECKING:
    from profharness.serving.ready import Model, Ready

LOOK_S = 0.3


def serve(offer: Offer) -> int:
    """Serve models by Triton (through PyTriton) until Ctrl-C; needs the extra `triton`.

    \b
    profharness serve particlenet --instances 2 --max-batch-size 64
    profharness serve tagger=model.onnx sleep:20ms --host 0.0.0.0 --port 8001
    """
    from profharness.errors import WorkloadFailed
    from profharness.workers.standing_server import standing

    ended = threading.Event()

    def give_up() -> None:
        if ended.is_set():
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with standing(offer, give_up) as (ready, server):
        for line in lines_of(ready):
            typer.echo(line)
        while not ended.wait(LOOK_S):
            if server.died():
                raise WorkloadFailed(server.reason(), f"what it printed is in {server.log.parent}")
        mention("profharness: ending the server; clients get no further answers")
    return 0


def lines_of(ready: Ready) -> Iterator[str]:
    """What is served, where, and how to measure it."""
    for model in ready.models:
        copies = "1 instance" if model.instances == 1 else f"{model.instances} instances"
        yield (
            f"serving {model.name} ({model.backend} on {model.device}, {copies}, "
            f"batches up to {model.max_batch_size})"
        )
        yield f"  takes {_tensors(model, outputs=False)}"
        yield f"  gives {_tensors(model, outputs=True)}"
    if ready.fallback:
        yield f"note     {ready.fallback}"
    grpc = f"{ready.reach}:{ready.grpc.rpartition(':')[2]}"
    only = "  (TLS is for gRPC: this one is on loopback)" if ready.tls else ""
    http = ready.http if ready.tls else f"{ready.reach}:{ready.http.rpartition(':')[2]}"
    yield f"gRPC     {grpc}{'  (TLS)' if ready.tls else ''}"
    yield f"HTTP     {http}{only}"
    port = ready.metrics.rpartition(":")[2]
    yield f"metrics  {ready.metrics if ready.tls else f'http://{ready.reach}:{port}'}"
    if ready.token:
        yield f"token    {ready.token}"
    if ready.repository:
        yield f"models   {ready.repository}"
    words = [
        "profharness",
        "run",
        "--url",
        f"{'grpcs' if ready.tls else 'grpc'}://{grpc}",
        "--model",
        ready.models[0].name,
        "--concurrency",
        "1,2,4,8",
    ]
    prefix = f"PROFHARNESS_TOKEN={shlex.quote(ready.token)} " if ready.token else ""
    yield f"measure it:  {prefix}{shlex.join(words)}"
    if ready.tls:
        yield "             add --ca FILE where a private authority signed the certificate"
    yield f"end it:      Ctrl-C, or kill {os.getpid()}"


def _tensors(model: Model, *, outputs: bool) -> str:
    def one(name: str, dtype: str, shape: tuple[int, ...]) -> str:
        return (
            f"{name} {dtype} [{', '.join(['batch', *('any' if d < 0 else str(d) for d in shape)])}]"
        )

    return ", ".join(
        one(each.name, each.dtype, each.shape)
        for each in (model.outputs if outputs else model.inputs)
    )
