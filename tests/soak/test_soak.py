"""A tiny soak; `make soak` is the long one."""

from __future__ import annotations

import pytest

from tests.soak.__main__ import main


@pytest.mark.slow
def test_a_short_soak_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--minutes", "0.05", "--scale", "0.01", "telemetry", "runs"])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert status == 0, said.err
    assert [line.split()[-1] for line in lines[1:]] == ["0", "0"]
    assert int(lines[1].split("MiB")[1].split()[0].replace(",", "")) > 100


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
