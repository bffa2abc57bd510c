"""A real trace processor for tests: fixture `load_trace`, which gives a Python client for a trace
file.

It runs Perfetto's WebAssembly engine under node (`make trace-processor` fetches it) or, where
PROFHARNESS_TRACE_PROCESSOR names one, a native trace_processor_shell. Without either, the test
skips and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

from tests.tools.get_trace_processor import DEFAULT, FILES, is_complete

SERVER = Path(__file__).parent / "tools" / "trace_processor_server.cjs"
LoadTrace = Callable[[Path], TraceProcessor]


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node 20 or newer for the trace processor")
    version = subprocess.run(
        [node, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < 20:
        pytest.skip(f"needs node 20 or newer for the trace processor; here is {version}")
    return node


@pytest.fixture(scope="session")
def trace_processor_folder() -> Path:
    """Where the engine's files are; skips where they are not."""
    folder = Path(os.environ.get("PROFHARNESS_TRACE_PROCESSOR_WASM", DEFAULT))
    if not all((folder / name).is_file() for name in FILES):
        pytest.skip("needs the trace processor: `make trace-processor` fetches it")
    assert is_complete(folder), f"the files in {folder} are not those that were checked"
    return folder


@pytest.fixture
def load_trace(request: pytest.FixtureRequest) -> Iterator[LoadTrace]:
    """A function from a trace file to a client; one process per trace, ended with the test."""
    native = os.environ.get("PROFHARNESS_TRACE_PROCESSOR")
    clients: list[TraceProcessor] = []
    servers: list[subprocess.Popen[str]] = []
    if native is None:
        folder, node = request.getfixturevalue("trace_processor_folder"), _node()

    def load(path: Path) -> TraceProcessor:
        if native is not None:
            clients.append(
                TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=native))
            )
            return clients[-1]
        server = subprocess.Popen(
            # traces of tests are small: to optimise its code takes longer than what they ask
            [node, "--liftoff-only", str(SERVER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        servers.append(server)
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("listening "), f"the trace processor did not start: {line!r}"
        clients.append(TraceProcessor(trace=str(path), addr=f"127.0.0.1:{line.split()[1]}"))
        return clients[-1]

    yield load
    for client in clients:
        client.close()
    for server in servers:
        server.communicate(input="", timeout=90)  # closing stdin ends it


def errors(client: TraceProcessor) -> list[tuple[str, int]]:
    """Import errors and lost data that the trace processor counted."""
    rows = client.query(
        "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
    )
    return [(row.name, row.value) for row in rows]
