"""The torch worker and ParticleNet: cost, exports, real model files, compilation, and points
through real processes.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.variants import thorough
from tests.wrappers.control import END, WORKLOADS, Control, kinds, point

if (
    importlib.util.find_spec("torch") is None
):  # not imported here: that costs seconds in every test process
    pytest.skip("needs torch", allow_module_level=True)

pytestmark = pytest.mark.slow

# One process makes all of these figures, since importing torch and exporting cost seconds.
FACTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, torch, onnxruntime
from profharness_workloads.shared import flops, particlenet
torch.set_num_threads(1)
folder = sys.argv[2]
model = particlenet.build(3)
one = particlenet.example(1, 9)
with torch.no_grad():
    counted = flops.torch_count(lambda: model(*one)).flops
compiler = "torch._dynamo" in sys.modules
particlenet.export_onnx(model, folder + "/p.onnx")
particlenet.export_torchscript(model, folder + "/p.pt")
script = torch.jit.load(folder + "/p.pt")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(folder + "/p.onnx", options, providers=["CPUExecutionProvider"])
worst = {"torchscript": 0.0, "onnx": 0.0}
with torch.no_grad():
    for batch in (1, 3, 16):
        jets = particlenet.example(batch, 100 + batch)
        expected = model(*jets).numpy()
        feeds = {spec.name: t.numpy() for spec, t in zip(particlenet.INPUTS, jets)}
        for name, got in (("torchscript", script(*jets).numpy()), ("onnx", session.run(None, feeds)[0])):
            assert got.shape == expected.shape == (batch, 8)
            worst[name] = max(worst[name], float(np.abs(got - expected).max()))
    few = [t[:, :, : 40 if t.size(2) == 100 else 4] for t in particlenet.example(2, 5)]
    few_feeds = {spec.name: t.numpy() for spec, t in zip(particlenet.INPUTS, few)}
    other_particles = float(np.abs(session.run(None, few_feeds)[0] - model(*few).numpy()).max())
    same = all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), particlenet.build(3).state_dict().values()))
    other = torch.equal(model.head[0].weight, particlenet.build(4).head[0].weight)
    counts = {
        "torch": counted,
        "onnx": flops.onnx_count(folder + "/p.onnx", {s.name: t.numpy() for s, t in zip(particlenet.INPUTS, one)})._asdict(),
    }
print(json.dumps({"worst": worst, "same": same, "other": other, "counts": counts, "other_particles": other_particles, "compiler": compiler,
                  "spread": float(expected.std(axis=0).max()), "largest": float(expected.max()),
                  "sums": float(np.abs(expected.sum(axis=1) - 1).max())}))
"""


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Figures of the built-in model, made in one process."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("particlenet")
    done = subprocess.run(
        [sys.executable, "-c", FACTS, str(WORKLOADS.parent), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_particlenet_costs_what_the_real_tagger_costs(facts: dict) -> None:
    assert facts["counts"]["torch"] == pytest.approx(201.468304e6, rel=0.05)
    assert facts["counts"]["onnx"] == {"flops": facts["counts"]["torch"], "note": ""}


def test_counting_loads_no_compiler(facts: dict) -> None:
    """It would cost every worker more than a second."""
    assert facts["compiler"] is False


def test_its_exports_agree_at_every_batch_size(facts: dict) -> None:
    assert max(facts["worst"].values()) <= 1e-5
    assert facts["other_particles"] <= 1e-5


def test_its_probabilities_can_show_an_error(facts: dict) -> None:
    assert facts["sums"] < 1e-5
    assert facts["spread"] > 0.01, "jets differ"
    assert facts["largest"] < 0.999, "and are not one-hot"


def test_its_weights_are_seeded(facts: dict) -> None:
    assert facts["same"] is True
    assert facts["other"] is False


@pytest.fixture(scope="session")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Control:
    """One worker over good and bad points, shared by the tests that only look."""
    control = Control(
        tmp_path_factory.mktemp("eager"),
        {"backend": "torch", "model": "particlenet", "inputs": "hep", "threads": 1},
        fresh=True,
    )
    control.ask(
        point("torch-b1", 1, warmup="auto"),
        point("torch-b0", 0),
        point("torch-b2", 2, min_seconds=0.05),
        point("torch-b1000000000", 10**12),
        point("torch-b1~1", 1),
        END,
    )
    status, err = control.serve("batch/torch_worker.py")
    assert (status, err) == (0, "")
    return control


def test_points_give_trials_and_say_where_they_ran(eager: Control) -> None:
    hello, results = eager.records()[0], eager.results()
    assert hello["versions"]["torch"]
    assert hello["devices"][0]["kind"] == "cpu"
    one, two = results["torch-b1"], results["torch-b2"]
    assert (one["ok"], one["items"], one["device"], one["compile_ns"]) == (True, 1, "cpu", None)
    assert len(one["trials_ns"]) == 3
    assert len(one["warmup_ns"]) == len(one["warmup_starts_ns"]) >= 5
    assert len(two["warmup_ns"]) >= 1
    assert two["starts_ns"][-1] + two["trials_ns"][-1] - two["starts_ns"][0] >= 0.05e9 * 0.9
    assert one["flops_per_item"] == pytest.approx(201.468304e6, rel=0.05)
    assert "torch-b1~1" in results


def test_a_batch_that_does_not_fit_in_memory_fails_alone(eager: Control) -> None:
    failed = eager.results()["torch-b1000000000"]
    assert failed["ok"] is False
    assert "emory" in str(failed["error"])
    assert "allocate" in str(failed["error"])
    assert eager.results()["torch-b1~1"]["ok"] is True


def test_a_bare_pass_leaves_no_artifacts(eager: Control) -> None:
    assert not (eager.run / "artifacts").exists()


REPRODUCE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, torch
from profharness_workloads.batch import torch_worker as batch_torch
from profharness_workloads.shared.protocol import Spec
stored = np.load(sys.argv[3])
loaded = batch_torch.load_model(torch, Spec("torch", sys.argv[2]), torch.device("cpu"))
arrays = [torch.from_numpy(stored[batch_torch.inputs.root_name(spec.name)]) for spec in loaded.inputs]
with torch.no_grad():
    print(np.abs(loaded.module(*arrays).numpy() - stored["output_pt"]).max())
"""


def test_the_real_torchscript_tagger_reproduces_its_reference(shared: Path) -> None:
    models = shared / "fixtures/models"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            REPRODUCE,
            str(WORKLOADS.parent),
            str(models / "particlenet_AK4_PT/1/model.pt"),
            str(models / "particlenet_AK4/reference_io.npz"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) <= 2e-6


def test_the_real_torchscript_tagger_is_measured(shared: Path, tmp_path: Path) -> None:
    models = shared / "fixtures/models"
    control = Control(
        tmp_path,
        {
            "backend": "torch",
            "model": str(models / "particlenet_AK4_PT/1/model.pt"),
            "threads": 1,
            "inputs": str(models / "particlenet_AK4/reference_io.npz"),
        },
    )
    control.ask(point("torch-b2", 2), END)
    assert control.serve("batch/torch_worker.py") == (0, "")
    result = control.results()["torch-b2"]
    assert result["flops_per_item"] == 201468304
    assert result["notes"]["form"] == "torchscript"
    assert result["notes"]["threads"] == "1"
    assert result["notes"]["dtype"] == "fp32"
    assert 4e4 < int(result["notes"]["weight_bytes"]) < 4e7  # some 10^5 parameters of 4 bytes
    assert float(result["notes"]["input_bytes_per_item"]) % 4 == 0


SCRIPT = """
import sys, torch
class Scaled(torch.nn.Module):
    def forward(self, x, y):
        return x * y
torch.jit.script(Scaled()).save(sys.argv[1])
"""


@pytest.fixture(scope="session")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TorchScript file that says nothing about shapes: x * y."""
    folder = tmp_path_factory.mktemp("script")
    (folder / "make.py").write_text(SCRIPT)  # torch.jit.script reads the source from its file
    subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "make.py"), str(folder / "scaled.pt")],
        check=True,
    )
    return folder / "scaled.pt"


