"""The options of served scans, the third chapter of `Request`, and what follows from them. Pure."""

from __future__ import annotations

from pathlib import Path as File
from typing import Annotated, Literal

from profharness.errors import UsageError
from profharness.options import texts
from profharness.options.declared import SERVING, Limit, Option, existing_file
from profharness.options.recording import RecordingOptions
from profharness.options.workload import FOR_SCANS
from profharness.rundir.latency_limit import parse_latency_limit

Via = Literal["direct", "triton", "perf-analyzer"]
SATURATION = "saturation"
"""The scan that looks for the knee by itself."""

ARRIVALS = ("constant", "poisson")
RAGGED = ("none", "padded", "grouped", "triton")
"""How requests whose items differ in length become batches."""

BY_TRITON = "triton"
"""That of them in which Triton runs the models itself, from a repository that we write."""

DEFAULT_LEVELS = (1, 2, 4, 8)
DEFAULT_BATCH = 64
"""Largest dynamic batch of a server of ours, unless --max-batch-size or a larger --batch-sizes says
otherwise.
"""


def _latency_limit(text: str) -> None:
    parse_latency_limit(text)


def _arrivals(text: str) -> None:
    if text not in ARRIVALS and not File(text).is_file():
        raise UsageError(
            f"--arrivals: there is no file {text}",
            f"use {', '.join(ARRIVALS)}, or a file of arrival times in s",
        )


def _ragged(ways: tuple[str, ...]) -> None:
    unknown = [way for way in ways if way not in RAGGED]
    if unknown or not ways:
        raise UsageError(
            f"--ragged: there is no way {', '.join(unknown)}" if unknown else "--ragged: no way",
            f"known ways: {', '.join(RAGGED)}",
        )
    if len(set(ways)) != len(ways):
        raise UsageError(f"--ragged: {','.join(ways)} names one twice", "name each way once")


def _image(path: str) -> None:
    if path and not File(path).exists():
        raise UsageError(
            f"--perf-analyzer-image: there is no file {path}",
            "name an Apptainer image (.sif) that holds perf_analyzer",
        )


