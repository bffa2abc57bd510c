"""The options of served scans."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Served scans")


Via = Annotated[
    str | None, _option("direct (default), triton (our load generator), perf-analyzer (NVIDIA's).")
]
Concurrency = Annotated[
    str | None, _option("Closed loop: requests in flight, 1,2,4 or 1..64 (powers of two).")
]
Rate = Annotated[str | None, _option("Open loop: requests per second, 10,20,40.")]
Arrivals = Annotated[
    str | None, _option("Open loop: poisson (default), constant, or a file of arrival times in s.")
]
ThinkMs = Annotated[
    float | None, _option("Closed loop: pause of a client between answer and next request.")
]
ClientsPerJob = Annotated[
    int | None,
    _option(
        "Requests that one job keeps in flight (threads of a reconstruction job); "
        "for jobs per device."
    ),
]
Time = Annotated[float | None, _option("Seconds per level, after warm-up (default 5).")]
WarmupTime = Annotated[float | None, _option("Seconds of warm-up per level, at least (default 1).")]
Timeout = Annotated[
    float | None, _option("Seconds after which a request counts as failed (default 30).")
]
LatencyLimit = Annotated[str | None, _option("p99=20ms: the most that clients accept.")]
Protocol = Annotated[str | None, _option("grpc (default) or http.")]
SharedMemory = Annotated[str | None, _option("none (default) or system.")]
Compression = Annotated[str | None, _option("none (default), gzip or deflate.")]
Clients = Annotated[int | None, _option("Processes of the load generator (default 1).")]
Instances = Annotated[int | None, _option("Copies of the model in the server (default 1).")]
MaxBatchSize = Annotated[
    int | None, _option("Largest batch that the server puts together (default 64).")
]
QueueDelayUs = Annotated[int | None, _option("Time that the server may wait for a larger batch.")]
AllowFallback = Annotated[
    bool | None,
    _option("Serve on the CPU where the device is missing, and say so.", "--allow-fallback"),
]
Url = Annotated[
    str | None,
    _option(
        "HOST:PORT of a server that runs already (or several, A,B), with grpc://, grpcs://, "
        "http:// or https:// before it; nothing is started. The token that it wants is taken "
        "from the variable PROFHARNESS_TOKEN."
    ),
]
TokenFile = Annotated[
    str | None,
    _option("A file with the token of the server at --url, in place of PROFHARNESS_TOKEN."),
]
Ca = Annotated[
    str | None,
    _option(
        "PEM file with the authority of the certificate of grpcs:// or https:// at --url "
        "(default: the system's)."
    ),
]
ServerCommand = Annotated[
    str | None, _option("Start this server under the layers, in place of ours.")
]
Ready = Annotated[
    str | None, _option("URL that answers 200 once the server of --server-command can serve.")
]
PerfAnalyzerArg = Annotated[
    list[str] | None, _option("One more argument for perf_analyzer. Repeatable.")
]
PerfAnalyzerImage = Annotated[
    str | None, _option("Apptainer image (.sif) that holds perf_analyzer.")
]
Together = Annotated[
    bool | None,
    _option(
        "Of --model A,B: also all at once on one server, to show what sharing costs; "
        "with --device cuda:0,cuda:1 on one device and on one each.",
        "--together",
    ),
]
Ragged = Annotated[
    str | None,
    _option(
        "Variable particle counts: none (default), padded with zeros to the largest, "
        "or grouped by length."
    ),
]
Body = Annotated[
    str | None,
    _option("Plain HTTP servers: a file that is sent as it is (.jsonl: its lines in turn)."),
]
Path = Annotated[
    str | None, _option("Plain HTTP servers: where requests go, such as /v1/completions.")
]
Resume = Annotated[
    bool, _option("Go on with the run in --output at its first missing point.", "--resume")
]
