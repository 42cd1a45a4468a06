"""What is said of workloads together, in runs whose truth is known: computing, what bytes take on each wire, 1 % of noise."""

from __future__ import annotations

import csv
import io
from ipaddress import IPv4Network
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.expectation import (
    FabricCapability,
    RunTraffic,
    agreement_of,
    expect,
    expected_log_ratios,
    payload_of,
)
from fabricbench.analysis.findings import Findings, Interval, Verdict, WorkloadName
from fabricbench.analysis.findings.loads import Agreement, Limit, LoadOnFabric, LoadPrice, LoadRatio, LoadSpeedUp
from fabricbench.analysis.limits import sharing
from fabricbench.analysis.loads import growth_of_work
from fabricbench.chapters.chapter import rows_of
from fabricbench.chapters.decision import DECISION
from fabricbench.chapters.workload_tables import expectation_table, ratio_table, speed_up_table, workload_tables
from fabricbench.chapters.workloads import workload_lines
from fabricbench.record.decision_table import DecisionTable
from fabricbench.record.lines import InterfaceBytes, RankInfo
from fabricbench.record.store import Run
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.formats import FORMATS, Format
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.wire import Wire
from support.workload_runs import BLOCKS, GRIDS, KERNELS, LINPACK, WIRES, Truth, run_of_workloads, workload


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_workloads(tmp_path_factory.mktemp("loads") / "run")


@pytest.fixture(scope="module")
def findings(run: Run) -> Findings:
    prices = {"fast-ethernet": {"per_node": 50.0}, "myrinet": {"per_node": 1050.0}}
    return analyse(
        [run], decision=DecisionTable.model_validate({"node_price": 950.0, "currency": "EUR", "price": prices})
    )


def ratios(findings: Findings) -> dict[str, LoadRatio]:
    return {name_of(one): one for one in rows_of(findings, "workload-ratios", LoadRatio)}


def name_of(one: LoadRatio) -> str:
    return one.workload.name or one.load.partition(".")[0]


@pytest.mark.slow
def test_all_workloads_stand_in_one_order_whatever_they_are_judged_by(findings: Findings):
    found = list(ratios(findings).values())
    assert [name_of(one) for one in found] == ["FT", "hpl", "CG", "hpcg", "EP"]
    assert {(one.slower, one.faster) for one in found} == {("fast-ethernet", "myrinet")}
    assert all(one.ratio >= following.ratio for one, following in pairwise(found))
    assert found[0].is_settled
    assert found[-1].lead is None


def test_a_bulk_load_comes_near_the_ratio_of_rates_and_one_that_only_computes_is_at_one(findings: Findings):
    found = ratios(findings)
    rates = WIRES["myrinet"] / WIRES["fast-ethernet"]
    for name in ("FT", "EP"):
        truth = KERNELS[name].seconds("fast-ethernet", 4) / KERNELS[name].seconds("myrinet", 4)
        assert found[name].ratio == pytest.approx(truth, rel=0.03)
    assert 0.5 * rates < found["FT"].ratio < rates
    low, high = found["EP"].low, found["EP"].high
    assert low is not None
    assert high is not None
    assert low < 1 < high
    assert found["FT"].verdict is Verdict.B_FASTER


def test_what_bytes_let_expect_is_met_where_nothing_is_overlapped_and_is_too_much_where_all_is(findings: Findings):
    found = ratios(findings)
    readings = {name: one.expectation.agreement for name, one in found.items() if one.expectation is not None}
    assert readings == {
        "FT": Agreement.WITHIN,
        "CG": Agreement.LESS,
        "EP": Agreement.WITHIN,
        "hpl": Agreement.WITHIN,
        "hpcg": Agreement.WITHIN,
    }
    told = found["FT"].expectation
    assert told is not None
    assert told.origin == "predicted"
    assert told.payload_bytes == pytest.approx(2e7)
    assert told.network_seconds_slower == pytest.approx(8 * 2e7 / WIRES["fast-ethernet"], rel=0.01)
    assert told.network_seconds_faster == pytest.approx(8 * 2e7 / WIRES["myrinet"], rel=0.01)
    assert told.expected_seconds_slower == pytest.approx(KERNELS["FT"].seconds("fast-ethernet", 4), rel=0.03)
    assert told.messages is None  # nothing here tells what a message takes