def test_a_script_without_shapes_asks_for_them(scaled: Path, tmp_path: Path) -> None:
    control = Control(tmp_path, {"backend": "torch", "model": str(scaled), "shapes": {"x": [3]}})
    control.ask(END)
    status, err = control.serve("batch/torch_worker.py")
    assert status == 2
    assert "does not tell the shapes of its inputs: x, y" in err
    assert "--shape y:d1,d2" in err
    assert kinds(control.records()) == ["error"]
    assert "--shape y:d1,d2" in str(control.records()[0]["hint"])


def test_a_wrong_shape_fails_the_point_with_torchs_words(scaled: Path, tmp_path: Path) -> None:
    control = Control(
        tmp_path, {"backend": "torch", "model": str(scaled), "shapes": {"x": [3], "y": [4]}}
    )
    control.ask(point("torch-b2", 2), END)
    assert control.serve("batch/torch_worker.py")[0] == 0
    result = control.results()["torch-b2"]
    assert result["ok"] is False
    assert str(result["error"]).startswith("RuntimeError: ")


@pytest.mark.parametrize(
    ("model", "says"), [("resnet", "no model named 'resnet'"), (__file__, "takes .pt")]
)
def test_an_unknown_model_is_refused_at_the_start(tmp_path: Path, model: str, says: str) -> None:
    control = Control(tmp_path, {"backend": "torch", "model": model})
    control.ask(END)
    status, err = control.serve("batch/torch_worker.py")
    assert status == 2
    assert says in err
    assert kinds(control.records()) == ["error"]


