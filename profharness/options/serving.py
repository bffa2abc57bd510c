"""The options of served scans as one typed record: what they mean, which exclude each other, and
what follows from them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from profharness.errors import UsageError
from profharness.rundir.latency_limit import parse_latency_limit

Via = Literal["direct", "triton", "perf-analyzer"]
SATURATION = "saturation"
"""The scan that looks for the knee by itself."""

ARRIVALS = ("constant", "poisson")
DEFAULT_LEVELS = (1, 2, 4, 8)
DEFAULT_BATCH = 64
"""Largest dynamic batch of a server of ours, unless --max-batch-size or a larger --batch-sizes says
otherwise.
"""


class ServingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of a served scan. Times in s unless their name says otherwise."""

    via: Via = "direct"
    concurrency: tuple[int, ...] = ()
    rate: tuple[float, ...] = ()
    arrivals: str = "poisson"
    think_ms: float = 0.0
    clients_per_job: int = 1
    time: float = 5.0
    warmup_time: float = 1.0
    timeout: float = 30.0
    latency_limit: str = ""
    protocol: Literal["grpc", "http"] = "grpc"
    shared_memory: Literal["none", "system"] = "none"
    compression: Literal["none", "gzip", "deflate"] = "none"
    clients: int = 1
    instances: int = 1
    max_batch_size: int | None = None
    queue_delay_us: int = 0
    allow_fallback: bool = False
    url: str = ""
    token_file: str = ""
    ca: str = ""
    server_command: str = ""
    ready: str = ""
    perf_analyzer_arg: tuple[str, ...] = ()
    perf_analyzer_image: str = ""
    ragged: Literal["none", "padded", "grouped"] = "none"
    together: bool = False
    body: str = ""
    path: str = ""

    @property
    def urls(self) -> tuple[str, ...]:
        """The servers of `--url A,B`, which get the requests in turn."""
        return tuple(part.strip() for part in self.url.split(",") if part.strip())

    @property
    def starts_server(self) -> bool:
        """Whether the scan starts a server itself: ours, or the one of --server-command."""
        return not self.url

    @property
    def managed(self) -> bool:
        """Whether the server is ours, so that it opens and closes a window for each level."""
        return not self.url and not self.server_command


NAMES = frozenset(field.name for field in msgspec.structs.fields(ServingOptions))
_OF_OUR_SERVER = (
    "together",
    "instances",
    "max_batch_size",
    "queue_delay_us",
    "allow_fallback",
    "device",
    "threads",
    "torchscript",
    "compile",
)
_OF_DIRECT_SCANS = {
    "trials": "a level lasts --time seconds",
    "min_seconds": "a level lasts --time seconds",
    "warmup": "a level warms up until it is steady, for --warmup-time seconds at least",
    "isolate": "one server serves all levels of a model",
    "order": "levels are measured from small to large",
}