def test_the_ratio_of_times_is_one_plus_what_the_slower_wire_takes_more():
    fast, slow = FabricCapability(8e9, 1e-6), FabricCapability(8e8, 1e-5)
    run = RunTraffic(seconds=2.0, payload_bytes=1e9, messages=1e5, bytes_from="")
    # On the wires 1 and 10 s, and messages 0.1 and 1 s.
    assert np.exp(expected_log_ratios([run], fast, slow))[0] == pytest.approx((2.0 - 1.1 + 11.0) / 2.0)
    assert np.exp(expected_log_ratios([run], slow, slow))[0] == pytest.approx(1.0)
    alone = RunTraffic(seconds=2.0, payload_bytes=0, messages=None, bytes_from="")
    assert np.exp(expected_log_ratios([alone], fast, slow))[0] == pytest.approx(1.0)
    bulk = RunTraffic(seconds=1.0, payload_bytes=1e9, messages=0, bytes_from="")
    assert np.exp(expected_log_ratios([bulk], fast, slow))[0] == pytest.approx(10.0)


def test_messages_count_where_both_fabrics_tell_what_one_takes():
    runs = {
        block: RunTraffic(seconds=1.0 + 0.01 * block, payload_bytes=0, messages=1e4, bytes_from="")
        for block in range(6)
    }
    measured = {block: float(np.log(1 + 1 / runs[block].seconds)) for block in runs}
    told = expect(runs, FabricCapability(1e9, 1e-5), FabricCapability(1e9, 1.1e-4), measured, 0.02, 0.95)
    assert told is not None
    assert (told.messages, told.agreement) == (1e4, Agreement.WITHIN)
    assert told.ratio.value == pytest.approx(2.0, rel=0.03)
    assert (told.network_seconds_faster, told.network_seconds_slower) == pytest.approx((0.1, 1.1))
    silent = expect(runs, FabricCapability(1.1e9, None), FabricCapability(1e9, 1.1e-4), measured, 0.02, 0.95)
    assert silent is not None
    assert (silent.messages, silent.ratio.value) == (None, pytest.approx(1.0))
    alike = expect(runs, FabricCapability(1e9, None), FabricCapability(1e9, 1.1e-4), measured, 0.02, 0.95)
    assert alike is None  # of wires alike, and messages untold, bytes say nothing
    assert expect(runs, None, FabricCapability(1e9, None), measured, 0.02, 0.95) is None
    assert expect({}, FabricCapability(1e9, None), FabricCapability(1e9, None), measured, 0.02, 0.95) is None


def test_a_run_that_would_take_less_than_nothing_has_no_expected_ratio():
    run = RunTraffic(seconds=1.0, payload_bytes=1e9, messages=None, bytes_from="")
    assert np.isnan(expected_log_ratios([run], FabricCapability(8e8, None), FabricCapability(8e9, None)))[0]


def test_measured_and_expected_are_compared_block_by_block_since_both_share_the_run_on_the_faster_fabric():
    fast, slow = FabricCapability(1e9, 1e-5), FabricCapability(1e9, 1.1e-4)
    seconds = dict(enumerate((0.6, 1.0, 1.7, 0.8, 1.3, 0.7)))
    runs = {block: RunTraffic(value, payload_bytes=0, messages=1e4, bytes_from="") for block, value in seconds.items()}
    slower = {block: (value + 1.0) * 1.05 for block, value in seconds.items()}
    measured = {block: float(np.log(slower[block] / value)) for block, value in seconds.items()}
    told = expect(runs, fast, slow, measured, 0.02, 0.95)
    assert told is not None
    assert told.measured_over_expected is not None
    assert told.measured_over_expected.low == pytest.approx(
        1.05
    )  # however much T scatters, and the expected ratio with it
    assert told.ratio.low is not None
    assert told.ratio.low < told.ratio.value / 1.1
    assert told.agreement is Agreement.MORE
    without = expect(runs, fast, slow, {0: measured[0], 1: measured[1]}, 0.02, 0.95)
    assert without is not None
    assert without.agreement is Agreement.UNKNOWN
    assert expect(runs, fast, slow, {}, 0.02, 0.95).measured_over_expected is None  # type: ignore[union-attr]


