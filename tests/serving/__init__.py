"""Tests of the harness side of model servers."""
