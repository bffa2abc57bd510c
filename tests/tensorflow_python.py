"""The interpreter with TensorFlow that tests use: this one, PROFHARNESS_TEST_TENSORFLOW, or the one
of `make tensorflow`.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

from tests.tools import get_tensorflow


def find() -> str:
    """Its path; empty where there is none."""
    if importlib.util.find_spec("tensorflow"):
        return sys.executable
    made = str(get_tensorflow.interpreter()) if get_tensorflow.is_complete() else ""
    return os.environ.get("PROFHARNESS_TEST_TENSORFLOW") or made


INTERPRETER = find()
needs_tensorflow = pytest.mark.skipif(
    not INTERPRETER,
    reason=(
        "needs tensorflow: make tensorflow, or name its interpreter by PROFHARNESS_TEST_TENSORFLOW"
    ),
)