def test_where_the_faster_fabric_has_the_slower_wire_no_reading_is_given():
    runs = {
        block: RunTraffic(4.0 + 0.01 * block, payload_bytes=2e7, messages=None, bytes_from="") for block in range(6)
    }
    nothing = dict.fromkeys(runs, 0.001)
    told = expect(runs, FabricCapability(1e8, None), FabricCapability(1e9, None), nothing, 0.02, 0.95)
    assert told is not None
    assert told.agreement is Agreement.TURNED
    straight = expect(runs, FabricCapability(1e9, None), FabricCapability(1e8, None), nothing, 0.02, 0.95)
    assert straight is not None
    assert straight.agreement is Agreement.LESS


@pytest.mark.parametrize(
    ("over", "agreement"),
    [
        ((1.0, 0.99, 1.01), Agreement.WITHIN),
        ((1.01, 0.97, 1.05), Agreement.NOT_TOLD_APART),
        ((0.9, 0.8, 0.97), Agreement.LESS),
        ((1.074, 1.034, 1.115), Agreement.MORE),
        ((1.02, 1.01, 1.03), Agreement.NOT_TOLD_APART),  # more, perhaps by no more than the margin
        ((1.01, None, None), Agreement.UNKNOWN),
    ],
)
def test_only_what_lies_beyond_the_margin_is_more_or_less_and_only_what_lies_within_it_is_as_expected(
    over: tuple[float, float | None, float | None], agreement: Agreement
):
    value, low, high = over
    assert agreement_of(Interval(value=value, low=low, high=high), 0.02) is agreement


def test_the_payload_of_an_interface_is_the_busier_way_less_its_headers():
    fabric = Fabric(name="fe", interface="fe0", mtu=1500, wire=Wire(line_rate_bit_s=1e8))
    carried = {
        "fe0": InterfaceBytes(sent=1514, received=3 * 1514),
        "ctl0": InterfaceBytes(sent=10**9, received=0),
    }
    assert payload_of(carried, fabric, ()) == pytest.approx(3 * 1448)
    assert payload_of({"ctl0": carried["ctl0"]}, fabric, ()) is None
    uncounted = {"fe0": InterfaceBytes(sent=0, received=0, is_counted=False)}
    assert payload_of(uncounted, fabric, ()) is None


def test_the_interface_of_a_fabric_that_a_subnet_tells_is_the_one_that_rank_0_found():
    fabric = Fabric(name="fe", subnet=IPv4Network("10.1.0.0/24"), mtu=1500)
    carried = {
        "eno1": InterfaceBytes(sent=1514, received=3 * 1514),
        "ens2": InterfaceBytes(sent=10**9, received=0),
    }
    ranks = [
        RankInfo(rank=rank, host=f"n{rank}", pid=1, cpus=(0,), interface=name)
        for rank, name in enumerate(("eno1", "ens2"))
    ]
    assert payload_of(carried, fabric, ranks) == pytest.approx(3 * 1448)
    assert payload_of(carried, fabric, ()) is None


def test_speed_up_and_efficiency_tell_strong_from_weak(findings: Findings):
    found = {
        (one.workload.name or "npb", one.fabric, one.ranks): one
        for one in rows_of(findings, "workload-speed-up", LoadSpeedUp)
    }
    for fabric in WIRES:
        strong, weak = found["hpl", fabric, 4], found["hpcg", fabric, 4]
        assert (strong.is_weak, weak.is_weak, strong.nodes, strong.fewest) == (False, True, 4, 1)
        times = LINPACK.seconds(fabric, 1) / LINPACK.seconds(fabric, 4)
        assert strong.times.value == pytest.approx(times, rel=0.03)
        assert strong.efficiency.value == pytest.approx(times / 4, rel=0.03)
        weaker = Truth(4 * GRIDS.computing, GRIDS.payload).seconds(fabric, 4)
        assert weak.times.value == pytest.approx(4 * GRIDS.seconds(fabric, 1) / weaker, rel=0.03)
    assert ("hpl", "myrinet", 2) in found
    assert {row[3] for row in speed_up_table(findings).rows} == {"strong", "weak"}


def test_work_has_a_price_per_unit_where_nodes_have_one(findings: Findings):
    found = {(one.workload.name, one.fabric, one.nodes): one for one in rows_of(findings, "workload-prices", LoadPrice)}
    slow, fast = found["hpl", "fast-ethernet", 4], found["hpl", "myrinet", 4]
    assert (slow.cost, fast.cost, slow.per) == (4000, 8000, "Gflop/s")
    gain = LINPACK.seconds("fast-ethernet", 4) / LINPACK.seconds("myrinet", 4)
    assert fast.price.value / slow.price.value == pytest.approx(2 / gain, rel=0.03)
    assert slow.price.value == pytest.approx(4000 * LINPACK.seconds("fast-ethernet", 4), rel=0.03)
    kernels = [one for one in rows_of(findings, "workload-prices", LoadPrice) if one.per == "run an hour"]
    assert kernels


