"""Which options of served scans exclude each other, and which a scan would pass over. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from profharness.errors import UsageError
from profharness.options.declared import SERVING, declared
from profharness.options.serving import ARRIVALS, BY_TRITON, SATURATION, ServingOptions

_NAMES = frozenset(
    field.name for field in declared(ServingOptions) if field.option.topic is SERVING
)
_OF_OUR_SERVER = (
    "together",
    "instances",
    "max_batch_size",
    "queue_delay_us",
    "allow_fallback",
    "device",
    "provider",
    "ort_optimization",
    "threads",
    "torchscript",
    "autocast",
    "compile",
)
_OF_DIRECT_SCANS = {
    "trials": "a level lasts --time seconds",
    "min_seconds": "a level lasts --time seconds",
    "warmup": "a level warms up until it is steady, for --warmup-time seconds at least",
    "isolate": "one server serves all levels of a model",
    "order": "levels are measured from small to large",
}


def check_given(given: Iterable[str], options: ServingOptions, named: Callable[[str], str]) -> None:
    """Raises UsageError for settings that were given and that this kind of scan would pass over;
    `named` says them as the user did.
    """
    for key in given:
        if not options.served:
            if key in _NAMES - {"via", "time", "warmup_time"}:
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


def check(options: ServingOptions) -> None:
    """Raises UsageError for options that exclude each other, with the way out."""
    for wrong, message, hint in (
        *_wrong_load(options),
        *_wrong_server(options),
        *_wrong_ragged(options),
        *_wrong_memory(options),
    ):
        if wrong:
            raise UsageError(message, hint)


def _wrong_load(options: ServingOptions) -> list[tuple[bool, str, str]]:
    search = options.scan == SATURATION
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


def _wrong_server(options: ServingOptions) -> list[tuple[bool, str, str]]:
    return [
        (
            bool(options.url and options.server_command),
            "--url and --server-command: one server at a time",
            "give --url for one that runs, --server-command for one to start",
        ),
        (
            options.served and "deepsparse" in options.backend,
            "--backend deepsparse: no server of ours runs it",
            "leave out what asks for a server: it runs in processes (--streams) and direct scans",
        ),
        (
            bool(options.token_file and not options.url),
            "--token-file goes with --url",
            "a server that profharness starts wants no token of yours",
        ),
        (
            bool(options.ca)
            and not any(url.startswith(("grpcs://", "https://")) for url in options.urls),
            "--ca goes with a --url that is encrypted",
            "write grpcs://HOST:PORT or https://HOST:PORT",
        ),
        (
            bool(options.url and _layers(options)),
            (
                f"--profile {','.join(_layers(options))}: a server at --url cannot be put under a "
                "layer"
            ),
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


def _layers(options: ServingOptions) -> list[str]:
    return [name for name in options.profile if name not in ("telemetry", "none")]


def _wrong_ragged(options: ServingOptions) -> list[tuple[bool, str, str]]:
    by_triton, layers = BY_TRITON in options.ragged, _layers(options)
    return [
        (
            by_triton and not options.managed,
            "--ragged triton is for a server that profharness starts itself",
            (
                "what another server batches stands in its own config.pbtxt (allow_ragged_batch): "
                "send it requests of different lengths with --ragged grouped"
            ),
        ),
        (
            by_triton and bool(layers),
            (
                f"--profile {','.join(layers)}: with --ragged triton the models run in Triton's "
                "own processes, which no layer reaches"
            ),
            "leave --profile out, or profile --ragged padded or grouped",
        ),
        (
            by_triton and "tensorflow" in options.backend,
            "--ragged triton: Triton runs models of torch and onnxruntime here",
            "leave tensorflow out, or use --ragged padded or grouped",
        ),
        (
            options.together and len(options.ragged) > 1,
            "--together: it compares models, and --ragged several ways",
            "name one way, or leave --together out",
        ),
        (
            options.via == "perf-analyzer" and options.ragged != ("none",),
            "--via perf-analyzer: it sends requests of one length only",
            "use --via triton",
        ),
    ]


def _wrong_memory(options: ServingOptions) -> list[tuple[bool, str, str]]:
    return [
        (
            options.via == "perf-analyzer" and options.shared_memory == "hip",
            "--shared-memory hip: perf_analyzer shares memory of NVIDIA's GPUs only",
            "use --via triton",
        ),
        (
            options.shared_memory in ("cuda", "hip") and options.compression != "none",
            "--compression: tensors in a device's memory are not sent",
            "leave it out",
        ),
        (
            options.shared_memory in ("cuda", "hip") and bool(options.body),
            "--body: a plain HTTP server shares no memory",
            "leave --shared-memory out",
        ),
    ]
