import json

import numpy as np
import pytest

from profharness.cli import run_cli
from tests.analysis.curves.curves_simulation import BATCHES, CLIENTS, batch_truth, usl_truth

KEYS = {"key", "batch", "usl", "knee", "jobs_per_device", "recommended", "step", "findings"}


def csv_of(folder, axis, level, throughput):
    path = folder / "scan.csv"
    lines = [
        f"device,{axis},throughput,throughput_sem",
        *(f"made up,{n:g},{t!r},{0.01 * t!r}" for n, t in zip(level, throughput, strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def noisy(truth, seed):
    return (truth * np.exp(0.01 * np.random.default_rng(seed).standard_normal(len(truth)))).tolist()


def test_json_of_batches(tmp_path, capsys):
    path = csv_of(tmp_path, "batch_size", BATCHES, noisy(batch_truth(BATCHES, 25_000, 60, 1.5), 1))
    assert run_cli(["saturation", path, "--json"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(printed, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    assert document["schema"] == 2
    (one,) = document["series"]
    assert set(one) >= KEYS
    assert one["key"] == {"device": "made up"}
    assert set(one["batch"]) == {"t_max", "b_half", "p", "b90"}
    assert all(set(part) == {"value", "low", "high"} for part in one["batch"].values())
    assert one["batch"]["t_max"]["low"] <= 25_000 <= one["batch"]["t_max"]["high"]
    assert one["usl"] is None
    assert one["step"] is None
    assert set(one["knee"]) == {"n", "low", "high"}
    assert set(one["recommended"]) == {"at", "throughput"}
    assert "devices" not in one


def test_json_of_clients_with_jobs(tmp_path, capsys):
    path = csv_of(tmp_path, "concurrency", CLIENTS, noisy(usl_truth(CLIENTS, 10, 0.05, 0.0), 2))
    assert run_cli(["saturation", path, "--jobs", "1000", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["series"]
    assert set(one["usl"]) == {"lambda", "sigma", "kappa", "n_peak"}
    assert one["usl"]["n_peak"] == {"value": None, "low": 256.0, "high": None}
    assert "peak-beyond-range" in [item["id"] for item in one["findings"]]
    assert one["devices"]["value"] == -(-1000 // one["jobs_per_device"])


def test_table(tmp_path, capsys):
    path = csv_of(tmp_path, "concurrency", CLIENTS, noisy(usl_truth(CLIENTS, 10, 0.02, 0.0002), 3))
    assert run_cli(["saturation", path, "--jobs", "500"]) == 0
    text = capsys.readouterr().out
    for word in (
        "made up",
        "recommended",
        "USL",
        "knee",
        "jobs per device",
        "devices",
        "falls-after-peak",
    ):
        assert word in text


def test_jobs_of_batches_says_what_it_needs(tmp_path, capsys):
    path = csv_of(tmp_path, "batch_size", BATCHES, noisy(batch_truth(BATCHES, 25_000, 60, 1.5), 1))
    assert run_cli(["saturation", path, "--jobs", "3"]) == 0
    assert "devices      --jobs needs a series over concurrency" in capsys.readouterr().out
    assert run_cli(["saturation", path, "--jobs", "3", "--json"]) == 0
    printed = capsys.readouterr()
    assert "--jobs needs" in printed.err
    assert json.loads(printed.out)["series"][0]["devices"] is None


@pytest.mark.slow
def test_published_table(shared, capsys):
    assert (
        run_cli(
            [
                "saturation",
                str(shared / "fixtures/studies/particlenet_torch_published.csv"),
                "--latency-limit",
                "20",
            ]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert text.count("recommended  batch size") == 12
    assert text.count("within 20 ms") == 12
    assert "missing-sync: at" in text
    assert "throughput x latency / batch is" in text
    assert text.count("(left out: 4") == 12


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ("", 4, "empty"),
        ("a,b\n1,2\n", 4, "no column 'throughput'"),
        ("batch_size,throughput\n1,x\n", 4, "line 2"),
    ],
)
def test_bad_files(tmp_path, capsys, content, code, said):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    assert run_cli(["saturation", str(path)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_a_folder_that_is_no_run(tmp_path, capsys):
    assert run_cli(["saturation", str(tmp_path)]) == 4
    assert "not a run directory" in capsys.readouterr().err


def test_usage(tmp_path, capsys):
    assert run_cli(["saturation"]) == 2
    assert run_cli(["saturation", str(tmp_path), "--jobs", "0"]) == 2


def test_a_knee_below_a_curve_that_still_rises_is_a_bound(tmp_path, capsys):
    path = csv_of(
        tmp_path, "concurrency", CLIENTS[:5], noisy(usl_truth(CLIENTS[:5], 10, 0.15, 0.0), 4)
    )
    assert run_cli(["saturation", path, "--jobs", "500"]) == 0
    text = capsys.readouterr().out
    assert "peak above 16" in text
    assert "knee         at least " in text
    assert "; at least " in text
    assert "devices      at most " in text


def test_the_words_have_the_unit_of_the_table(tmp_path, capsys):
    rows = "".join(
        f"torch,{level},{100 * level / (8 + level):.3f},{level},jets/s\n"
        for level in (1, 2, 4, 8, 16, 32, 64, 128)
    )
    path = tmp_path / "scan.csv"
    path.write_text(f"backend,batch_size,throughput,latency_ms,unit\n{rows}")
    for words in ([], ["--format", "md"], ["--latency-limit", "20"]):
        assert run_cli(["saturation", str(path), *words]) == 0
        told = capsys.readouterr().out
        assert "items/s" not in told
        assert "jets/s" in told
    assert run_cli(["saturation", str(path), "--json"]) == 0
    assert '"unit": "jets/s"' in capsys.readouterr().out.replace('":"', '": "')