def test_a_missing_gpu_is_a_missing_device(tmp_path: Path) -> None:
    control = Control(tmp_path, {"backend": "torch", "model": "particlenet", "device": "cuda"})
    control.ask(END)
    status, err = control.serve(
        "batch/torch_worker.py", CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES=""
    )
    assert status == 3
    assert "sees no GPU" in err
    assert kinds(control.records()) == ["error"]


def test_a_file_that_is_no_torchscript_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"not a model")
    control = Control(tmp_path, {"backend": "torch", "model": str(tmp_path / "m.pt")})
    control.ask(END)
    status, err = control.serve("batch/torch_worker.py")
    assert status == 4
    assert "is not a readable TorchScript file" in err


def test_torchscript_is_not_compiled_again(scaled: Path, tmp_path: Path) -> None:
    control = Control(
        tmp_path,
        {"backend": "torch", "model": str(scaled), "shapes": {"x": [3], "y": [3]}, "compile": True},
    )
    control.ask(END)
    status, err = control.serve("batch/torch_worker.py")
    assert status == 2
    assert "--compile takes an eager model" in err


def narrow(folder: Path) -> Path:
    """The torch worker with no more of ParticleNet than one branch and the head: as much to compile
    as shows that it is compiled.
    """
    script = folder / "narrow.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(WORKLOADS.parent)!r})\n"
        "import torch\n"
        "from profharness_workloads.batch import torch_worker as batch_torch\n"
        "from profharness_workloads.shared import particlenet, worker\n"
        "class Narrow(particlenet.ParticleNet):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.head[0] = torch.nn.Linear(particlenet.BRANCH, particlenet.HIDDEN)\n"
        "    def forward(self, pf_points, pf_features, pf_mask, *secondary):\n"
        "        mean = self.pf(pf_features, pf_mask).mean(dim=2)\n"
        "        return torch.softmax(self.head(mean), dim=1)\n"
        "particlenet.ParticleNet = Narrow\n"
        "sys.exit(worker.main(batch_torch.load, os.environ))\n"
    )
    return script


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("TORCHDYNAMO_DISABLE", "made no graph of this model"),
        *thorough(("CXX", "No working C++ compiler")),
    ],
)
def test_a_fallback_to_eager_is_told(tmp_path: Path, variable: str, says: str) -> None:
    control = Control(
        tmp_path, {"backend": "torch", "model": "particlenet", "compile": True, "threads": 1}
    )
    control.ask(point("torch-b1", 1), END)
    broken = {variable: "1" if variable == "TORCHDYNAMO_DISABLE" else "/bin/false"}
    assert (
        control.serve(
            narrow(tmp_path), TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"), **broken
        )[0]
        == 0
    )
    result = control.results()["torch-b1"]
    assert result["ok"] is True, result
    assert says in result["notes"]["failed-to-compile"]


def test_compile_time_is_its_own_figure(tmp_path: Path) -> None:
    control = Control(
        tmp_path, {"backend": "torch", "model": "particlenet", "compile": True, "threads": 1}
    )
    control.ask(point("torch-b1", 1), END)
    plain = {  # as real a compiler's work as any, in half the time
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_VEC_ISA_OK": "0",
    }
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    assert control.serve(narrow(tmp_path), **cache, **plain)[0] == 0
    result = control.results()["torch-b1"]
    assert result["ok"] is True, result
    assert "failed-to-compile" not in result["notes"]
    assert result["compile_ns"] > 10 * max(result["trials_ns"])
    assert result["cold_cache"] is True


