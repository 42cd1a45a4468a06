"""What is said of applications, in runs whose truth is known: a rate that is half on the slow fabric, another result there."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.change import changes_of
from fabricbench.analysis.findings import Findings, Verdict, WorkloadName
from fabricbench.analysis.gate import check_regressions
from fabricbench.analysis.pairing import pair
from fabricbench.analysis.sides import read_sides
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import Standing
from fabricbench.chapters.decision import DECISION
from fabricbench.chapters.workload_tables import (
    FIGURE_RATIOS,
    FIGURES,
    LOADS,
    PRICES,
    RATIOS,
    figure_ratio_table,
    figure_table,
    ratio_table,
    result_table,
)
from fabricbench.cli.check_text import render as checked
from fabricbench.cli.compare_text import render as compared
from fabricbench.cli.output import OutputFormat as Form
from fabricbench.cli.show import _text as shown
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.record.account import account_of
from fabricbench.record.decision_table import DecisionTable
from fabricbench.record.export import sample_scans, summary_frame
from fabricbench.record.launch import LaunchFacts, write_launch
from fabricbench.record.lines import RankInfo
from fabricbench.record.manifest import Manifest, PlannedLaunch, write_manifest
from fabricbench.record.provenance import Proof
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import Failed, LaunchOfWorkload, WorkloadPart, WorkloadResult, record_of
from fabricbench.report.comma_separated import findings_csv, flat
from fabricbench.report.figures import present
from fabricbench.report.formats import FORMATS, FigureFormat
from fabricbench.table import rows_csv
from fabricbench.testbed.model import Node

BLOCKS = 12
LU = {
    "kind": "command",
    "name": "lu",
    "command": ["lu", "{n}"],
    "parameters": {"n": [800]},
    "figure": [
        {"name": "LU", "regex": "(x)", "unit": "MFLOP/s", "better": "higher"},
        {"name": "solve", "regex": "(x)", "unit": "ms", "better": "lower"},
    ],
    "success": {"found": ["x"]},
}


def application_run(
    path: Path,
    *,
    wrong_on: str = "",
    energies: tuple[str, str] = ("1", "1"),
    fixed: Mapping[str, str] = {},
    fixed_on: Mapping[str, Mapping[str, str]] = {},
    placed: Callable[[str, int], tuple[RankInfo, ...]] = lambda _fabric, _block: (),
    sizes: tuple[int, ...] = (800,),
    of_it: float = 1.0,
    is_of_earlier_version: bool = False,
    without_time: tuple[int, ...] = (),
    seed: int = 3,
    steps: tuple[float, float] | None = None,
    **keys: Any,
) -> Run:
    """Blocks on two fabrics: 400 and 800 MFLOP/s, a solution in 0.3 and 0.1 s, half the time in MPI, one percent of noise.

    At n = 800, that is: the rate grows with it. `of_it` is the share of all rates that is reached, `fixed_on` what must not differ
    on each fabric, `placed` where the ranks of a block are on one. `steps` are what the last digits of rate and solution count.
    """
    testbed = plan_lab("four", 4, parse_fabrics("fast-ethernet,myrinet"), [0, 1]).testbed()
    weighed = {"decision": {"weight": [{"workload": "lu"}]}}
    lu = {**LU, "parameters": {"n": list(sizes)}, **keys}
    campaign = campaign_of({"campaign": {"blocks": BLOCKS}, "workload": [lu], **weighed}, "lu.toml")
    plan = plan_run(campaign, testbed, seed=1)
    random = np.random.default_rng(seed)
    planned = tuple(PlannedLaunch(**one.model_dump(include=set(PlannedLaunch.model_fields))) for one in plan.launches)
    path.mkdir()
    manifest = Manifest(campaign_name="lu", testbed=testbed, seed=1, planned=planned)
    write_manifest(path, manifest.model_copy(update={"campaign": campaign.model_dump(mode="json")}))
    RunDirectory(path).write_plan(StoredPlan(campaign=campaign, plan=plan, venue=Standing(given=testbed)))
    for launch in plan.launches:
        start = launch.workload
        assert start is not None
        is_slow = launch.fabric == "fast-ethernet"
        rate = float((400.0 if is_slow else 800.0) * np.exp(random.normal(0.0, 0.01)))
        rate *= of_it * float(dict(start.parameters)["n"]) / 800
        solve = float((0.3 if is_slow else 0.1) * np.exp(random.normal(0.0, 0.01)))
        if launch.block in without_time and is_slow:
            solve = 0.0
        if steps is not None:
            rate, solve = (max(round(value / step), 1) * step for value, step in zip((rate, solve), steps, strict=True))
        of_rate, of_solve = steps or (None, None)
        told = WorkloadResult(
            program="lu",
            seconds=(5.0,),
            rate=rate if start.figure.better == "higher" else None,
            printed_step=of_rate,
            metric=start.figure.metric,
            ranks=placed(launch.fabric, launch.block),
            values={"figure.solve": solve, "communication_share": 0.5},
            failed=Failed("wrong result: residual") if launch.fabric == wrong_on else None,
            started_unix_ns=launch.block * 10**10,
            finished_unix_ns=launch.block * 10**10 + 1,
        )
        directory = path / "launches" / launch.launch_id
        directory.mkdir(parents=True)
        solved = start.figure.model_copy(update={"name": "solve", "unit": "s", "better": "lower"})
        write_launch(
            directory,
            record_of(told, LaunchOfWorkload(launch.launch_id, launch.fabric, plan.cells[launch.cells[0]])),
            facts=LaunchFacts(block=launch.block, position=launch.position, proof=Proof.PROVEN),
            workload=WorkloadPart(
                kind="command",
                name=start.name,
                ranks=start.ranks,
                parameters=start.parameters,
                figures=(start.figure.found(rate, of_rate), solved.found(solve, of_solve))
                if told.failed is None
                else (),
                fixed={"energy": energies[is_slow], **fixed, **fixed_on.get(launch.fabric, {})},
                definition={} if is_of_earlier_version else dict(start.definition),
            ),
        )
    return Run.open(path)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return analyse([application_run(tmp_path_factory.mktemp("applications") / "run")])


def test_a_rate_is_compared_as_a_rate_and_a_further_time_explains(findings: Findings):
    (rate,), (solve,) = RATIOS.of(findings), FIGURE_RATIOS.of(findings)
    assert (rate.faster, rate.slower, rate.verdict) == ("myrinet", "fast-ethernet", Verdict.B_FASTER)
    assert rate.ratio == pytest.approx(2.0, rel=0.02)
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < 2.0 < rate.high
    assert (solve.figure, solve.better, solve.worse) == ("solve", "myrinet", "fast-ethernet")
    assert solve.times.value == pytest.approx(3.0, rel=0.02)
    (cell,) = findings.cells
    assert (cell.metric, cell.unit, cell.value_b) == ("work_rate", "MFLOP/s", pytest.approx(800, rel=0.02))
    assert cell.verdict is Verdict.B_FASTER


def test_what_printed_digits_hide_is_no_difference_of_a_figure_nor_of_a_further_one(tmp_path: Path):
    found = analyse([application_run(tmp_path / "run", steps=(400.0, 0.1))])
    (cell,) = found.cells
    assert (cell.ratio, cell.printed_step, cell.p_value) == (pytest.approx(2.0), 400.0, 1.0)
    assert cell.verdict is Verdict.NOT_RESOLVABLE
    (rate,), (solve,) = RATIOS.of(found), FIGURE_RATIOS.of(found)
    assert rate.verdict is Verdict.NOT_RESOLVABLE
    assert solve.times.low is not None
    assert solve.times.low < 3.0 * (0.25 / 0.3) * (0.1 / 0.15) * 1.01
    old = analyse([application_run(tmp_path / "old", steps=None)])
    assert old.cells[0].printed_step is None


def test_the_first_screen_names_it_with_its_unit_and_the_sentence_says_who_is_faster(findings: Findings):
    (effect,) = findings.headline.effects
    assert effect.what == "lu on 4 ranks (MFLOP/s)", "there is no other lu that its parameters would tell it from"
    assert "myrinet" in findings.headline.sentence
    decision = DECISION.first_of(findings)
    assert decision is not None
    assert decision.tests[0].what == "lu, n=800, on 4 ranks (MFLOP/s)"


def test_the_sentence_says_of_a_rate_that_it_reaches_it_and_names_its_unit(findings: Findings):
    sentence = findings.headline.sentence
    found = re.fullmatch(r"myrinet is faster: lu 2\.0 times the rate \((\d+) instead of (\d+) MFLOP/s\)\.", sentence)
    assert found, sentence
    assert [float(one) for one in found.groups()] == pytest.approx([800, 400], rel=0.02)


def test_the_sentence_names_the_parameter_that_differs(tmp_path: Path):
    sentence = analyse([application_run(tmp_path / "run", sizes=(800, 1600))]).headline.sentence
    first, second = (
        rf"lu n=([\d,]+) [\d.]+ times{words} \(([\d,]+) instead of ([\d,]+) MFLOP/s\)" for words in (" the rate", "")
    )
    found = re.fullmatch(rf"myrinet is faster: {first}, {second}\.", sentence)
    assert found, sentence
    assert {found[1], found[4]} == {"800", "1600"}
    for n, better, worse in (found.groups()[:3], found.groups()[3:]):
        assert [float(one.replace(",", "")) for one in (better, worse)] == pytest.approx(
            [float(n), float(n) / 2], rel=0.02
        )


@pytest.mark.slow
def test_a_change_of_a_rate_is_told_with_its_unit(tmp_path: Path):
    before, after = application_run(tmp_path / "before"), application_run(tmp_path / "after", of_it=0.5)
    assert re.search(
        r" slower: lu 2\.0 times slower \(\d+ before, \d+ MFLOP/s after\)\.",
        analyse([before, after]).headline.sentence,
    )
    report = check_regressions([before], [after], maximum=0.05, confidence=0.95)
    assert re.search(r" \d+ MFLOP/s +\d+ MFLOP/s ", checked(report, Form.TEXT))
    rows = rows_of(checked(report, Form.CSV))
    assert {(row["ranks"], row["unit"], row["origin"]) for row in rows} == {("4", "MFLOP/s", "emulated")}
    assert json.loads(rows[0]["parameters"]) == PARAMETERS


def test_compare_and_show_have_the_unit_of_the_program(tmp_path: Path, findings: Findings):
    assert re.search(r" [\d.]+ MFLOP/s \([\d.]+ to [\d.]+ MFLOP/s\)", compared(findings, Form.TEXT))
    run = application_run(tmp_path / "run")
    assert set(summary_frame(run)["unit"]) == {"MFLOP/s"}
    assert {unit for scan in sample_scans(run) for unit in scan.collect()["unit"]} == {"MFLOP/s"}
    assert re.search(r" \d+ MFLOP/s ", shown(run, account_of(run), summary_frame(run)))


def test_tables_have_every_figure_with_its_unit_and_the_share_of_communication(findings: Findings):
    name = "lu, n=800, on 4 ranks (MFLOP/s)"
    rows = result_table(findings).rows
    assert [(row[0], row[1], row[4]) for row in rows] == [
        (name, "fast-ethernet", "50.0 %"),
        (name, "myrinet", "50.0 %"),
    ]
    assert all(row[2].startswith("LU: ") and "MFLOP/s (" in row[2] for row in rows)
    further = figure_table(findings).rows
    assert [row[:3] for row in further] == [(name, "fast-ethernet", "solve"), (name, "myrinet", "solve")]
    assert all(" s (" in row[3] for row in further)
    assert "myrinet faster" in ratio_table(findings).rows[0]
    assert [row[:3] for row in figure_ratio_table(findings).rows] == [(name, "solve", "myrinet over fast-ethernet")]


PARAMETERS = {"workload": "lu", "n": 800, "figure": "LU", "unit": "MFLOP/s"}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_parameters_as_an_object_in_one_column(findings: Findings):
    tables = findings_csv(findings)
    (named,) = rows_of(tables["comparisons"])
    assert (named["ranks"], json.loads(named["parameters"])) == ("4", PARAMETERS)
    for table in ("workloads", "workload-figures"):
        assert [json.loads(row["parameters"]) for row in rows_of(tables[table])] == [PARAMETERS] * 2
    assert float(rows_of(tables["workload-figure-ratios"])[0]["times"]) == pytest.approx(3.0, rel=0.02)


@pytest.mark.slow
def test_every_format_writes_an_application_that_is_judged_by_a_time(tmp_path: Path):
    loop = [{"name": "loop", "regex": "(x)", "unit": "s", "better": "lower"}]
    old, new = (application_run(tmp_path / name, figure=loop) for name in ("old", "new"))
    found = analyse([old])
    for name, form in FORMATS.items():
        if isinstance(form, FigureFormat):
            assert all(form.render(found, figure) for figure in present(found))
        elif name != "loggops":
            assert form.render(found)
    for form in Form:
        assert compared(found, form)
        assert checked(check_regressions([old], [new], maximum=0.05), form)
    assert Findings.model_validate_json(found.model_dump_json()) == found
    (named,) = rows_of(compared(found, Form.CSV))
    assert (named["judged_by"], "time" in named) == ("loop", False)
    assert {row["judged_by"] for row in rows_of(findings_csv(found)["workloads"])} == {"loop"}
    gate = rows_of(checked(check_regressions([old], [new], maximum=0.05), Form.CSV))
    assert {(row["judged_by"], "time" in row) for row in gate} == {("loop", False)}


def test_whatever_a_parameter_holds_is_read_back():
    name = WorkloadName(ranks=2, parameters=(("layer", "b=1;c"), ("n", 1), ("quoted", 'a "b", c')))
    (row,) = rows_of(rows_csv([flat({"workload": name.model_dump(mode="json")})]))
    assert row["ranks"] == "2"
    assert json.loads(row["parameters"]) == dict(name.parameters)


def test_compare_writes_the_csv_of_the_report(findings: Findings):
    assert compared(findings, Form.CSV) + "\n" == findings_csv(findings)["comparisons"]


def test_csv_says_of_every_fabric_that_a_row_names_that_it_is_emulated(findings: Findings):
    columns = {
        "comparisons": ("origin_a", "origin_b"),
        "workload-figures": ("origin",),
        "workload-figure-ratios": ("origin_worse", "origin_better"),
        "workloads": ("origin",),
        "workload-ratios": ("origin_slower", "origin_faster"),
    }
    for name, text in findings_csv(findings).items():
        assert {row[column] for row in rows_of(text) for column in columns[name]} == {"emulated"}, name
    (told,) = json.loads(compared(findings, Form.JSON))
    assert (told["origin_a"], told["origin_b"]) == ("emulated", "emulated")


def test_a_wrong_result_is_never_compared(tmp_path: Path):
    found = analyse([application_run(tmp_path / "run", wrong_on="fast-ethernet")])
    assert {one.fabric for one in LOADS.of(found)} == {"myrinet"}
    assert not found.cells
    assert any("wrong result: residual" in warning.text for warning in found.warnings)


def test_work_that_was_not_the_same_on_all_fabrics_is_a_warning(tmp_path: Path):
    found = analyse([application_run(tmp_path / "run", energies=("-4.62", "-4.63"))])
    assert any(
        "its energy is not the same in all launches (-4.62 on myrinet; -4.63 on fast-ethernet)" in one.text
        or "its energy is not the same in all launches (-4.63 on fast-ethernet; -4.62 on myrinet)" in one.text
        for one in found.warnings
    )


FACTS = ("program sha256", "MPI", "threads", "file in.dat sha256", "energy", "success and verification")


def test_what_did_other_work_on_one_fabric_is_not_compared_and_it_is_said_why(tmp_path: Path):
    facts = {fabric: dict.fromkeys(FACTS, fabric) for fabric in ("myrinet", "fast-ethernet")}
    found = analyse([application_run(tmp_path / "run", fixed_on=facts)])
    told = [
        one.text for one in found.warnings if "more differs than the network, so nothing of it is compared" in one.text
    ]
    assert sorted(text.removeprefix("its ").split(" is not the same")[0] for text in told) == sorted(FACTS)
    assert all(one.verdict is None or one.verdict.leader is None for one in found.cells)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_change_counts_work_that_was_not_the_same_as_unknown(tmp_path: Path, is_same: bool):
    facts = {fabric: {"energy": "-4.62" if is_same else fabric} for fabric in ("myrinet", "fast-ethernet")}
    run = application_run(tmp_path / "run", fixed_on=facts)
    sides = read_sides([run])
    found = changes_of([pair(*sides)], analyse([run]).cells, lambda _: Verdict.A_FASTER)
    assert (found.slower > 0, found.unknown > 0) == (is_same, not is_same)


def on(*hosts: str, processors: int = 1) -> tuple[RankInfo, ...]:
    cpus = tuple(range(processors))
    return tuple(RankInfo(rank=rank, host=host, pid=1, cpus=cpus) for rank, host in enumerate(hosts))


USUAL = on("n0", "n1", "n2", "n3")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (on("n0", "n1", "n2", "n2"), "n0 n1 n2 n2, 1 processor each on fast-ethernet"),
        (on("n0", "n1", "n2", "n3", processors=4), "n0 n1 n2 n3, 4 processors each on fast-ethernet"),
    ],
)
def test_ranks_that_are_elsewhere_on_one_fabric_are_not_compared(
    tmp_path: Path, other: tuple[RankInfo, ...], said: str
):
    run = application_run(tmp_path / "run", placed=lambda fabric, _: USUAL if fabric == "myrinet" else other)
    found = analyse([run])
    (text,) = [one.text for one in found.warnings if "its placement is not the same in all launches" in one.text]
    assert said in text
    assert all(one.verdict is None or one.verdict.leader is None for one in found.cells)


@pytest.mark.parametrize(
    ("other", "is_compared"), [(on("n4", "n5", "n6", "n7"), True), (on("n4", "n5", "n6", "n6"), False)]
)
def test_ranks_on_the_nodes_of_another_set_are_compared_where_they_are_shared_out_alike(
    tmp_path: Path, other: tuple[RankInfo, ...], is_compared: bool
):
    run = application_run(tmp_path / "run", placed=lambda fabric, _: USUAL if fabric == "myrinet" else other)
    sets = {"myrinet": ("n0", "n1", "n2", "n3"), "fast-ethernet": ("n4", "n5", "n6", "n7")}
    fabrics = [one.model_copy(update={"nodes": sets[one.name]}) for one in run.manifest.testbed.fabrics]
    nodes = tuple(Node(name=f"n{number}") for number in range(8))
    testbed = run.manifest.testbed.model_copy(update={"fabrics": tuple(fabrics), "nodes": nodes})
    write_manifest(run.path, run.manifest.model_copy(update={"testbed": testbed}))
    found = analyse([Run.open(run.path)])
    assert any("its placement is not the same" in one.text for one in found.warnings) is not is_compared
    assert ([one.verdict for one in found.cells] == [Verdict.B_FASTER]) is is_compared


def test_ranks_that_are_elsewhere_from_one_block_on_are_compared_within_each(tmp_path: Path):
    """A run goes on without a node that fails."""
    later = on("n0", "n2", "n3", "n0")
    found = analyse(
        [application_run(tmp_path / "run", placed=lambda _, block: USUAL if block < BLOCKS // 2 else later)]
    )
    assert not any("placement" in one.text for one in found.warnings)
    assert [one.verdict for one in found.cells] == [Verdict.B_FASTER]


def test_cells_on_different_numbers_of_ranks_are_never_paired(tmp_path: Path):
    found = analyse([application_run(tmp_path / "run", ranks=[2, 4])])
    assert len(found.cells) == 2
    assert {one.workload.ranks for one in found.cells if one.workload is not None} == {2, 4}


def test_a_number_that_is_called_like_what_was_asked_for_is_not_taken_for_it(tmp_path: Path):
    found = analyse([application_run(tmp_path / "run", fixed={"command": "7"})])
    assert not any("its command is not the same" in warning.text for warning in found.warnings)


def test_a_further_figure_that_is_nothing_in_some_blocks_has_no_ratio_of_the_others(tmp_path: Path):
    found = analyse([application_run(tmp_path / "run", without_time=(2,))])
    assert not FIGURE_RATIOS.of(found)
    assert {one.figure for one in FIGURES.of(found)} == {"solve"}


@pytest.mark.slow
def test_a_bandwidth_or_a_latency_is_no_work_and_has_no_price_and_no_decision_on_money(tmp_path: Path):
    priced = {"node_price": 3000, "price": {"fast-ethernet": 20, "myrinet": 1200}, "network_share": None}
    table = DecisionTable.model_validate({name: value for name, value in priced.items() if value is not None})
    rate = {"name": "LU", "regex": "(x)", "better": "higher"}

    def nodes(_fabric: str, _block: int) -> tuple[RankInfo, ...]:
        return on("n0", "n1", "n2", "n3")

    for unit, is_work in (("MFLOP/s", True), ("MB/s", False)):
        run = application_run(tmp_path / unit.replace("/", "-"), figure=[{**rate, "unit": unit}], placed=nodes)
        found = analyse([run], decision=table)
        assert bool(PRICES.of(found)) == is_work
        decision = DECISION.first_of(found)
        assert decision is not None
        assert all((one.cost_of_work is not None) == is_work for one in decision.fabrics)
        assert any("network tests do not tell what a job gains" in note for note in decision.notes) != is_work
        levels = LOADS.of(found)
        assert levels
        assert all((one.seconds is not None) == is_work for one in levels)
