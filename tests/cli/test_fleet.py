"""`profharness fleet`: its answer in words and as JSON, and wrong lines."""

from __future__ import annotations

import json

import pytest

from profharness.cli import run_cli

LINE = ("fleet", "--service-ms", "10", "--instances", "2")
KEYS = {"devices", "utilisation", "throughput", "latency_ms"}


def test_a_number_of_devices_gets_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli([*LINE, "--rate", "300", "--devices", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document.keys() >= KEYS
    assert document["devices"] == 2
    latency = document["latency_ms"]
    for figure in (document["utilisation"], document["throughput"], *latency.values()):
        assert figure["low"] <= figure["value"] <= figure["high"]
    assert latency["p50"]["value"] <= latency["mean"]["value"] <= latency["p99"]["value"]
    assert document["utilisation"]["value"] == pytest.approx(0.75, rel=0.05)
    assert document["limit"] is None


def test_a_limit_gets_a_number_of_devices(capsys: pytest.CaptureFixture[str]) -> None:
    line = [*LINE, "--clients", "68", "--think-ms", "67", "--latency-limit", "p99=25ms"]
    assert run_cli([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["keeps_limit"] is True
    assert run_cli(line) == 0
    text = capsys.readouterr().out
    count = document["devices"]
    assert text.startswith(f"{count} devices serve 68 clients that think for 67 ms with p99 ")
    assert "within the limit of 25 ms." in text
    assert run_cli([*line, "--devices", str(count - 2)]) == 0
    assert "above the limit of 25 ms." in capsys.readouterr().out


def test_times_that_scatter_make_p99_longer(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for words in ((), ("--service-cv", "1")):
        assert run_cli([*LINE, "--rate", "100", "--devices", "1", "--json", *words]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert [one["service_cv"] for one in found] == [0, 1]
    assert found[1]["latency_ms"]["p99"]["low"] > 2 * found[0]["latency_ms"]["p99"]["high"]
    assert run_cli([*LINE, "--rate", "5", "--service-cv", "1", "--devices", "1"]) == 0
    assert "10 ms a request, which scatter by 100 %" in capsys.readouterr().out


def test_failures_cost_and_energy_are_in_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rate", "300", "--devices", "3", "--mtbf-hours", "100", "--repair-minutes", "30"]
    words += ["--price-per-hour", "2", "--watts-busy", "300", "--watts-idle", "60"]
    assert run_cli([*LINE, *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outages"]["working"] == pytest.approx(3 / 1.005)
    assert document["bill"]["cost_per_million"]["value"] == pytest.approx(
        6 / 3600 / 300e-6, rel=0.03
    )
    assert document["bill"]["watts"]["value"] == pytest.approx(3 * 180, rel=0.03)
    assert document["watts_idle"]["value"] == 60
    assert run_cli([*LINE, *words]) == 0
    text = capsys.readouterr().out
    assert "all devices work for 98.5" in text
    assert "for a million requests" in text
    assert "J a request" in text


def test_a_mix_of_models_has_figures_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["fleet", "--mix", "a=7,b=3", "--service-ms", "b=30,a=10", "--rate", "100"]
    assert run_cli([*line, "--devices", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["service_ms"] == pytest.approx(16)
    shares = {one["name"]: (one["share"], one["service_ms"]) for one in document["models"]}
    assert shares == {"a": (0.7, pytest.approx(10)), "b": (0.3, pytest.approx(30))}
    first, second = (one["latency_ms"]["mean"]["value"] for one in document["models"])
    assert second - first == pytest.approx(20, rel=0.05)
    assert run_cli([*line, "--devices", "3"]) == 0
    assert "70 % of requests, 10 ms each" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--service-ms", "a=10,b=3"), "the mix is of one model"),
        (("--service-ms", "10", "--mix", "a=1,b=2"), "the mix is of a, b"),
        (("--service-ms", "a=10", "--mix", "a=1"), "does not name two models"),
        (("--service-ms", "a=10,b=x", "--mix", "a=1,b=1"), "no list of models and positive"),
        (("--service-ms", "0"), "no list of models and positive"),
        (("first", "second"), "several runs are models of a mix"),
        (("a=first", "second", "--mix", "a=1,b=1"), "RUN: the mix is of a, b"),
    ],
)
def test_wrong_mixes_say_what_to_write(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["fleet", *words, "--rate", "5", "--devices", "1"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "--mix a=0.7,b=0.3" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a load is either --rate or --clients"),
        (("--rate", "5", "--clients", "5"), "a load is either --rate or --clients"),
        (("--rate", "5", "--think-ms", "5"), "--rate has no clients that think"),
        (("--clients", "5"), "how long does a client think?"),
        (("--rate", "5"), "neither a number of devices nor a limit is given"),
        (("--rate", "500", "--devices", "2"), "this load needs at least 3 devices"),
        (("--rate", "5", "--devices", "1", "--mtbf-hours", "5"), "failures take two numbers"),
        (("--rate", "5", "--devices", "1", "--watts-busy", "5"), "give both"),
        (("--rate", "5", "--latency-limit", "p99=1ms"), "one request takes 10 ms by itself"),
        (("--rate", "5", "--latency-limit", "p98=1ms"), "'p98=1ms' is not a limit"),
    ],
)
def test_wrong_lines_say_what_to_write(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli([*LINE, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_run_says_by_itself_how_times_scatter(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["fleet", "nowhere", "--service-cv", "1"]) == 2
    assert "--service-cv: the RUN says by itself" in capsys.readouterr().err
