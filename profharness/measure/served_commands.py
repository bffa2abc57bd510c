"""What one target of a served scan starts in a pass: the server under the layers, and the load
generator under none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.launchers.leash import leashed
from profharness.layers import around
from profharness.measure.plan import RunPlan, worker_setup
from profharness.options.request import Request
from profharness.rundir.paths import write_atomic
from profharness.scans.contract import Scan, ServerSpec
from profharness.secrets.patterns import clean_setting
from profharness.serving import foreign
from profharness.serving.kserve import Access
from profharness.supervise.pass_plan import PassPlan
from profharness.workers.pool import WorkerSetup
from profharness.workers.server import READY, ServerSetup

TOKEN = "PROFHARNESS_TOKEN"  # noqa: S105  the name of a variable
"""The variable that holds the token of a server at --url, where --token-file does not; its value is
never recorded.
"""
PRIVATE = "PROFHARNESS_PRIVATE"
"""What the load generator must know and no file holds: JSON with the token and with settings that
are secret, in its environment alone.
"""
LEVELS = "PROFHARNESS_LEVELS"
"""Tells hooks in a server that is not ours where the levels are announced, so that each is a window
of its own.
"""


@dataclass(frozen=True)
class TargetSetup:
    """What a target starts; `server` is None where the server runs already elsewhere."""

    server: ServerSetup | None
    client: WorkerSetup


def target_setup(run_plan: RunPlan, scan: Scan, plan: PassPlan, label: str) -> TargetSetup:
    """The server and the load generator of one target. Raises UsageError for a URL or a token that
    cannot be used.
    """
    spec = scan.server(label)
    assert spec is not None
    client = _client(run_plan, scan, plan, label)
    if spec.urls:
        address = foreign.parse_url(spec.urls[0], run_plan.request.protocol)
        protocol = "grpc" if address.grpc else "http"
        client = _with_protocol(client, protocol)
        access = access_of(run_plan.request)
        return TargetSetup(
            None,
            replace(
                client,
                before=lambda _: describe(client, spec, protocol, access),
                wrap=lambda command: _with_private(client.wrap(command), {"token": access.token}),
            ),
        )
    if spec.command and not foreign.address_of(spec.ready, spec.command).grpc:
        client = _with_protocol(client, "http")
    where = run_plan.where(plan, is_worker=spec.worker is not None)
    plain = server_command(run_plan, scan, plan, label)
    own_server = None if spec.worker is None else _server(run_plan, scan, plan, label, spec)
    wrapped = around.wrap(plan.layers, plain, where)
    server = ServerSetup(
        folder=client.control,
        label=label,
        plain=plain,
        wrapped=wrapped if own_server is not None else leashed(wrapped),
        managed=own_server is not None,
        prepare=_nothing if own_server is None else own_server.write_spec,
        find=partial(foreign.find, spec.ready, spec.command, spec.model),
    )
    return TargetSetup(server, client)


def _with_protocol(client: WorkerSetup, protocol: str) -> WorkerSetup:
    """The load generator over the protocol that the server is known to offer."""
    return replace(
        client,
        workload=replace(
            client.workload, settings={**client.workload.settings, "protocol": protocol}
        ),
    )


def _nothing() -> None:
    """A server that is not ours reads no settings."""


def access_of(request: Request) -> Access:
    """The token from --token-file, else from the environment, and the authority of --ca. Raises
    UsageError for a file without a token.
    """
    ca = str(Path(request.ca).resolve()) if request.ca else ""
    if not request.token_file:
        return Access(os.environ.get(TOKEN, ""), ca)
    try:
        token = Path(request.token_file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--token-file: {request.token_file} cannot be read as a token",
            "name a file that holds the token and nothing else",
        ) from error
    if not token or len(token.split()) != 1:
        raise UsageError(
            f"--token-file: {request.token_file} holds no single token",
            "name a file that holds the token and nothing else",
        )
    return Access(token, ca)


def describe(client: WorkerSetup, spec: ServerSpec, protocol: str, access: Access) -> None:
    """What the load generator must know of servers that run already, but for the token. Raises
    Unavailable where one does not answer.
    """
    for path, url in zip(_ready_paths(client.folder, spec), spec.urls, strict=True):
        write_atomic(path, foreign.describe(url, protocol, spec.model, access))


def _with_private(command: Command, settings: Mapping[str, object]) -> Command:
    """The command with these in PRIVATE too, where they are not empty."""
    told = json.loads(command.env.get(PRIVATE) or "{}")
    told.update({name: value for name, value in settings.items() if value})
    return command.with_env({PRIVATE: json.dumps(told)}) if told else command


def _ready_paths(folder: Path, spec: ServerSpec) -> list[Path]:
    """One file per server."""
    return [
        folder / (READY if at == 0 else f"server-ready-{at}.json")
        for at in range(max(len(spec.urls), 1))
    ]


def server_command(run_plan: RunPlan, scan: Scan, plan: PassPlan, label: str) -> Command:
    """The server's own command."""
    spec = scan.server(label)
    assert spec is not None
    if spec.worker is not None:
        return _server(run_plan, scan, plan, label, spec).plain()
    windows = (
        {LEVELS: str(_client(run_plan, scan, plan, label).control)}
        if plan.layers and run_plan.request.capture == "default"
        else {}
    )
    return Command(spec.command, {"PROFHARNESS_ALL_THREADS": "1", **windows})


def target_commands(run_plan: RunPlan, scan: Scan, plan: PassPlan) -> tuple[Command, ...]:
    """What the pass would start, target by target."""
    commands: list[Command] = []
    for label in plan.targets:
        target = target_setup(run_plan, scan, plan, label)
        commands += [] if target.server is None else [target.server.wrapped]
        commands.append(target.client.plain())
    return tuple(commands)


def _client(run_plan: RunPlan, scan: Scan, plan: PassPlan, label: str) -> WorkerSetup:
    where = run_plan.where(plan, is_worker=True)
    setup = worker_setup(run_plan, scan, plan, where, label)
    spec = scan.server(label)
    assert spec is not None
    setup = replace(setup, subfolder=label)
    settings = {
        **setup.workload.settings,
        "ready": [str(path) for path in _ready_paths(setup.control, spec)],
    }
    secret = {name: value for name, value in settings.items() if _is_secret(value)}
    return replace(
        setup,
        workload=replace(
            setup.workload,
            settings={name: value for name, value in settings.items() if name not in secret},
        ),
        wrap=lambda command: _with_private(command, secret),
        role="client",
        isolate=False,
    )


def _is_secret(value: object) -> bool:
    given = tuple(value) if isinstance(value, list) else value
    return clean_setting(given) != given


def _server(
    run_plan: RunPlan, scan: Scan, plan: PassPlan, label: str, spec: ServerSpec
) -> WorkerSetup:
    assert spec.worker is not None
    return replace(_client(run_plan, scan, plan, label), workload=spec.worker, role="server")
