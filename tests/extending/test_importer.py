"""examples/extending/ping.py and one line: an importer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.extending import example

from fabricbench.exchange import importer
from fabricbench.exchange.storing import import_run
from fabricbench.record.store import Run

PING = """PING 10.98.6.2 (10.98.6.2) 56(84) bytes of data.

--- 10.98.6.2 ping statistics ---
1000 packets transmitted, 1000 received, 0% packet loss, time 2010ms
rtt min/avg/max/mdev = 0.271/0.308/3.425/0.150 ms
"""


def test_a_text_of_another_program_becomes_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ping = example("ping")
    monkeypatch.setattr(importer, "IMPORTERS", (*importer.IMPORTERS, ping))
    path = tmp_path / "ping.txt"
    path.write_text(PING)
    import_run(tmp_path / "run", {"eth": [path]})
    cells = Run.open(tmp_path / "run").launch_quantiles()
    assert cells.select("layer", "message_bytes", "variant", "launch_value").rows() == [
        ("ip", 56, "by=ping", 308_000.0),
    ]


@pytest.mark.parametrize("text", ["PING\n", "", "no table\n"])
def test_another_text_is_not_taken_for_its_own(text: str):
    """Each importer is asked of every text that is imported."""
    assert not example("ping").is_it(text)
