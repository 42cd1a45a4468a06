"""An option that would be dropped without a word is refused, with the option that it goes with."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.calling import Call


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("map RUN --nodes 4", "--testbed"),
        ("map RUN --blocks 3", "--testbed"),
        ("map RUN --layer tcp", "--testbed"),
        ("selfcheck RUN --campaign quick", "--testbed"),
        ("selfcheck RUN --blocks 4", "--testbed"),
        ("selfcheck RUN --budget 5min", "--testbed"),
        ("check RUN --baseline RUN --good-runs 3", "--last-good"),
    ],
)
def test_an_option_of_no_use_is_refused(line: str, needed: str, tmp_path: Path, fabricbench: Call):
    code, _, err = fabricbench(*line.replace("RUN", str(tmp_path)).split())
    option = line.split()[-2]
    assert code == 2
    assert f"{option} is of no use without {needed}" in err
    assert f"add {needed}, or leave {option} out" in err