def parse_rates(text: str, option: str) -> tuple[float, ...]:
    """`10,20.5` as positive numbers. Raises UsageError naming `option`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d+(\.\d+)?|\.\d+", part) and float(part) > 0 for part in parts):
        raise UsageError(
            f"{option}: {text!r} is not a list of positive rates",
            "write requests per second, such as 10,20,40",
        )
    return tuple(float(part) for part in parts)


def is_served(scan: str, options: ServingOptions) -> bool:
    """Whether a server stands between load and model."""
    return (
        scan == SATURATION or options.via != "direct" or bool(options.url or options.server_command)
    )


def check_given(
    given: Iterable[str], scan: str, options: ServingOptions, named: Callable[[str], str]
) -> None:
    """Raises UsageError for settings that were given and that this kind of scan would pass over;
    `named` says them as the user did.
    """
    for key in given:
        if not is_served(scan, options):
            if key in NAMES - {"via", "time", "warmup_time"}:
                raise UsageError(
                    f"{named(key)} is for served scans, and this one runs the model directly",
                    "add --via triton, or run the scan `saturation`",
                )
        elif key in _OF_DIRECT_SCANS:
            raise UsageError(
                f"{named(key)} is for scans without a server",
                f"leave it out: {_OF_DIRECT_SCANS[key]}",
            )
        elif key in _OF_OUR_SERVER and not options.managed:
            where = "--url" if options.url else "--server-command"
            raise UsageError(
                f"{named(key)} is for a server that profharness starts itself, "
                f"and {where} names another",
                "set it there, and leave the option out",
            )


def check(options: ServingOptions, scan: str, profile: tuple[str, ...]) -> None:
    """Limits that a type cannot say, and options that exclude each other. Raises UsageError with
    the way out.
    """
    parse_latency_limit(options.latency_limit)
    for wrong, message, hint in (
        *_wrong_load(options, scan),
        *_wrong_numbers(options),
        *_wrong_server(options, profile),
    ):
        if wrong:
            raise UsageError(message, hint)


def _wrong_load(options: ServingOptions, scan: str) -> list[tuple[bool, str, str]]:
    search = scan == SATURATION
    file = options.arrivals not in ARRIVALS
    return [
        (
            bool(options.concurrency and options.rate),
            "--concurrency and --rate: a level is either a closed loop or an open one",
            (
                "give --concurrency for clients that wait for each answer, "
                "--rate for requests that come by themselves; make two runs"
            ),
        ),
        (
            search and bool(options.rate),
            "--rate: the saturation scan finds the rates to check by itself",
            "leave it out, or run a sweep: --via triton --rate 10,20",
        ),
        (
            bool(options.rate) and options.think_ms > 0,
            "--think-ms: an open loop has no clients that think",
            "use it with --concurrency",
        ),
        (
            file and not Path(options.arrivals).is_file(),
            f"--arrivals: there is no file {options.arrivals}",
            f"use {', '.join(ARRIVALS)}, or a file of arrival times in s",
        ),
        (
            options.via == "perf-analyzer" and (options.think_ms > 0 or file),
            "--via perf-analyzer: it knows neither think time nor arrivals from a file",
            "use --via triton for those",
        ),
        (
            options.via != "perf-analyzer"
            and bool(options.perf_analyzer_arg or options.perf_analyzer_image),
            "--perf-analyzer-arg and --perf-analyzer-image go with --via perf-analyzer",
            "add it, or leave them out",
        ),
        (
            bool(options.perf_analyzer_image) and not Path(options.perf_analyzer_image).exists(),
            f"--perf-analyzer-image: there is no file {options.perf_analyzer_image}",
            "name an Apptainer image (.sif) that holds perf_analyzer",
        ),
        (
            any(level < 1 for level in options.concurrency),
            "--concurrency: a level has at least one client",
            "write a list such as 1,2,4 or 1..64",
        ),
        (
            options.together and (search or bool(options.rate)),
            "--together: it compares closed loops of a sweep",
            "use --via triton --concurrency 1,2,4",
        ),
        (
            options.together and options.via == "perf-analyzer",
            "--together: perf_analyzer loads one model at a time",
            "use --via triton",
        ),
        (
            options.together and options.shared_memory != "none",
            "--together: inputs of several models do not go through shared memory",
            "leave --shared-memory out",
        ),
        (
            search and len(options.concurrency) == 1,
            "--concurrency: a search needs more than one level",
            "write its ladder, such as 1..256, or leave it out",
        ),
    ]


def _wrong_numbers(options: ServingOptions) -> list[tuple[bool, str, str]]:
    return [
        (
            options.think_ms < 0,
            "--think-ms: must not be negative",
            "use 0 for clients that send at once",
        ),
        (
            options.clients_per_job < 1,
            f"--clients-per-job: {options.clients_per_job} is too few",
            "ask for at least 1",
        ),
        (options.time <= 0, "--time: a level needs a time", "5 s is the default"),
        (
            options.warmup_time < 0,
            "--warmup-time: must not be negative",
            "use 0 for the shortest warm-up",
        ),
        (options.timeout <= 0, "--timeout: must be more than 0", "30 s is the default"),
        (
            options.clients < 1,
            f"--clients: {options.clients} is too few",
            "ask for at least 1 process",
        ),
        (
            options.instances < 1,
            f"--instances: {options.instances} is too few",
            "ask for at least 1",
        ),
        (
            options.max_batch_size is not None and options.max_batch_size < 1,
            "--max-batch-size: must be at least 1",
            "leave it out for the usual one",
        ),
        (
            options.queue_delay_us < 0,
            "--queue-delay-us: must not be negative",
            "use 0 for no delay",
        ),
        (
            any(rate <= 0 for rate in options.rate),
            "--rate: must be more than 0",
            "write requests per second, such as 10,20,40",
        ),
    ]


def _wrong_server(options: ServingOptions, profile: tuple[str, ...]) -> list[tuple[bool, str, str]]:
    layers = [name for name in profile if name not in ("telemetry", "none")]
    return [
        (
            bool(options.url and options.server_command),
            "--url and --server-command: one server at a time",
            "give --url for one that runs, --server-command for one to start",
        ),
        (
            bool(options.token_file and not options.url),
            "--token-file goes with --url",
            "a server that profharness starts wants no token of yours",
        ),
        (
            bool(options.token_file) and not Path(options.token_file).is_file(),
            f"--token-file: there is no file {options.token_file}",
            "name a file that holds the token and nothing else",
        ),
        (
            bool(options.ca)
            and not any(url.startswith(("grpcs://", "https://")) for url in options.urls),
            "--ca goes with a --url that is encrypted",
            "write grpcs://HOST:PORT or https://HOST:PORT",
        ),
        (
            bool(options.ca) and not Path(options.ca).is_file(),
            f"--ca: there is no file {options.ca}",
            "name a PEM file with the certificate of the server's authority",
        ),
        (
            bool(options.url and layers),
            f"--profile {','.join(layers)}: a server at --url cannot be put under a layer",
            "profile it where it is started: --server-command, or leave --profile out",
        ),
        (
            bool(options.server_command and not options.ready),
            "--server-command needs --ready URL",
            (
                "name a URL that answers 200 once the server can serve, "
                "such as http://127.0.0.1:8000/v2/health/ready"
            ),
        ),
        (
            bool(options.body) and options.managed,
            "--body: a server of ours takes tensors",
            "leave it out, or name a plain HTTP server with --url or --server-command",
        ),
        (
            bool(options.body) and not Path(options.body).is_file(),
            f"--body: there is no file {options.body}",
            "name a file that is sent as it is, or .jsonl with one body a line",
        ),
        (
            bool(options.path) and not options.body,
            "--path goes with --body",
            "it is where a plain HTTP server takes requests, such as /v1/completions",
        ),
        (
            bool(options.body) and options.protocol == "grpc",
            "--body needs --protocol http",
            "plain requests are not gRPC's",
        ),
        (
            bool(options.ready and not options.server_command),
            "--ready goes with --server-command",
            "leave it out, or add --server-command CMD",
        ),
    ]
