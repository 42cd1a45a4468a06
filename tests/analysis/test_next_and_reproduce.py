"""What to measure next, and how to measure the same again."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fabricbench.analysis.findings import Comparison, Replication, Verdict
from fabricbench.analysis.headline import MOST_STEPS, next_steps, sizes_inside
from fabricbench.analysis.method import again, method, pause_of, reproduce, reproduction
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.record.integrity import data_hash
from fabricbench.record.manifest import write_manifest
from fabricbench.record.store import Run
from support.synthetic_run import SyntheticCell, write_synthetic_run


@dataclass(frozen=True)
class FoundBracket:
    layer: Layer
    pattern: Pattern
    lower_bytes: int
    upper_bytes: int


def comparison(layer: Layer = Layer.TCP, **options: Any) -> Comparison:
    values: dict[str, Any] = {
        "kind": "cell",
        "layer": layer,
        "pattern": Pattern.PINGPONG,
        "receive": Receive.BLOCKING,
        "message_bytes": 64,
        "metric": Metric.ROUND_TRIP_TIME,
        "unit": "ns",
        "fabric_a": "a",
        "fabric_b": "b",
        "ratio": 1.1,
        "ratio_low": 0.98,
        "ratio_high": 1.2,
        "p_value": 0.1,
        "p_adjusted": 0.2,
        "verdict": Verdict.NOT_ENOUGH_DATA,
        "launches": 6,
        "more_blocks_needed": None,
    }
    return Comparison(**(values | options))


def steps(cells: list[Comparison], brackets: tuple[FoundBracket, ...] = (), **options: Any) -> tuple[str, ...]:
    settings: dict[str, Any] = {"run_directory": "runs/x", "blocks": 6, "has_workload": True} | options
    return next_steps(cells, [], brackets, 0.02, **settings)


def test_the_blocks_that_settle_what_users_meet_come_with_the_command_to_give():
    cells = [comparison(Layer.FRAME, more_blocks_needed=1), comparison(more_blocks_needed=9)]
    (line,) = steps(cells, run_directory="runs/my run")
    assert line.startswith("9 more blocks would settle tcp round trip of 64 B (80 % chance")
    assert line.endswith("fabricbench resume 'runs/my run' --blocks 15")


def test_the_launches_that_are_left_come_first():
    line, *_ = steps([comparison(more_blocks_needed=9)], left=7, not_quiet="load 3.9 on 2 processors")
    assert line == "measure the 7 launches that are left: fabricbench resume runs/x"
    assert steps([], left=7, run_directory=None) == ()


def test_of_several_open_questions_half_are_settled_and_counted():
    cells = [comparison(message_bytes=size, more_blocks_needed=more) for size, more in ((8, 20), (64, 3), (256, 5))]
    (line,) = steps(cells)
    assert line.startswith("5 more blocks would settle tcp round trip of 64 B and 1 more comparison")


def test_the_luckiest_of_many_open_questions_promises_nothing():
    # Of 22 comparisons with a true 3 % the one that seemed to need fewest blocks was settled by them in one campaign of twelve.
    needs = (5, 400, 600, None)
    cells = [comparison(message_bytes=8 * 2**place, more_blocks_needed=more) for place, more in enumerate(needs)]
    assert not any("would settle" in line for line in steps(cells))


def test_too_few_blocks_for_any_statement_come_with_the_command_that_adds_them():
    few = {"p_value": None, "p_adjusted": None, "ratio_low": None, "ratio_high": None}
    (line,) = steps([comparison(launches=2, **few), comparison(launches=1, message_bytes=8, **few)], blocks=2)
    assert line == (
        "3 more blocks, for nothing can be said of fewer than 5 whole pairs: fabricbench resume runs/x --blocks 5"
    )
    assert not any("whole pairs" in line for line in steps([comparison()]))


def test_what_is_decided_needs_nothing():
    assert steps([comparison(verdict=Verdict.B_FASTER), comparison(verdict=Verdict.EQUIVALENT)]) == ()
    assert len(steps([comparison(verdict=Verdict.B_AHEAD, more_blocks_needed=4)])) == 1  # by less than matters, perhaps


def test_a_busy_machine_comes_first_and_hides_neither_the_blocks_nor_the_prices():
    cells = [comparison(more_blocks_needed=9), comparison(ratio_low=0.99, ratio_high=1.01)]
    brackets = (FoundBracket(Layer.TCP, Pattern.STREAM, 64, 1024),)
    options: dict[str, Any] = {"has_workload": False, "has_prices": False}
    lines = steps(cells, brackets, not_quiet="load 2.5 on 1 processor", **options)
    assert len(lines) == MOST_STEPS
    assert lines[0] == "measure again while the machine is quiet: load 2.5 on 1 processor"
    assert lines[1].endswith("fabricbench resume runs/x --blocks 15")
    assert "run npb" in lines[2]
    assert lines[3].startswith("give prices to decide: fabricbench report runs/x --decision ")
    assert steps(cells, brackets)[1] == (
        'sizes inside the bracket 64 B to 1 KiB (tcp stream), in a campaign file: message_bytes = ["128B", "256B", "512B"]'
    )


def test_values_that_the_link_does_not_allow_name_their_cause_and_are_no_matter_of_a_quieter_host():
    lines = steps(
        [comparison(more_blocks_needed=9)],
        not_quiet="load 2.5 on 1 processor",
        beyond_wire="a: tcp round trip of 64 B is 13.4 us, where the bits alone take 24.6 us",
    )
    assert "the link is not what the testbed says, a token-bucket shaper" in lines[0]
    assert "24.6 us" in lines[0]
    assert not any("quiet" in line for line in lines)
    assert lines[1].startswith("9 more blocks")


def test_one_run_a_side_asks_for_three():
    (line,) = steps([comparison(replication=Replication.LAUNCHES, more_blocks_needed=3)])
    assert line.startswith("3 runs a side")


def test_equivalence_is_not_promised_below_its_launches():
    (line,) = steps([comparison(ratio=1.0, ratio_low=0.99, ratio_high=1.01)])
    assert line.startswith('"equivalent" cannot be said below 32 blocks')
    assert line.endswith("fabricbench resume runs/x --blocks 32")


def test_without_a_workload_applications_are_asked_for_with_the_testbed_that_is_known():
    (line,) = steps([], has_workload=None, testbed=("--testbed", "lab:fast-ethernet,myrinet", "--nodes", "4"))
    assert line.endswith("fabricbench run npb --testbed lab:fast-ethernet,myrinet --nodes 4 -o RUNDIR")
    kernel = comparison(Layer.MPI, pattern=Pattern.NPB, verdict=Verdict.A_FASTER)
    assert steps([kernel], has_workload=None) == ()


@pytest.mark.parametrize(
    ("lower", "upper", "inside"),
    [
        (64, 512, [128, 256]),
        (64, 1472, [128, 256, 1024]),
        (64, 65536, [256, 2048, 16384]),
        (64, 128, [88]),
        (8, 9, []),
        (10, 12, []),
    ],
)
def test_sizes_inside_a_bracket_are_inside(lower: int, upper: int, inside: list[int]):
    found = sizes_inside(lower, upper)
    assert all(lower < size < upper for size in found)
    assert found == inside


def written(path: Path) -> Run:
    cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=20)
    return write_synthetic_run(path, cells=[cell], blocks=3, seed=77)


def test_the_hash_is_what_sha256sum_finds_by_the_documented_command(tmp_path: Path):
    run = written(tmp_path / "run")
    page = (Path(__file__).parents[2] / "docs" / "run-directory.md").read_text()
    command = next(block for block in page.split("```") if "cd RUNDIR" in block).replace("cd RUNDIR\n", "")
    if shutil.which("sha256sum") is None:
        pytest.skip("this machine has no sha256sum")
    found = subprocess.run(
        command, shell=True, cwd=run.path, capture_output=True, text=True, check=True
    ).stdout.split()[0]
    assert data_hash(run.path) == found


def test_the_hash_changes_with_a_sample_and_not_with_a_log(tmp_path: Path):
    run = written(tmp_path / "run")
    before = data_hash(run.path)
    (run.path / "launches" / "b00-a" / "stderr.log").write_text("late")
    (run.path / "launches" / "b00-a" / "attempt-1").mkdir()
    (run.path / "launches" / "b00-a" / "attempt-1" / "samples.parquet").write_text("cut short")
    assert data_hash(run.path) == before
    other = run.path / "launches" / "b00-a" / "samples.parquet"
    other.write_bytes(other.read_bytes() + b" ")
    assert data_hash(run.path) != before


def test_a_run_says_its_command_seed_and_version(tmp_path: Path):
    run = written(tmp_path / "run")
    whole = data_hash(run.path)
    command, versions = reproduce(run, whole)
    assert command == (
        "campaign synthetic in 3 blocks with seed 77 on testbed synthetic (a, b); its command was not recorded"
    )
    assert versions.startswith("fabricbench 0.1.0, seed 77")
    assert versions.endswith(f", data {whole[:12]} (`fabricbench verify`)")
    assert reproduction([run]) == {"reproduce": (command, versions), "data_sha256": (whole,)}
    typed = ("fabricbench", "run", "my campaign.toml", "--testbed", "lab:a,b", "-o", "runs/x")
    write_manifest(run.path, run.manifest.model_copy(update={"command": typed}))
    assert reproduce(Run.open(run.path), whole)[0] == (
        "fabricbench run 'my campaign.toml' --testbed lab:a,b --seed 77 -o RUNDIR"
    )


def test_a_command_that_is_given_again_measures_as_many_blocks_and_writes_elsewhere():
    typed = ("fabricbench", "run", "quick", "--testbed=local", "--report", "--output=x", "--seed", "5")
    assert again(typed, 5, 6, 6) == ("fabricbench", "run", "quick", "--testbed=local", "--seed", "5", "-o", "RUNDIR")
    assert again(typed, 5, 12, 6)[-4:] == ("--blocks", "12", "-o", "RUNDIR")
    extended = again((*typed, "--blocks", "6"), 5, 12, 6)
    assert extended[-4:] == ("--blocks", "12", "-o", "RUNDIR")
    assert again((*typed, "--budget", "5min"), 5, 4, 6)[-4:] == ("--budget", "5min", "-o", "RUNDIR")
    assert again(("fabricbench", "map", "x"), 1, 2, 3) == ("fabricbench", "map", "x")


def test_the_method_promises_a_rate_of_error_of_two_sessions_for_those_sessions_alone():
    """One run a side: what else differed between the sessions is in the ratio."""
    told = {each: " ".join(method(0.02, 0.95, replications=[each], seed=1)) for each in Replication}
    assert [each for each, text in told.items() if "no rate of error is promised" in text] == [Replication.LAUNCHES]
    assert [each for each, text in told.items() if "rates of error about the two sessions" in text] == [
        Replication.LAUNCHES
    ]
    assert "of what they name, at most 5 % is expected to be wrong" in told[Replication.LAUNCHES]


@pytest.mark.parametrize(
    ("stored", "told"),
    [({}, ""), ({"pause": [0.0, 0.0]}, ""), ({"pause": [0.5, 2.0]}, "0.5 to 2 s"), ({"pause": "?"}, "")],
)
def test_the_method_tells_of_the_pauses_of_a_campaign(tmp_path: Path, stored: dict[str, Any], told: str):
    manifest = written(tmp_path).manifest.model_copy(update={"campaign": stored})
    assert pause_of(manifest) == told
    texts = method(0.02, 0.95, replications=[Replication.BLOCKS], seed=1, pause=pause_of(manifest))
    assert any(f"nothing was measured for {told}," in text for text in texts) == bool(told)