def test_a_torch_pass_records_each_point_with_its_trials(tmp_path: Path) -> None:
    control = Control(
        tmp_path, {"backend": "torch", "model": "particlenet", "threads": 1}, layers="torch"
    )
    control.ask(point("torch-b1", 1), point("torch-b2~1", 2), END)
    assert control.serve("batch/torch_worker.py")[0] == 0
    pid = str(control.records()[0]["pid"])
    for name, result in control.results().items():
        assert result["ok"] is True, result
        assert result["flops_per_item"] is None, "nothing is counted while a tool records"
        (path,) = (control.run / "artifacts" / "torch").glob(f"*/{pid}/{name}.json")
        events = json.loads(path.read_text())["traceEvents"]
        spans = {
            e["name"]: e
            for e in events
            if str(e.get("name", "")).startswith(("profharness.point", "profharness.trial"))
        }
        assert sorted(spans) == sorted(
            [f"profharness.point:{name}", *(f"profharness.trial:{name}:{i}" for i in range(3))]
        )
        whole = spans[f"profharness.point:{name}"]
        trials = [spans[f"profharness.trial:{name}:{i}"] for i in range(3)]
        assert all(
            whole["ts"] <= t["ts"] and t["ts"] + t["dur"] <= whole["ts"] + whole["dur"]
            for t in trials
        )
        convolutions = [e for e in events if e.get("name") == "aten::conv2d"]
        assert len(convolutions) == 3 * 9, "the warm-up lies outside the window"
        assert all(
            any(t["ts"] <= e["ts"] <= t["ts"] + t["dur"] for t in trials) for e in convolutions
        )
        sidecar = json.loads(path.with_name(path.name + ".profharness.json").read_text())
        assert sidecar["point"] == name


class FakeCuda:
    """As much of torch.cuda as the choice of a device and synchronisation need."""

    def __init__(self, count: int, reserved: tuple[int, ...] = ()) -> None:
        self.count, self.reserved, self.synchronised = count, reserved, []

    def is_available(self) -> bool:
        return self.count > 0

    def device_count(self) -> int:
        return self.count

    def get_device_name(self, index: int) -> str:
        return f"GPU {index}"

    def memory_reserved(self, index: int) -> int:
        return 1024 if index in self.reserved else 0

    def synchronize(self, index: int) -> None:
        self.synchronised.append(index)


def fake_torch(
    count: int, hip: str | None = None, reserved: tuple[int, ...] = ()
) -> SimpleNamespace:
    return SimpleNamespace(
        __version__="2.9",
        version=SimpleNamespace(cuda=None, hip=hip),
        cuda=FakeCuda(count, reserved),
    )


@pytest.mark.parametrize(
    ("count", "asked", "local_rank", "device"),
    [
        (0, "auto", 0, "cpu"),
        (2, "auto", 0, "cuda:0"),
        (2, "auto", 3, "cuda:1"),
        (2, "cuda", 1, "cuda:1"),
        (2, "cuda:1", 0, "cuda:1"),
        (2, "cpu", 0, "cpu"),
    ],
)
def test_devices_are_chosen(
    workloads: Path, count: int, asked: str, local_rank: int, device: str
) -> None:
    from profharness_workloads.batch import torch_worker as batch_torch

    assert batch_torch.chosen_device(fake_torch(count), asked, local_rank) == device


def test_a_device_that_is_not_there_is_refused(workloads: Path) -> None:
    from profharness_workloads.batch import torch_worker as batch_torch

    with pytest.raises(batch_torch.Refusal, match=r"sees 2 GPU\(s\)") as caught:
        batch_torch.chosen_device(fake_torch(2), "cuda:2", 0)
    assert caught.value.code == 3


def test_devices_are_named_by_kind(workloads: Path) -> None:
    from profharness_workloads.batch import torch_worker as batch_torch

    assert batch_torch.visible_devices(fake_torch(1, hip="6.2"))[1] == {
        "index": 0,
        "kind": "rocm",
        "name": "GPU 0",
    }
    assert batch_torch.visible_devices(fake_torch(1))[1]["kind"] == "cuda"


@pytest.mark.parametrize(("reserved", "waited"), [((1,), [1]), ((1, 3), [1, 3]), ((), [1])])
def test_every_device_in_use_is_waited_for(
    workloads: Path, reserved: tuple[int, ...], waited: list[int]
) -> None:
    from profharness_workloads.batch import torch_worker as batch_torch

    torch = fake_torch(4, reserved=reserved)
    batch_torch.synchroniser(torch, SimpleNamespace(type="cuda", index=1))()
    assert torch.cuda.synchronised == waited
    assert batch_torch.synchroniser(torch, SimpleNamespace(type="cpu", index=None))() is None