@pytest.mark.slow
def test_what_is_paid_once_is_shared_out_by_nodes_as_in_the_decision(run: Run):
    switch = {"per_node": 500.0, "fixed": 150_000.0}
    table = DecisionTable.model_validate(
        {"nodes": 32, "node_price": 3000.0, "price": {"fast-ethernet": 20.0, "myrinet": switch}}
    )
    findings = analyse([run], decision=table)
    prices = [one for one in rows_of(findings, "workload-prices", LoadPrice) if one.fabric == "myrinet"]
    decision = DECISION.first_of(findings)
    assert decision is not None
    whole = decision.fabrics[1].cost
    assert whole is not None
    assert whole.total == 32 * 3500 + 150_000
    assert prices
    assert all(one.cost == pytest.approx(one.nodes * whole.total / 32) for one in prices)


def test_a_workload_is_told_with_its_figure_its_time_and_its_communication(findings: Findings):
    found = {
        (one.workload.name, one.workload.ranks): one
        for one in rows_of(findings, "workloads", LoadOnFabric)
        if one.fabric == "fast-ethernet"
    }
    hpl = found["hpl", 4]
    assert (hpl.figure, hpl.unit, hpl.launches) == ("HPL", "Gflop/s", BLOCKS)
    assert hpl.seconds is not None
    assert hpl.seconds.value == pytest.approx(LINPACK.seconds("fast-ethernet", 4), rel=0.03)
    assert hpl.communication_share == pytest.approx(1 - 1.0 / LINPACK.seconds("fast-ethernet", 4), abs=0.03)


@pytest.mark.slow
def test_what_bounds_a_number_besides_the_fabric_stands_beside_it(tmp_path: Path, findings: Findings):
    assert ratios(findings)["FT"].limits == ()
    assert ratios(findings)["EP"].limits[0].what == "computes"
    assert any("gains less than its bytes say" in limit.what for limit in ratios(findings)["CG"].limits)
    crowded = analyse([run_of_workloads(tmp_path / "run", cpus=1, dropped=20)])
    limits = [one.words for one in ratios(crowded)["FT"].limits]
    assert limits[0] == "4 ranks share 1 processor"
    assert "fast-ethernet dropped frames, 160 of 16,000" in limits
    text = FORMATS["markdown"]
    assert isinstance(text, Format)
    assert "4 ranks share 1 processor" in text.render(crowded).decode()


def test_ranks_share_processors_only_on_one_machine():
    ranks = [RankInfo(rank=rank, host=f"n{rank}", pid=1, cpus=(0,)) for rank in range(4)]
    assert sharing(ranks, is_one_machine=True) == (4, 1)
    assert sharing(ranks, is_one_machine=False) is None
    apart = [one.model_copy(update={"cpus": (one.rank,)}) for one in ranks]
    assert sharing(apart, is_one_machine=True) is None
    untold = [one.model_copy(update={"cpus": ()}) for one in ranks]
    assert sharing(untold, is_one_machine=True) is None


@pytest.mark.slow
def test_every_format_shows_workloads_first_and_marks_what_is_predicted(findings: Findings):
    for name in ("markdown", "text", "html"):
        form = FORMATS[name]
        assert isinstance(form, Format)
        text = form.render(findings).decode()
        assert "predicted" in text
        assert "PREDICTED" in text
    markdown = FORMATS["markdown"]
    assert isinstance(markdown, Format)
    headings = [line for line in markdown.render(findings).decode().splitlines() if line.startswith("## ")]
    assert headings.index("## Workloads") < headings.index("## Fabrics")
    assert Findings.model_validate_json(findings.model_dump_json()) == findings
    rows = list(csv.DictReader(io.StringIO(findings_csv(findings)["workload-ratios"])))
    assert {row["expectation_origin"] for row in rows} == {"predicted"}
    assert all(row[3].startswith("predicted ") for row in ratio_table(findings).rows)
    assert len(expectation_table(findings).rows) == len(rows) == 5