class ServingOptions(RecordingOptions, frozen=True, kw_only=True):
    """What was asked of a served scan. Times in s unless their name says otherwise."""

    via: Annotated[
        Via,
        Option(
            "direct (default), triton (our load generator), perf-analyzer (NVIDIA's).",
            SERVING,
            only=FOR_SCANS,
        ),
    ] = "direct"
    concurrency: Annotated[
        tuple[int, ...],
        Option(
            "Closed loop: requests in flight, 1,2,4 or 1..64 (powers of two).",
            SERVING,
            only=FOR_SCANS,
            common=True,
            text=texts.COUNTS,
            limit=Limit(
                least=1,
                says="a level has at least one client",
                hint="write a list such as 1,2,4 or 1..64",
            ),
        ),
    ] = ()
    rate: Annotated[
        tuple[float, ...],
        Option(
            "Open loop: requests per second, 10,20,40.",
            SERVING,
            only=FOR_SCANS,
            text=texts.RATES,
            limit=Limit(
                above=0,
                says="must be more than 0",
                hint="write requests per second, such as 10,20,40",
            ),
        ),
    ] = ()
    arrivals: Annotated[
        str,
        Option(
            "Open loop: poisson (default), constant, or a file of arrival times in s.",
            SERVING,
            only=FOR_SCANS,
            check=_arrivals,
            examples=ARRIVALS,
        ),
    ] = "poisson"
    think_ms: Annotated[
        float,
        Option(
            "Closed loop: pause of a client between answer and next request.",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(
                least=0, says="must not be negative", hint="use 0 for clients that send at once"
            ),
        ),
    ] = 0.0
    clients_per_job: Annotated[
        int,
        Option(
            "Requests that one job keeps in flight (threads of a reconstruction job); "
            "for jobs per device.",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(least=1, says="{} is too few", hint="ask for at least 1"),
        ),
    ] = 1
    time: Annotated[
        float,
        Option(
            "Seconds per level, after warm-up (default 5).",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(above=0, says="a level needs a time", hint="5 s is the default"),
        ),
    ] = 5.0
    warmup_time: Annotated[
        float,
        Option(
            "Seconds of warm-up per level, at least (default 1).",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(
                least=0, says="must not be negative", hint="use 0 for the shortest warm-up"
            ),
        ),
    ] = 1.0
    timeout: Annotated[
        float,
        Option(
            "Seconds after which a request counts as failed (default 30).",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(above=0, says="must be more than 0", hint="30 s is the default"),
        ),
    ] = 30.0
    latency_limit: Annotated[
        str,
        Option(
            "p99=20ms: the most that clients accept.", SERVING, only=FOR_SCANS, check=_latency_limit
        ),
    ] = ""
    protocol: Annotated[
        Literal["grpc", "http"], Option("grpc (default) or http.", SERVING, only=FOR_SCANS)
    ] = "grpc"
    shared_memory: Annotated[
        Literal["none", "system", "cuda", "hip"],
        Option(
            "Where tensors lie that the server maps: none (default: they are sent), system "
            "(/dev/shm), or a GPU's memory: cuda (NVIDIA) or hip (AMD).",
            SERVING,
            only=FOR_SCANS,
        ),
    ] = "none"
    compression: Annotated[
        Literal["none", "gzip", "deflate"],
        Option("none (default), gzip or deflate.", SERVING, only=FOR_SCANS),
    ] = "none"
    clients: Annotated[
        int,
        Option(
            "Processes of the load generator (default 1).",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(least=1, says="{} is too few", hint="ask for at least 1 process"),
        ),
    ] = 1
    instances: Annotated[
        int,
        Option(
            "Copies of the model in the server (default 1).",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(least=1, says="{} is too few", hint="ask for at least 1"),
        ),
    ] = 1
    max_batch_size: Annotated[
        int | None,
        Option(
            "Largest batch that the server puts together (default 64).",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(least=1, says="must be at least 1", hint="leave it out for the usual one"),
        ),
    ] = None
    queue_delay_us: Annotated[
        int,
        Option(
            "Time that the server may wait for a larger batch.",
            SERVING,
            only=FOR_SCANS,
            limit=Limit(least=0, says="must not be negative", hint="use 0 for no delay"),
        ),
    ] = 0
    url: Annotated[
        str,
        Option(
            "HOST:PORT of a server that runs already (or several, A,B), with grpc://, "
            "grpcs://, http:// or https:// before it; nothing is started. "
            "The variable PROFHARNESS_TOKEN holds its token, if it needs one.",
            SERVING,
            only=FOR_SCANS,
        ),
    ] = ""
    token_file: Annotated[
        str,
        Option(
            "A file with the token of the server at --url, in place of PROFHARNESS_TOKEN.",
            SERVING,
            only=FOR_SCANS,
            check=existing_file(
                "--token-file", "name a file that holds the token and nothing else"
            ),
        ),
    ] = ""
    ca: Annotated[
        str,
        Option(
            "PEM file with the authority of the certificate of grpcs:// or https:// at --url "
            "(default: the system's).",
            SERVING,
            only=FOR_SCANS,
            check=existing_file(
                "--ca", "name a PEM file with the certificate of the server's authority"
            ),
        ),
    ] = ""
    server_command: Annotated[
        str,
        Option("Start this server under the layers, in place of ours.", SERVING, only=FOR_SCANS),
    ] = ""
    ready: Annotated[
        str,
        Option(
            "URL that answers 200 once the server of --server-command can serve.",
            SERVING,
            only=FOR_SCANS,
        ),
    ] = ""
    perf_analyzer_arg: Annotated[
        tuple[str, ...],
        Option("One more argument for perf_analyzer. Repeatable.", SERVING, only=FOR_SCANS),
    ] = ()
    perf_analyzer_image: Annotated[
        str,
        Option(
            "Apptainer image (.sif) that holds perf_analyzer.",
            SERVING,
            only=FOR_SCANS,
            check=_image,
        ),
    ] = ""
    ragged: Annotated[
        tuple[str, ...],
        Option(
            "Variable particle counts: none (default), padded with zeros to the largest, grouped "
            "by length, or triton: grouped, and Triton itself puts requests of different lengths "
            "in one batch. Several are compared: padded,grouped,triton.",
            SERVING,
            only=FOR_SCANS,
            text=texts.NAMES,
            gather=texts.joined_by_commas,
            choices=RAGGED,
            check=_ragged,
        ),
    ] = ("none",)
    together: Annotated[
        bool,
        Option(
            "Of --model A,B: also all at once on one server, to show what sharing costs; "
            "with --device cuda:0,cuda:1 on one device and on one each.",
            SERVING,
            only=FOR_SCANS,
        ),
    ] = False
    body: Annotated[
        str,
        Option(
            "Plain HTTP servers: a file that is sent as it is (.jsonl: its lines in turn).",
            SERVING,
            only=FOR_SCANS,
            check=existing_file(
                "--body", "name a file that is sent as it is, or .jsonl with one body a line"
            ),
        ),
    ] = ""
    path: Annotated[
        str,
        Option(
            "Plain HTTP servers: where requests go, such as /v1/completions.",
            SERVING,
            only=FOR_SCANS,
        ),
    ] = ""

    @property
    def urls(self) -> tuple[str, ...]:
        """The servers of `--url A,B`, which get the requests in turn."""
        return tuple(part.strip() for part in self.url.split(",") if part.strip())

    @property
    def managed(self) -> bool:
        """Whether the server is ours, so that it opens and closes a window for each level."""
        return not self.url and not self.server_command

    @property
    def served(self) -> bool:
        """Whether a server stands between load and model."""
        return (
            self.scan == SATURATION or self.via != "direct" or bool(self.url or self.server_command)
        )
