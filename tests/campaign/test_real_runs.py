"""Small campaigns measured for real: on this machine and in a lab, and what happens when the way is wrong or blocked."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.costs import MessageCost
from fabricbench.analysis.findings.stages import (
    Direction,
    HeldByAcknowledgement,
    InterruptGrid,
    ProcessorWait,
    Stage,
    StageCause,
    StagedCell,
    StageDifference,
    StageOnFabric,
)
from fabricbench.analysis.sides import read_sides
from fabricbench.campaign import start
from fabricbench.campaign.events import Event, LaunchFinished, Notice
from fabricbench.campaign.execute import Execution
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import resume_run, start_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import OwnLab, Standing
from fabricbench.chapters.chapter import rows_of
from fabricbench.errors import EnvironmentLacks, RunIncomplete
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.record.manifest import looks_of
from fabricbench.record.store import Run
from fabricbench.testbed.model import Testbed
from fabricbench.testbed.reading import local_testbed
from support.processes import marked_processes, new_mark
from support.scripts import script

SHORT = {"maximum_seconds": "50ms", "minimum_samples": 5, "warmup_samples": 2}
FABRICS = tuple(parse_fabrics("fast-ethernet,myrinet"))


def campaign_of(*layers: Layer, pattern: Pattern = Pattern.PINGPONG, size: int = 1024, blocks: int = 2) -> Campaign:
    experiment = Experiment(layers=layers, pattern=pattern, message_bytes=(size,), **SHORT)
    return Campaign(name="tiny", blocks=blocks, unfit="leave out", experiments=(experiment,))


def measure(directory: Path, campaign: Campaign, venue: OwnLab | Standing) -> tuple[Run, list[Event]]:
    events: list[Event] = []
    start_run(directory, campaign, venue, plan_run(campaign, venue.testbed(), seed=1), notify=events.append)
    return Run.open(directory), events


def assert_costs_are_told(run: Run) -> None:
    """Every ping-pong of two ranks has the processor time of both and of as many messages each way, and a cost in the report."""
    counters = run.counters().collect()
    pairs = run.cells().filter(pl.col("ranks").list.len() == 2)
    counts = counters.filter(scope="rank").pivot(on="counter", index=["launch_id", "cell", "rank"], values="count")
    both = pairs.join(counts, on=["launch_id", "cell"])
    assert both.height == 2 * pairs.height
    assert both["messages_sent"].equals(both["messages_received"], check_names=False)
    assert (both["messages_sent"] >= both["measured"] + both["warmup"]).all()
    assert (both["user_ns"] + both["system_ns"] > 0).all()
    machines = counters.filter(scope="machine", counter="interrupts")
    assert machines.height == run.cells().height, "the nodes of a lab are one machine, which is read once"
    told = rows_of(analyse([run]), "costs", MessageCost)
    assert {row.key.layer for row in told} == {Layer(layer) for layer in pairs["layer"].unique()}
    assert all(row.time.value > 0 for row in told)


@pytest.mark.mpi
def test_two_conditions_of_a_fabric_are_measured_in_one_run_and_the_slower_one_shows(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics("old=myrinet,new=myrinet:delay=2ms")))
    run, _ = measure(tmp_path / "run", campaign_of(Layer.TCP), venue)
    assert {fabric.condition_of for fabric in run.manifest.testbed.fabrics} == {"myrinet"}
    old, new = read_sides([run])
    assert (old.blocks, new.blocks) == ([0, 1], [0, 1])
    (before,), (after,) = old.cells.values(), new.cells.values()
    assert np.all(
        after.launch_values > before.launch_values + 4e6
    )  # four links of 2 ms each, in ns, less what noise may take


@pytest.mark.mpi
def test_the_stages_of_round_trips_in_a_lab_add_up_to_them(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    experiment = Experiment(
        layers=(Layer.IP, Layer.UDP, Layer.TCP),
        pattern=Pattern.PINGPONG,
        message_bytes=(64, 8192),
        stages=True,
        maximum_seconds=0.1,
        minimum_samples=20,
    )
    of_frames = experiment.model_copy(update={"layers": (Layer.FRAME,), "message_bytes": (64, 1500)})
    fabrics = tuple(parse_fabrics("near=gigabit-ethernet:mtu=1500,far=gigabit-ethernet:mtu=1500,latency=203us"))
    run, _ = measure(
        tmp_path / "run",
        Campaign(name="tiny", blocks=2, experiments=(experiment, of_frames)),
        OwnLab(nodes=2, fabrics=fabrics),
    )
    findings = analyse([run])
    expect_whole_messages(findings, cells=2 * 8)
    # The switch of one takes 200 us longer: that, and no other stage, is where they differ by as much.
    differences = [row for row in rows_of(findings, "stage-differences", StageDifference) if row.parts]
    for row in differences:
        if row.parts == (Stage.SWITCH,):
            sign = 1.0 if row.fabric_b == "far" else -1.0
            assert sign * row.difference.value == pytest.approx(400_000, rel=0.05)
    assert sum(row.parts == (Stage.SWITCH,) for row in differences) == 8


def expect_whole_messages(findings: Findings, *, cells: int) -> None:
    found = rows_of(findings, "stage-cells", StagedCell)
    assert len(found) == cells
    for cell in found:
        assert cell.has_switch
        assert not cell.refused
        assert cell.complete >= 0.95 * cell.messages, cell.missing
        assert cell.within >= 0.95


def of_mpi(*sizes: int) -> Campaign:
    """A campaign with stages, and a test that other fabrics have as well."""
    experiment = Experiment(
        layers=(Layer.MPI,),
        pattern=Pattern.PINGPONG,
        message_bytes=sizes,
        stages=True,
        maximum_seconds=0.1,
        minimum_samples=20,
    )
    plain = Experiment(layers=(Layer.MPI,), pattern=Pattern.PINGPONG, message_bytes=(16,), **SHORT)
    return Campaign(name="tiny", blocks=2, experiments=(experiment, plain), unfit="leave out")


@pytest.mark.mpi
@pytest.mark.timeout(90)
def test_the_stages_of_messages_of_mpi_in_a_lab_add_up_to_their_round_trips(tmp_path: Path):
    """A message of 512 KiB is one that MPICH's libfabric sends in many calls."""
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    fabrics = tuple(parse_fabrics("near=gigabit-ethernet:mtu=1500,far=gigabit-ethernet:mtu=1500,latency=203us"))
    run, _ = measure(tmp_path / "run", of_mpi(64, 32768, 524288), OwnLab(nodes=2, fabrics=fabrics))
    findings = analyse([run])
    expect_whole_messages(findings, cells=2 * 3)
    differences = [row for row in rows_of(findings, "stage-differences", StageDifference) if row.parts]
    assert {Stage.LIBRARY, Stage.DELIVERY} <= {row.parts[0] for row in differences}
    of_switch = [row for row in differences if row.parts == (Stage.SWITCH,) and row.key.message_bytes == 64]
    (row,) = of_switch
    sign = 1.0 if row.fabric_b == "far" else -1.0
    assert sign * row.difference.value == pytest.approx(400_000, rel=0.05)


