"""What would end the engine that draws: too little address space costs a page its pictures, text that is no XML is escaped."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fabricbench.report.drawing.engine import ENGINE_BYTES, drawn_png, drawn_svg, drawn_width
from fabricbench.report.drawing.raster import raster_spec

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.path.insert(0, sys.argv[2])
from support.example_findings import small_findings
from fabricbench.errors import EnvironmentLacks
from fabricbench.report.formats import FORMATS
print(FORMATS["html"].render(small_findings()).count(b"<svg aria-hidden"))
try:
    print(len(FORMATS["svg"].render(small_findings(), "ladder")) > 1000)
except EnvironmentLacks as lacks:
    print(lacks)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "can_draw"), [(16 * 2**30, False), pytest.param(ENGINE_BYTES, True, marks=pytest.mark.slow)]
)
def test_a_limit_of_address_space_costs_pictures_and_never_the_process(limit: int, can_draw: bool):
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY and hard < limit:
        pytest.skip("this process may have less address space than the test gives")
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), tests], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    stills, picture = done.stdout.splitlines()
    assert (int(stills) > 0) is can_draw
    assert picture == "True" if can_draw else "drawing pictures takes 72 GiB of address space" in picture


@pytest.mark.parametrize("sign", ["\x1b", "\x00", "\ufffe", "\ud800"])
def test_no_text_ends_the_process_that_draws(sign: str):
    spec = {"mark": "text", "data": {"values": [{"name": f"a{sign}b"}]}, "encoding": {"text": {"field": "name"}}}
    assert f"a\\u{ord(sign):04x}b" in drawn_svg(spec)
    assert drawn_png(spec, 1.0).startswith(b"\x89PNG")
    assert drawn_width(spec) > 0
    matrix = raster_spec(np.zeros((2, 2)), [f"n{sign}0", "n1"], ("#000000", "#ffffff"), [], "to")
    assert f"n\\u{ord(sign):04x}0" in drawn_svg(matrix)
