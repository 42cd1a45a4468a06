"""What a launch of the measurer starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.start import SOCKET_CALLS_LIBRARY, Measurer
from fabricbench.model import Layer, Pattern
from fabricbench.native import native_file
from fabricbench.record.probe_plan import PlanProbe


@pytest.mark.parametrize(
    ("layer", "parameters", "is_noted"),
    [(Layer.MPI, {"stages": "user"}, True), (Layer.MPI, {}, False), (Layer.TCP, {"stages": "user"}, False)],
)
def test_the_calls_of_an_mpi_library_are_noted_only_for_stages_of_its_messages(
    layer: Layer, parameters: dict[str, str], *, is_noted: bool
):
    start = Measurer([PlanProbe(id=0, layer=layer, pattern=Pattern.PINGPONG, message_bytes=64, parameters=parameters)])
    program, *options, plan = start.program(Path("/run"))
    assert (Path(program).name, plan) == ("fabricbench-probe", "/run/plan.json")
    assert options == (["--preload", str(native_file(SOCKET_CALLS_LIBRARY))] if is_noted else [])
    assert ("mpi calls" in start.conditions(Path("/run"))) == is_noted