@pytest.mark.slow
def test_of_unequal_work_there_is_no_ratio_and_no_place_in_the_order(tmp_path: Path):
    findings = analyse([run_of_workloads(tmp_path / "run", program_of={"fast-ethernet": "a1", "myrinet": "b2"})])
    found = ratios(findings)
    assert found["hpl"].void is not None
    assert "program sha256" in found["hpl"].void
    assert (found["hpl"].expectation, found["hpl"].is_settled) == (None, False)
    assert found["FT"].void is None
    (row,) = (row for row in ratio_table(findings).rows if row[0].startswith("hpl"))
    assert row[2] == "void"
    assert any("program sha256" in cell for cell in row)
    order, *_ = workload_lines(findings)
    assert "hpl" not in order


@pytest.mark.parametrize(
    ("few", "many", "has_rule", "growth"),
    [
        (workload("hpl", 1, grid="1x1"), workload("hpl", 4, grid="2x2"), False, 1),
        (workload("hpcg", 2), workload("hpcg", 6), False, 3),
        (workload("training-step", 1, grid="1x1x1"), workload("training-step", 4, grid="2x2x1"), False, 2),
        (workload("shared-data", 2), workload("shared-data", 4), False, 3),
        (workload("shared-data", 2, path="/nfs"), workload("shared-data", 4, path="/nfs"), False, 2),
        (workload("own", 2), workload("own", 8), True, 4),
    ],
)
def test_work_grows_with_ranks_with_replicas_or_not_at_all(
    few: WorkloadName, many: WorkloadName, has_rule: bool, growth: float
):
    assert growth_of_work(few, many, has_rule=has_rule) == growth


def test_the_sentence_names_who_gains_most_and_least(findings: Findings):
    order, note, limits = workload_lines(findings)
    assert order.startswith("FT.W (")
    assert "EP.W" in order
    assert note.startswith("Expected ratios are PREDICTED")
    assert "bound by hosts or overlapped: gains less than its bytes say (CG.W)" in limits


def test_what_is_not_shown_to_gain_is_not_said_to(findings: Findings):
    rows = [one.model_copy(update={"is_settled": False}) for one in rows_of(findings, "workload-ratios", LoadRatio)]
    last = rows[-1].model_copy(update={"verdict": Verdict.NOT_ENOUGH_DATA})
    unsettled = findings.model_copy(update={"chapters": {**findings.chapters, "workload-ratios": (*rows[:-1], last)}})
    order, *_ = workload_lines(unsettled)
    gaining, unshown = order.split("; ")
    assert gaining.endswith("gain by myrinet over fast-ethernet (their order is not settled)")
    assert "most" not in gaining
    assert last.load.partition(" on ")[0] not in gaining
    assert f"{last.load.partition(' on ')[0]} (" in unshown
    assert unshown.endswith("no gain that matters is shown.")


def test_each_bound_is_said_once_with_all_that_it_bounds(findings: Findings):
    def late(times: str) -> tuple[Limit, ...]:
        return (Limit(what="the switch of myrinet was late", extent=f"up to {times} of the time"),)

    rows = rows_of(findings, "workload-ratios", LoadRatio)
    told = [one.model_copy(update={"limits": late(f"{number} %")}) for number, one in enumerate(rows)]
    bounded = findings.model_copy(update={"chapters": {**findings.chapters, "workload-ratios": tuple(told)}})
    assert workload_lines(bounded)[-1] == "Not the fabric's alone: the switch of myrinet was late (all)."


def test_published_workloads_of_the_same_kind_stand_beside_the_measured_ones(findings: Findings):
    tables = dict(workload_tables(findings))
    beside = {row[0]: row for row in tables["Beside published studies"].rows}
    assert set(beside) == {"HPL", "HPCG", "NPB FT, class A", "NPB EP, class A", "NPB CG, class A"} & set(beside)
    assert {"HPL", "HPCG"} <= set(beside)
    assert beside["HPL"][1] == "RoCE ahead by 1 to 4.2 %"
    assert "with myrinet" in beside["HPL"][2]
    hertz = tables["Linpack per hertz beside the study of SKIF's nodes"].rows
    assert ("AMD Athlon MP 1800+ (1533 MHz)", "0.458") in {row[:2] for row in hertz}
    assert any(row[0].startswith("hpl, n=1000") for row in hertz)
