"""examples/extending/netpipe.py and one line: an importer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.extending import example

from fabricbench.exchange import importer
from fabricbench.exchange.storing import Said, import_run
from fabricbench.model import Layer
from fabricbench.record.store import Run

NP_OUT = """       1 0.298156   0.00002559
       2 0.625376   0.00002440
      64 20.126816  0.00002426
"""


def test_a_text_of_another_program_becomes_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    netpipe = example("netpipe")
    monkeypatch.setattr(importer, "IMPORTERS", (*importer.IMPORTERS, netpipe))
    path = tmp_path / "np.out"
    path.write_text(NP_OUT)
    import_run(tmp_path / "run", {"eth": [path]}, Said(layer=Layer.TCP))
    cells = Run.open(tmp_path / "run").launch_quantiles()
    assert cells.select("layer", "message_bytes", "variant", "launch_value").rows() == [
        ("tcp", 1, "by=netpipe", 51_180.0),
        ("tcp", 2, "by=netpipe", 48_800.0),
        ("tcp", 64, "by=netpipe", 48_520.0),
    ]


@pytest.mark.parametrize("text", ["       0 0.000000 0.00002559\n", "", "no table\n"])
def test_another_text_is_not_taken_for_its_own(text: str):
    """Each importer is asked of every text that is imported."""
    assert not example("netpipe").is_it(text)