@pytest.mark.mpi
@pytest.mark.timeout(90)
def test_messages_of_mpi_have_stages_over_the_loopback_and_none_through_memory(tmp_path: Path):
    run, _ = measure(tmp_path / "run", of_mpi(64), Standing(given=local_testbed()))
    (cell,) = rows_of(analyse([run]), "stage-cells", StagedCell)
    assert cell.fabric == "loopback"
    assert not cell.refused
    assert cell.complete >= 0.95 * cell.messages, cell.missing
    assert cell.within >= 0.95


@pytest.mark.mpi
@pytest.mark.timeout(90)
def test_messages_that_mpi_asks_the_peer_about_have_a_handshake_where_the_others_have_none(tmp_path: Path):
    """MPICH asks beyond a limit that a variable sets, which other libraries do not read."""
    if "MPICH" not in find_starter().mpi:
        pytest.skip(f"the MPI here is {find_starter().mpi}")
    testbed = rewired(local_testbed(), "loopback", MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD="4096")
    run, _ = measure(tmp_path / "run", of_mpi(64, 8192), Standing(given=testbed))
    findings = analyse([run])
    rows = [row for row in rows_of(findings, "stages", StageOnFabric) if row.way is Direction.BOTH]
    handshakes = {row.key.message_bytes: row for row in rows if row.parts == (Stage.HANDSHAKE,)}
    assert set(handshakes) == {8192}
    assert handshakes[8192].median.value > 5_000
    for cell in rows_of(findings, "stage-cells", StagedCell):
        assert cell.complete >= 0.95 * cell.messages, cell.missing
        assert cell.within >= 0.95


