"""What reports recommend next: every command is one that the command line, and the planner behind it, would take."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.campaign.plan import extend_plan, plan_run
from fabricbench.campaign.presets import preset
from fabricbench.campaign.venue import find_venue
from fabricbench.cli.commands import command as load_command
from fabricbench.cli.several_runs import SIDES, spread
from fabricbench.model import Layer, Pattern
from fabricbench.record.manifest import Extension, NodeLoss, write_manifest
from fabricbench.record.store import Run
from fabricbench.statistics.decision import FEWEST_PAIRS
from support.example_findings import (
    before_after_findings,
    busy_findings,
    example_findings,
    kernel_findings,
    small_findings,
    three_fabric_findings,
)
from support.synthetic_run import SyntheticCell, write_synthetic_run

COMMAND = re.compile(r"fabricbench (?:resume|run|report|compare|check|plan) [^()]*")
LAYERS = (Layer.TCP, Layer.MPI)
FIXTURES = (
    before_after_findings,
    busy_findings,
    example_findings,
    kernel_findings,
    small_findings,
    three_fabric_findings,
)


def commands(findings: Findings) -> list[list[str]]:
    """Return the commands that findings recommend, as a shell would take them apart."""
    return [shlex.split(found) for step in findings.headline.next_steps for found in COMMAND.findall(step)]


def parsed(command: list[str]) -> dict[str, object]:
    """Return the options of a command as the command line reads them; fails where it would refuse them."""
    _, verb, *arguments = command
    with load_command(verb).make_context(verb, spread(arguments, SIDES)) as context:
        return dict(context.params)


MISSING = [f"b{block:02d}-{fabric}" for block in (2, 3) for fabric in ("a", "b")]


def measured(path: Path) -> Run:
    """A run of two fabrics: of four planned blocks two gave nothing, and two are too few for any verdict."""
    cells = [SyntheticCell(layer, Pattern.PINGPONG, 64, {"a": 1e5, "b": 1.02e5}, samples=20) for layer in LAYERS]
    return write_synthetic_run(path, cells=cells, blocks=4, missing=MISSING)


def resumed(run: Run) -> list[int]:
    """Return the numbers of blocks that are recommended for a run, beside measuring what of its own is left."""
    left, *found = [parsed(command) for command in commands(analyse([Run.open(run.path)])) if command[1] == "resume"]
    assert left["blocks"] is None
    return [int(str(options["blocks"])) for options in found]


@pytest.mark.parametrize("make", FIXTURES)
def test_every_command_that_the_examples_recommend_is_one(make: Callable[[], Findings]):
    found = [parsed(command) for command in commands(make())]
    assert found or make is kernel_findings


def test_blocks_are_recommended_that_the_planner_adds_to_those_that_were_planned(tmp_path: Path):
    """What is added counts from the plan on, and not from what was measured."""
    (blocks,) = resumed(measured(tmp_path / "run"))
    plan = plan_run(preset("quick"), find_venue("lab:fast-ethernet,myrinet").testbed(), seed=1, blocks=4)
    assert blocks == 4 + FEWEST_PAIRS - 2
    assert extend_plan(plan, Extension(blocks=blocks, planned=4, measured=2, unix_ns=0)).blocks == blocks


def test_of_a_run_that_takes_no_more_blocks_none_are_recommended(tmp_path: Path):
    run = measured(tmp_path / "run")
    assert resumed(run) == [7]
    gave_up = NodeLoss(reasons={"n1": "no answer"}, kept=(0, 1, 2, 3), ranks=2, unix_ns=0)
    for changed in ({"is_final": True}, {"losses": (gave_up,)}):
        write_manifest(run.path, run.manifest.model_copy(update=changed))
        assert resumed(run) == []
        steps = analyse([Run.open(run.path)]).headline.next_steps
        assert any("measure anew, with 7 blocks: this run takes no more" in step for step in steps)


def test_applications_are_recommended_only_where_the_planner_would_take_them(tmp_path: Path):
    run = measured(tmp_path / "run")
    typed = ("fabricbench", "run", "quick", "--testbed", "lab:fast-ethernet,myrinet", "-o", "x")
    write_manifest(run.path, run.manifest.model_copy(update={"command": typed}))
    found = [command for command in commands(analyse([Run.open(run.path)])) if command[1] == "run"]
    assert len(found) == 1
    options = parsed(found[0])
    venue = find_venue(str(options["testbed"]))
    assert plan_run(preset(str(options["campaign"])), venue.testbed(), seed=1).launches
    bed = run.manifest.testbed
    fabrics = tuple(one.model_copy(update={"layers": (Layer.TCP,)}) for one in bed.fabrics)
    without = run.manifest.model_copy(update={"testbed": bed.model_copy(update={"fabrics": fabrics})})
    write_manifest(run.path, without)
    assert not any(command[1] == "run" for command in commands(analyse([Run.open(run.path)])))
