"""What is said of kernels, in runs whose truth is known: IS takes three times as long on the slow fabric, EP the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, Verdict
from fabricbench.analysis.findings.loads import LoadOnFabric, LoadRatio
from fabricbench.analysis.load_results import reference_run
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.chapters.workload_tables import LOADS, RATIOS, SPEED_UPS, npb_study_table
from fabricbench.chapters.workloads import workload_lines
from fabricbench.errors import UsageError
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.record.kernel_lines import (
    CallTotal,
    KernelFooter,
    KernelHeader,
    KernelProfile,
    KernelRecord,
    KernelRun,
    MessageSizes,
)
from fabricbench.record.launch import KernelPart, LaunchFacts, write_launch
from fabricbench.record.lines import RankInfo
from fabricbench.record.manifest import Manifest, PlannedLaunch, write_manifest
from fabricbench.record.provenance import Proof
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import LaunchOfWorkload, record_of, result_of_kernel
from fabricbench.report.figures import present
from fabricbench.report.formats import FORMATS, Format
from support.example_findings import example_findings
from support.pages import page_of

SECONDS = {"IS": 1.0, "EP": 2.0, "CG": 1.5}
SLOWER = {"IS": 3.0, "EP": 1.0, "CG": 1.5}
COMMUNICATION = 0.25
SPEED_UP = 2.5


def kernel_record(benchmark: str, ranks: int, seconds: float, *, is_right: bool) -> KernelRecord:
    spent = COMMUNICATION * seconds
    profile = KernelProfile(
        compute_seconds=(seconds - spent,) * ranks,
        mpi_seconds=(spent,) * ranks,
        bytes_sent=(1000,) * ranks,
        calls=(CallTotal(call="MPI_Wait", number=ranks, seconds=spent * ranks, bytes=0),),
        message_sizes=(MessageSizes(from_bytes=512, to_bytes=1023, number=ranks),),
    )
    run = KernelRun(
        repetition=0,
        size="1",
        iterations=1,
        seconds=seconds,
        operations=1e9,
        operation_unit="floating point",
        mops_total=1e3 / seconds,
        mops_per_process=1e3 / seconds / ranks,
        verified=is_right,
        profile=profile,
    )
    header = KernelHeader(
        program="fabricbench-npb",
        program_version="0",
        kernel=benchmark.lower(),
        problem_class="W",
        rank_count=ranks,
        ranks=tuple(RankInfo(rank=rank, host=f"n{rank}", pid=1, cpus=(0,)) for rank in range(ranks)),
        clock_resolution_ns=1.0,
        started_unix_ns=1,
    )
    return KernelRecord(header=header, runs=[run], footer=KernelFooter(runs=1, verified=int(is_right)))


def kernel_run(path: Path, *, wrong: str = "", gains: Mapping[str, float] = SLOWER) -> Run:
    """A run of eight blocks on two fabrics with a hundredth of a percent of noise."""
    tables = [{"benchmarks": list(SECONDS), "ranks": [1, 4]}]
    testbed = plan_lab("four", 4, parse_fabrics("fast-ethernet,myrinet"), [0, 1]).testbed()
    plan = plan_run(campaign_of({"campaign": {"blocks": 8}, "npb": tables}, "npb.toml"), testbed, seed=1)
    random = np.random.default_rng(8)
    planned = tuple(PlannedLaunch(**one.model_dump(include=set(PlannedLaunch.model_fields))) for one in plan.launches)
    path.mkdir()
    write_manifest(path, Manifest(campaign_name="npb", testbed=testbed, seed=1, planned=planned))
    for launch in plan.launches:
        assert launch.workload is not None
        name, ranks = launch.workload.benchmark, launch.workload.ranks
        slower = gains[name] if launch.fabric == "fast-ethernet" and ranks > 1 else 1.0
        seconds = SECONDS[name] * slower * (1.0 if ranks > 1 else SPEED_UP) * np.exp(random.normal(0.0, 0.0001))
        record = kernel_record(name, ranks, float(seconds), is_right=name != wrong)
        directory = path / "launches" / launch.launch_id
        directory.mkdir(parents=True)
        write_launch(
            directory,
            record_of(
                result_of_kernel(record), LaunchOfWorkload(launch.launch_id, launch.fabric, plan.cells[launch.cells[0]])
            ),
            facts=LaunchFacts(block=launch.block, position=launch.position, proof=Proof.PROVEN),
            kernel=KernelPart(header=record.header, runs=tuple(record.runs)),
        )
    return Run.open(path)


def benchmark(one: LoadRatio | LoadOnFabric) -> str:
    return one.workload.short.partition(".")[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return kernel_run(tmp_path_factory.mktemp("kernels") / "run")


@pytest.fixture(scope="module")
def findings(run: Run) -> Findings:
    return analyse([run])


@pytest.mark.slow
def test_kernels_stand_in_the_order_of_what_the_network_is_worth_to_them(findings: Findings):
    found = RATIOS.of(findings)
    assert [one.workload.short for one in found] == ["IS.W", "CG.W", "EP.W"]
    assert {(one.slower, one.faster) for one in found} == {("fast-ethernet", "myrinet")}
    for one in found:
        assert one.low is not None
        assert one.high is not None
        assert one.low < SLOWER[benchmark(one)] < one.high
        assert one.launches == 8
    assert found[0].verdict is Verdict.B_FASTER
    assert not found[-1].verdict.is_decided
    for one, following in pairwise(found):
        assert one.lead is not None
        assert one.lead.low is not None
        assert one.lead.high is not None
        assert one.lead.value == pytest.approx(one.ratio / following.ratio)
        truth = SLOWER[benchmark(one)] / SLOWER[benchmark(following)]
        assert 1 < one.lead.low < truth < one.lead.high
    assert found[-1].lead is None


def test_the_order_is_the_same_seen_from_the_other_fabric(run: Run, findings: Findings):
    other = analyse([run], baseline="myrinet")
    for mine, theirs in zip(RATIOS.of(findings), RATIOS.of(other), strict=True):
        assert (mine.load, mine.slower) == (theirs.load, theirs.slower)
        assert mine.ratio == pytest.approx(theirs.ratio)
        assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high))
        assert (mine.lead is None) == (theirs.lead is None)
        if mine.lead is not None and theirs.lead is not None:
            assert mine.lead.low == pytest.approx(theirs.lead.low)


def test_rates_and_the_split_of_the_time_are_those_of_the_records(findings: Findings):
    found = next(one for one in LOADS.of(findings) if one.load == "EP.W on 4 ranks")
    assert found.level.value == pytest.approx(2.0, rel=0.02)
    assert found.mops_total == pytest.approx(500.0, rel=0.02)
    assert found.mops_per_process == pytest.approx(125.0, rel=0.02)
    assert found.communication_share == pytest.approx(COMMUNICATION)
    assert found.calls == {"MPI_Wait": pytest.approx(COMMUNICATION)}


def test_speed_up_is_over_the_fewest_ranks(findings: Findings):
    found = {(one.fabric, one.subject): one for one in SPEED_UPS.of(findings)}
    fast = found["myrinet", "IS.W"]
    assert (fast.fewest, fast.ranks) == (1, 4)
    assert fast.times.value == pytest.approx(SPEED_UP, rel=0.02)
    assert found["fast-ethernet", "IS.W"].times.value == pytest.approx(SPEED_UP / 3.0, rel=0.02)


@pytest.mark.slow
def test_a_wrong_result_is_never_compared(tmp_path: Path):
    findings = analyse([kernel_run(tmp_path / "run", wrong="IS")])
    assert {benchmark(one) for one in LOADS.of(findings)} == {"EP", "CG"}
    assert any("IS.W" in warning.text for warning in findings.warnings)


@pytest.mark.slow
def test_a_pair_that_was_measured_hours_apart_leaves_out_itself_and_no_other_kernel_of_its_block(tmp_path: Path):
    run = kernel_run(tmp_path / "run")
    start = min(one.summary.header.started_unix_ns for one in run.launches if one.summary.header is not None)
    for launch in run.launches:
        path = launch.directory / "launch.json"
        summary = json.loads(path.read_text())
        is_late = launch.block == 3 and launch.fabric == "myrinet" and launch.launch_id.endswith("-is.W.4")
        summary["header"]["started_unix_ns"] = start + (3_600_000_000_000 if is_late else 0)
        summary["footer"]["finished_unix_ns"] = summary["header"]["started_unix_ns"]
        path.write_text(json.dumps(summary))
    findings = analyse([Run.open(run.path)])
    pairs = {one.variant: one.launches for one in findings.cells}
    assert pairs.pop("IS.W 4 ranks") == 7
    assert set(pairs.values()) == {8}
    (text,) = (one.text for one in findings.warnings if "apart" in one.text)
    assert text.startswith("the halves of 1 of ")


def test_rates_are_normalised_to_another_run_on_its_fewest_ranks(run: Run):
    reference = reference_run(run)
    assert reference.seconds["EP.W"] == pytest.approx(SECONDS["EP"] * SPEED_UP, rel=0.02)
    normalised = LOADS.of(analyse([run], reference=reference))
    found = next(one for one in normalised if one.load == "EP.W on 4 ranks")
    assert found.of_reference == pytest.approx(SPEED_UP, rel=0.02)


def test_the_headline_answers_with_the_kernels_where_nothing_else_was_run(findings: Findings):
    assert findings.headline.sentence.startswith("myrinet is faster in 2 of 3 effects: IS.W 3.0 times quicker (")
    assert ", CG.W " in findings.headline.sentence
    assert [effect.what for effect in findings.headline.effects] == [
        "IS.W on 4 ranks",
        "EP.W on 4 ranks",
        "CG.W on 4 ranks",
    ] or {effect.what for effect in findings.headline.effects} == {
        "IS.W on 4 ranks",
        "CG.W on 4 ranks",
        "EP.W on 4 ranks",
    }


def test_the_section_says_which_kernel_gains_most_and_which_least(findings: Findings):
    line, *_ = workload_lines(findings)
    assert line == "IS.W (3.00 times) gains most by myrinet over fast-ethernet; EP.W (1.000 times) the least."


@pytest.mark.slow
def test_kernels_that_gain_as_much_are_named_together(tmp_path: Path):
    line, *_ = workload_lines(analyse([kernel_run(tmp_path / "run", gains={**SLOWER, "CG": SLOWER["IS"]})]))
    assert {
        *line.partition(" gain most by myrinet over fast-ethernet (their order is not settled); ")[0].split(" and ")
    } == {
        "IS.W (3.00 times)",
        "CG.W (3.00 times)",
    }
    assert line.endswith("; EP.W (1.000 times) the least.")


@pytest.mark.slow
def test_kernels_that_gain_as_little_are_named_together(tmp_path: Path):
    line, *_ = workload_lines(analyse([kernel_run(tmp_path / "run", gains={**SLOWER, "CG": SLOWER["EP"]})]))
    assert line.startswith("IS.W (3.00 times) gains most by myrinet over fast-ethernet; ")
    assert line.partition("; ")[2].startswith(("EP.W (1.00", "CG.W (1.00"))
    assert line.endswith("the least, not told apart.")


@pytest.mark.slow
def test_two_runs_have_no_blocks_to_tell_an_order_by(tmp_path: Path, run: Run):
    before = kernel_run(tmp_path / "run")
    found = analyse([before, run])
    assert RATIOS.of(found)
    assert all(one.lead is None and not one.is_settled for one in RATIOS.of(found))
    assert not any("most" in line or "least" in line for line in workload_lines(found))


def test_the_study_of_2000_stands_beside_the_same_fabrics(findings: Findings):
    assert len(npb_study_table(findings).rows) == 7


@pytest.mark.slow
def test_every_format_and_figure_shows_kernels(findings: Findings):
    assert {"workload-ratios", "kernel-split", "speed-up"} <= set(present(findings))
    for name in ("html", "markdown", "text", "json"):
        written = FORMATS[name]
        assert isinstance(written, Format)
        assert b"IS.W on 4 ranks" in written.render(findings) or name == "json", name


@pytest.mark.slow
def test_a_dossier_of_kernels_alone_has_no_empty_chapter_on_message_sizes(findings: Findings):
    html = FORMATS["html"]
    assert isinstance(html, Format)
    page = html.render(findings)
    assert b"#sizes" not in page
    assert b'id="sizes"' not in page
    assert 'id="sizes"' in page_of(example_findings)


@pytest.mark.slow
def test_a_run_without_kernels_is_no_reference(tmp_path: Path):
    empty = kernel_run(tmp_path / "run", wrong="IS")
    for launch in (tmp_path / "run/launches").iterdir():
        if "is.W" not in launch.name:
            for file in launch.iterdir():
                file.unlink()
    with pytest.raises(UsageError):
        reference_run(Run.open(empty.path))


def test_what_tells_kernels_apart_are_parameters_and_no_text(findings: Findings):
    for one in findings.cells:
        assert one.workload is not None
        known = dict(one.workload.parameters)
        assert (
            one.variant
            == f"{known['benchmark']}.{known['class']} {one.workload.ranks} rank{'s' * (one.workload.ranks > 1)}"
        )