@pytest.mark.mpi
@pytest.mark.timeout(90)
def test_what_delays_messages_in_a_lab_is_named_the_larger_first(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    pairs = Experiment(
        layers=(Layer.TCP,),
        pattern=Pattern.BURST,
        message_bytes=(64,),
        parameters={"messages": 2, "nodelay": "off"},
        stages=True,
        maximum_seconds=0.6,
    )
    lone = Experiment(
        layers=(Layer.UDP,),
        pattern=Pattern.PACED,
        message_bytes=(64,),
        parameters={"intervals": "random"},
        stages=True,
        minimum_seconds=0.3,
        maximum_seconds=0.3,
    )
    fabrics = tuple(parse_fabrics("gathering=gigabit-ethernet:mtu=1500,interrupt-period=125us"))
    run, _ = measure(
        tmp_path / "run", Campaign(name="tiny", blocks=2, experiments=(pairs, lone)), OwnLab(nodes=2, fabrics=fabrics)
    )
    findings = analyse([run])
    for cell in rows_of(findings, "stage-cells", StagedCell):
        assert cell.complete >= 0.95 * cell.messages, cell.missing
    # What else uses the machine may take the ranks' processor.
    found = [one.subject for one in rows_of(findings, "stage-causes", StageCause)]
    held, grid = (one for one in found if not isinstance(one, ProcessorWait))
    assert isinstance(held, HeldByAcknowledgement)
    assert isinstance(grid, InterruptGrid)
    assert grid.period_ns == pytest.approx(125e3, rel=1e-3)


def rewired(testbed: Testbed, fabric: str, **environment: str) -> Testbed:
    """The testbed with something else told to MPI on one fabric."""
    fabrics = tuple(
        each.model_copy(update={"mpi_environment": environment}) if each.name == fabric else each
        for each in testbed.fabrics
    )
    return testbed.model_copy(update={"fabrics": fabrics})


@pytest.mark.mpi
def test_a_run_whose_launches_take_longer_than_its_budget_ends_with_whole_blocks_and_says_so(tmp_path: Path):
    venue, campaign = Standing(given=local_testbed()), campaign_of(Layer.MPI, blocks=5)
    plan = plan_run(campaign, venue.testbed(), seed=1).model_copy(update={"budget_seconds": 0.1})
    events: list[Event] = []
    start_run(tmp_path / "run", campaign, venue, plan, notify=events.append, preflight=False)
    (spent,) = [event.text for event in events if isinstance(event, Notice) and "budget" in event.text]
    assert "is spent: a block took" in spent
    assert "has 2 of 5 blocks; `fabricbench resume" in spent
    run = Run.open(tmp_path / "run")
    assert blocks_of(run) == [[0, 1]] * 2
    assert looks_of(run.manifest) == ()  # time ended it, not what was seen
    resume_run(tmp_path / "run", notify=events.append, preflight=False)
    assert len(Run.open(tmp_path / "run").launches) == 4
    resume_run(tmp_path / "run", blocks=3, notify=events.append, preflight=False)
    assert blocks_of(Run.open(tmp_path / "run")) == [[0, 1, 2]] * 2


def blocks_of(run: Run) -> list[list[int]]:
    """The blocks that each fabric was measured in; others on this machine use its loopback as well, so a launch may not count."""
    fabrics = {launch.fabric for launch in run.launches}
    return [sorted(launch.block for launch in run.launches if launch.fabric == fabric) for fabric in fabrics]


@pytest.fixture
def lab() -> Iterator[Lab]:
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    lab = Lab.up(f"test-{secrets.token_hex(4)}", 4, FABRICS, owned=True)
    try:
        yield lab
    finally:
        lab.down()


@pytest.mark.lab
@pytest.mark.mpi
def test_each_fabric_is_measured_over_the_nodes_that_it_joins(tmp_path: Path, lab: Lab):
    testbed = lab.testbed()
    sets = zip(testbed.fabrics, (("n0", "n1"), ("n2", "n3")), strict=True)
    fabrics = tuple(fabric.model_copy(update={"nodes": nodes}) for fabric, nodes in sets)
    apart = testbed.model_copy(update={"fabrics": fabrics})
    run, _ = measure(tmp_path / "run", campaign_of(Layer.TCP, Layer.MPI), Standing(given=apart))
    for launch in run.launches:
        assert launch.is_valid
        assert launch.summary.header is not None
        hosts = tuple(rank.host for rank in launch.summary.header.ranks)
        assert hosts == run.manifest.testbed.fabric(launch.fabric).nodes


@pytest.mark.tour
@pytest.mark.mpi
def test_a_campaign_runs_on_this_machine_alone(tmp_path: Path):
    run, events = measure(tmp_path / "run", campaign_of(*Layer), Standing(given=local_testbed()))
    assert len(run.launches) == 4
    cells = run.cells()
    assert set(cells["status"]) == {"done"}, cells.select("layer", "reason").rows()
    of_loopback = cells.filter(cells["fabric"].cast(str) == "loopback")
    assert set(of_loopback["layer"]) == set(local_testbed().fabrics[0].layers)
    assert sum(isinstance(event, LaunchFinished) for event in events) == 4
    assert run.manifest.versions["mpi"]
    assert_costs_are_told(run)
    (inventory,) = run.manifest.inventory.values()
    assert "kernel.release" in inventory or len(inventory) > 10


@pytest.mark.tour
@pytest.mark.lab
@pytest.mark.mpi
def test_a_campaign_over_six_layers_runs_in_a_lab_of_its_own_and_every_path_is_proven(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    run, _ = measure(tmp_path / "run", campaign_of(*Layer), OwnLab(nodes=2, fabrics=FABRICS))
    assert [launch.is_valid for launch in run.launches] == [True] * 4, [
        launch.summary.facts.invalid_because for launch in run.launches
    ]
    cells = run.cells()
    assert set(cells["status"]) == {"done"}, cells.select("layer", "reason").rows()
    assert set(cells["layer"]) == set(USUAL_LAYERS)
    facts = run.launches[0].summary.facts
    assert set(facts.switches_before) == {"fast-ethernet", "myrinet"}
    assert facts.observing_seconds.keys() == {"switches", "quota"}
    assert_costs_are_told(run)
    moved = {
        name: sum(port["sent_frames"] for port in facts.switches_after[name]["ports"])
        - sum(port["sent_frames"] for port in facts.switches_before[name]["ports"])
        for name in facts.switches_after
    }
    other = next(name for name in moved if name != run.launches[0].fabric)
    assert moved[run.launches[0].fabric] > 100 * max(1, moved[other])
    for launch in run.launches:
        mine = cells.filter(cells["launch_id"].cast(str) == launch.launch_id)
        spans = mine.select("begin_unix_ns", "end_unix_ns").rows()
        assert all(0 < end - begin < 10**10 for begin, end in spans)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(sorted(spans)))
        lateness = launch.summary.facts.lateness
        networked = mine.filter(mine["layer"] != "memory")["cell"].to_list()
        assert set(networked) <= set(lateness)
        assert all(0 <= late.p50 <= late.p90 <= late.p99 <= late.maximum for late in lateness.values())
        whole = launch.summary.facts.switches_after[launch.fabric]["lateness_ns"]["count"]
        assert 0 < sum(late.count for late in lateness.values()) <= whole
    assert set(run.manifest.inventory) == {"n0", "n1"}
    assert all("missing" not in facts for facts in run.manifest.inventory.values())


@pytest.mark.tour
@pytest.mark.lab
@pytest.mark.mpi
def test_turns_and_matrices_of_four_nodes_are_measured_and_their_paths_proven(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    patterns = (
        *(Pattern.PINGPING, Pattern.SENDRECV, Pattern.EXCHANGE, Pattern.HALO),
        *(Pattern.ONEWAY, Pattern.PACED, Pattern.BURST, Pattern.PAIRS, Pattern.PAIRS_STREAM),
    )
    experiments = tuple(
        Experiment(layers=(Layer.UDP, Layer.TCP), pattern=pattern, message_bytes=(1024,), **SHORT)
        for pattern in patterns
    )
    campaign = Campaign(name="tiny", blocks=2, experiments=experiments)
    run, _ = measure(tmp_path / "run", campaign, OwnLab(nodes=4, fabrics=FABRICS[:1]))
    assert [launch.is_valid for launch in run.launches] == [True] * 2, [
        launch.summary.facts.invalid_because for launch in run.launches
    ]
    cells = run.cells()
    assert set(cells["status"]) == {"done"}, cells.select("layer", "pattern", "reason").rows()
    assert set(cells["pattern"]) == set(patterns)
    assert run.launches[0].summary.clocks
    channels = (
        run.channels().join(cells.lazy().select("launch_id", "cell", "pattern"), on=["launch_id", "cell"]).collect()
    )
    pairs = channels.filter(pattern="pairs").select("source", "destination").unique().rows()
    assert set(pairs) == {(one, other) for one in range(4) for other in range(one + 1, 4)}
    streams = channels.filter(pattern="pairs-stream").select("source", "destination").unique().rows()
    assert set(streams) == {(one, other) for one in range(4) for other in range(4) if one != other}
    assert set(channels.filter(pattern="oneway")["quantity"]) == {"one_way"}


@pytest.mark.lab
@pytest.mark.mpi
def test_mpi_that_takes_the_wrong_fabric_is_caught(tmp_path: Path, lab: Lab):
    right = lab.testbed().fabric("fast-ethernet").interface
    misled = rewired(lab.testbed(), "myrinet", FI_TCP_IFACE=str(right), OMPI_MCA_btl_tcp_if_include=str(right))
    run, events = measure(tmp_path / "run", campaign_of(Layer.MPI), Standing(given=misled))
    valid = {launch.fabric: launch.is_valid for launch in run.launches}
    assert valid == {"fast-ethernet": True, "myrinet": False}
    facts = next(launch.summary.facts for launch in run.launches if not launch.is_valid)
    assert any("it went another way" in each for each in facts.invalid_because)
    (cell,) = facts.path_proof["cells"]
    assert cell["other_bytes"] > cell["payload_bytes"] > cell["fabric_sent"]
    assert any(isinstance(event, LaunchFinished) and event.violations for event in events)


@pytest.mark.mpi
def test_mpi_that_does_not_start_stops_the_run_with_its_own_words(tmp_path: Path):
    broken = rewired(local_testbed(), "loopback", FI_PROVIDER="carrier-pigeon", UCX_TLS="carrier-pigeon")
    only = broken.model_copy(update={"fabrics": broken.fabrics[:1]})
    with pytest.raises(EnvironmentLacks, match="the measurer does not start") as raised:
        measure(tmp_path / "run", campaign_of(Layer.TCP, blocks=6), Standing(given=only))
    assert "carrier-pigeon" in raised.value.message
    assert len(list((tmp_path / "run/launches").iterdir())) == 2


@pytest.mark.lab
@pytest.mark.mpi
def test_a_hung_launch_in_a_lab_is_ended_with_all_its_ranks(tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch):
    mark, environment = new_mark()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    hanging = script(tmp_path / "hanging-probe", "trap '' TERM INT\necho hanging >&2\nwhile :; do sleep 1; done")
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    plan = plan_run(campaign_of(Layer.TCP), lab.testbed(), seed=1)
    launcher = LabLauncher(lab, find_starter(), None)
    monkeypatch.setattr(start, "native_file", lambda _name, _build=None: hanging)
    one = plan.model_copy(update={"launches": plan.launches[:1]})
    with pytest.raises((RunIncomplete, EnvironmentLacks), match="hung: ended at its time limit"):
        Execution(directory, one, launcher, lambda _event: None, limit=lambda _estimate: 2.0).run()
    log = (directory.launch(one.launches[0].launch_id) / "stderr.log").read_text()
    assert log.count("hanging") == 2
    assert marked_processes(mark) == []


@pytest.mark.lab
@pytest.mark.mpi
def test_a_node_that_dies_ends_the_run_with_what_to_do(tmp_path: Path, lab: Lab):
    campaign = campaign_of(Layer.TCP, blocks=6)
    plan = plan_run(campaign, lab.testbed(), seed=1)

    def kill_a_node(event: Event) -> None:
        if isinstance(event, LaunchFinished) and event.launch.launch_id == plan.launches[1].launch_id:
            lab.entry.nodes["n1"].kill()

    with pytest.raises(EnvironmentLacks, match=r"node n1 of lab .* has ended") as raised:
        start_run(tmp_path / "run", campaign, Standing(given=lab.testbed()), plan, notify=kill_a_node)
    assert "fabricbench resume" in str(raised.value.hint)
    assert len(Run.open(tmp_path / "run").launches) == 2
