"""The interpreter with the real deepsparse that tests use: PROFHARNESS_TEST_DEEPSPARSE. It is of an
older Python, under a licence of its own, and never installed by this project.
"""

from __future__ import annotations

import os

import pytest

INTERPRETER = os.environ.get("PROFHARNESS_TEST_DEEPSPARSE", "")
needs_deepsparse = pytest.mark.skipif(
    not INTERPRETER,
    reason="needs deepsparse 1.8.0: name an interpreter by PROFHARNESS_TEST_DEEPSPARSE",
)
