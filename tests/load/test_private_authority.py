"""`run --url` against an encrypted server whose certificate a private authority signed, with a
token: whole runs over real TLS.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import profharness
from profharness.rundir.paths import RunDir
from tests import started
from tests.load import running
from tests.variants import thorough

TOKEN = "swordfish-7319"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, and cert.pem and key.pem of localhost that it signed."""
    folder = tmp_path_factory.mktemp("authority")
    (folder / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    steps = (
        (
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=ours",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
        ),
        (
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "key.pem",
            "-out",
            "asked.pem",
        ),
        (
            "x509",
            "-req",
            "-in",
            "asked.pem",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "cert.pem",
        ),
    )
    try:
        for step in steps:
            subprocess.run(["openssl", *step], check=True, capture_output=True, cwd=folder)
    except FileNotFoundError:
        pytest.skip("needs openssl to make certificates")
    return folder


def run(url: str, folder: Path, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PROFHARNESS_TOKEN"}
    if token:
        environment["PROFHARNESS_TOKEN"] = token
    return started.run(
        "run",
        "--url",
        url,
        "--model",
        "double",
        "--shape",
        "x:16",
        "--concurrency",
        "1,2",
        "--time",
        "0.5",
        "--warmup-time",
        "0.2",
        "--telemetry",
        "off",
        "--quiet",
        "-o",
        str(folder / "run"),
        *words,
        cwd=folder,
        env={**environment, "PROFHARNESS_CACHE": str(folder / "cache")},
        timeout=280,
    )


def url_of(served: running.Served, protocol: str) -> str:
    address = str(served.description[protocol]).removeprefix("https://")
    return f"{'grpcs' if protocol == 'grpc' else 'https'}://{address}"


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "by_file"), [("grpc", False), ("http", True)])
def test_a_run_with_a_private_authority_and_a_token(
    tmp_path: Path, authority: Path, protocol: str, by_file: bool
) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    words = ("--token-file", "token") if by_file else ()
    with running.server(
        tmp_path,
        cert=str(authority / "cert.pem"),
        key=str(authority / "key.pem"),
        service_ms=2,
        slots=2,
        token=TOKEN,
    ) as served:
        done = run(
            url_of(served, protocol),
            tmp_path,
            "--ca",
            str(authority / "ca.pem"),
            *words,
            token="" if by_file else TOKEN,
        )
    assert done.returncode == 0, done.stderr
    manifest = RunDir.open(tmp_path / "run").read_manifest()
    assert {record.id: record.state for record in manifest.points} == {
        "server-b1-c1": "ok",
        "server-b1-c2": "ok",
    }
    assert _holding(tmp_path / "run") == []
    assert manifest.scan is not None
    assert manifest.scan.settings["ca"] == str(authority / "ca.pem")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["grpc", *thorough("http")])
def test_what_is_missing_is_told_by_name(tmp_path: Path, authority: Path, protocol: str) -> None:
    with running.server(
        tmp_path, cert=str(authority / "cert.pem"), key=str(authority / "key.pem"), token=TOKEN
    ) as served:
        url, ca = url_of(served, protocol), str(authority / "ca.pem")
        answers = {}
        for name, words, token in (
            ("untrusted", (), TOKEN),
            ("without", ("--ca", ca), ""),
            ("wrong", ("--ca", ca), "guess"),
        ):
            (tmp_path / name).mkdir()
            answers[name] = run(url, tmp_path / name, *words, token=token)
    assert {done.returncode for done in answers.values()} == {3}, [
        done.stderr for done in answers.values()
    ]
    assert (
        "the server's certificate is not trusted (unable to get local issuer certificate)"
        in answers["untrusted"].stderr
    )
    assert "with --ca FILE" in answers["untrusted"].stderr
    for name in ("without", "wrong"):
        assert "token" in answers[name].stderr
        assert "PROFHARNESS_TOKEN" in answers[name].stderr
        assert "--token-file" in answers[name].stderr


@pytest.mark.slow
def test_no_file_holds_the_token_while_it_is_used_nor_when_the_harness_is_killed(
    tmp_path: Path,
) -> None:
    with running.server(tmp_path, service_ms=2, token=TOKEN) as served:
        url = f"http://{served.description['http']}"
        program = (sys.executable, "-m", "profharness", "run", "-o", "run", "--telemetry", "off")
        load = ("--shape", "x:16", "--concurrency", "1,2", "--time", "60")
        harness = subprocess.Popen(
            (*program, "--url", url, "--model", "double", *load),
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(profharness.__file__).parents[1]),
                "PROFHARNESS_TOKEN": TOKEN,
                "PROFHARNESS_CACHE": str(tmp_path / "cache"),
            },
        )
        try:
            end = time.monotonic() + 100
            while not any((tmp_path / "run").rglob("levels.jsonl")):
                assert harness.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
            assert any((tmp_path / "run").rglob("server-ready.json"))
            assert _holding(tmp_path / "run") == []
        finally:
            harness.kill()
            harness.wait()
        assert _holding(tmp_path / "run") == []


def _holding(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--token-file", "token"), "--token-file goes with --url"),
        (("--url", "grpc://h:1", "--token-file", "none"), "--token-file: there is no file none"),
        (("--url", "grpc://h:1", "--ca", "token"), "--ca goes with a --url that is encrypted"),
        (("--url", "grpcs://h:1", "--ca", "none"), "--ca: there is no file none"),
        (
            ("--url", "https://127.0.0.1:1", "--ca", "token"),
            "token holds no certificate of an authority\n",
        ),
        (
            ("--url", "grpc://127.0.0.1:1", "--token-file", "two"),
            "--token-file: two holds no single token",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "two").write_text("two words")
    done = started.run(
        "run", "--via", "triton", "--telemetry", "off", "--quiet", "-o", "run", *words, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert says in done.stderr
