"""Inputs of trials: kinds, shapes, files, and what is said when something does not fit."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def inputs(workloads: Path) -> ModuleType:
    from profharness_workloads.shared import inputs

    return inputs


@pytest.fixture
def jets(inputs: ModuleType):
    """The six inputs of a jet tagger, by Triton's names."""
    dims = {
        "pf_points__0": (2, 100),
        "pf_features__1": (20, 100),
        "pf_mask__2": (1, 100),
        "sv_points__3": (2, 10),
        "sv_features__4": (11, 10),
        "sv_mask__5": (1, 10),
    }
    return [inputs.TensorSpec(name, "float32", d) for name, d in dims.items()]


def refusal(inputs: ModuleType, call) -> tuple[str, str, int]:
    """The message, hint and exit status by which a call is refused."""
    with pytest.raises(inputs.Refusal) as caught:
        call()
    return caught.value.message, caught.value.hint, caught.value.code


def test_hep_inputs_are_physical(inputs: ModuleType, jets) -> None:
    points, features, mask, _, sv_features, sv_mask = inputs.pool(jets, 64, "hep", 3)[0]
    assert set(np.unique(mask)) == {0.0, 1.0}
    valid = mask[:, 0].sum(axis=1)
    assert valid.min() >= 25
    assert valid.max() <= 100
    assert len(set(valid)) > 10
    assert (np.diff(mask[:, 0], axis=1) <= 0).all(), "valid particles come first"
    assert np.abs(points).max() <= np.float32(0.4)
    assert np.abs(features).max() <= 5
    assert not (features * (1 - mask)).any(), "nothing where masked"
    assert not (sv_features * (1 - sv_mask)).any()
    assert all(array.dtype == np.float32 for array in (points, features, mask))


def test_normal_inputs_are_standard_normal_masks_too(inputs: ModuleType, jets) -> None:
    arrays = inputs.pool(jets, 200, "normal", 3)[0]
    for array, spec in zip(arrays, jets, strict=True):
        assert array.shape == (200, *spec.dims)
        assert abs(float(array.mean())) < 0.1
        assert 0.9 < float(array.std()) < 1.1


def test_categories_stay_inside_their_tables(inputs: ModuleType) -> None:
    specs = [inputs.TensorSpec(f"input_cat{n}", "float32", (4500, 1)) for n in range(3)]
    for array, size in zip(inputs.pool(specs, 2, "hep", 0)[0], (3, 11, 4), strict=True):
        assert set(np.unique(array)) == set(range(size))


def test_the_same_seed_gives_the_same_and_sets_differ(inputs: ModuleType, jets) -> None:
    one, two = inputs.pool(jets, 4, "hep", 5), inputs.pool(jets, 4, "hep", 5)
    assert all(np.array_equal(a, b) for a, b in zip(one[0], two[0], strict=True))
    assert not np.array_equal(one[0][1], one[1][1])
    assert not np.array_equal(one[0][1], inputs.pool(jets, 4, "hep", 6)[0][1])


def test_memory_is_bounded_and_sets_come_in_turn(inputs: ModuleType, jets) -> None:
    assert len(inputs.pool(jets, 1, "normal", 0)) == 8
    assert len(inputs.pool(jets, 64, "normal", 0, budget_bytes=1 << 20)) == 2
    turn = inputs.in_turn(["a", "b"])
    assert [turn() for _ in range(5)] == ["a", "b", "a", "b", "a"]


@pytest.mark.parametrize(("dtype", "values"), [("int64", {0, 1}), ("bool", {False, True})])
def test_whole_numbers_fit_any_table(inputs: ModuleType, dtype: str, values: set[object]) -> None:
    array = inputs.pool([inputs.TensorSpec("ids", dtype, (50,))], 4, "normal", 0)[0][0]
    assert array.dtype == dtype
    assert set(array.ravel().tolist()) == values


def test_a_file_is_sampled_by_rows(inputs: ModuleType, tmp_path: Path) -> None:
    path = str(tmp_path / "events.npz")
    rows = np.arange(10, dtype=np.float32)
    np.savez(path, x=np.repeat(rows[:, None], 3, axis=1), y=rows[:, None])
    specs = [
        inputs.TensorSpec("x__0", "float32", (3,)),
        inputs.TensorSpec("y__1", "float32", (None,)),
    ]
    filled, _ = inputs.filled(specs, {}, path)
    assert filled[1].dims == (1,)
    for batch in (4, 25):
        x, y = inputs.pool(filled, batch, path, 0)[0]
        assert x.shape == (batch, 3)
        assert np.array_equal(x[:, 0], y[:, 0]), "rows of different arrays stay together"
        assert len(set(y[:, 0])) == (4 if batch == 4 else len(set(y[:, 0])))


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"z": np.zeros((2, 3))}, "has no array x"),
        ({"x": np.zeros((2, 4))}, r"array x has shape [2, 4], the model wants [rows, 3]"),
        ({"x": np.zeros((2, 3), dtype=np.int64)}, "array x is int64, the model wants float32"),
        ({"x": np.zeros((0, 3))}, "array x has shape [0, 3]"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    inputs: ModuleType, tmp_path: Path, stored, says: str
) -> None:
    path = str(tmp_path / "events.npz")
    np.savez(path, **stored)
    specs = [inputs.TensorSpec("x", "float32", (3,))]
    assert says in refusal(inputs, lambda: inputs.checked(path, specs))[0]


def test_a_file_that_is_no_archive_is_bad_input(inputs: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "events.npz"
    path.write_bytes(b"PK\x03\x04 nothing")
    assert (
        refusal(
            inputs, lambda: inputs.checked(str(path), [inputs.TensorSpec("x", "float32", (3,))])
        )[2]
        == 4
    )
    assert refusal(inputs, lambda: inputs.checked(str(tmp_path / "no.npz"), []))[2] == 4


def test_unknown_kinds_are_refused(inputs: ModuleType) -> None:
    message, hint, code = refusal(inputs, lambda: inputs.checked("cosmic", []))
    assert (code, "'cosmic'" in message, "hep" in hint) == (2, True, True)


def test_free_dimensions_are_filled_or_asked_for(inputs: ModuleType) -> None:
    free = [
        inputs.TensorSpec("pf_mask__2", "float32", (1, None)),
        inputs.TensorSpec("x", "float32", (None, 7)),
    ]
    filled, usual = inputs.filled(free, {"x": (5, 7)}, "normal")
    assert [spec.dims for spec in filled] == [(1, 100), (5, 7)]
    assert usual == ["pf_mask__2"]
    assert inputs.filled(free, {"x": (5, 7), "pf_mask": (1, 60)}, "normal")[0][0].dims == (1, 60)
    message, hint, code = refusal(inputs, lambda: inputs.filled(free, {}, "normal"))
    assert (message, code) == ("input x [?, 7] float32 has free dimensions", 2)
    assert "--shape x:d1,d2" in hint


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"x": (5, 8)}, "does not fit"),
        ({"x": (7,)}, "does not fit"),
        ({"w": (5, 7)}, "names w, which is no input"),
    ],
)
def test_shapes_that_contradict_the_model_are_refused(
    inputs: ModuleType, shapes, says: str
) -> None:
    specs = [inputs.TensorSpec("x", "float32", (None, 7))]
    assert says in refusal(inputs, lambda: inputs.filled(specs, shapes, "normal"))[0]
