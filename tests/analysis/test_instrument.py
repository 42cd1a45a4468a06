"""Whether to believe the instrument: lateness is held against the cells it touched, and impossible values stand struck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fabricbench.analysis import Findings, analyse
from fabricbench.analysis.findings import CellKey, CellSummary, Grade, Severity
from fabricbench.analysis.instrument import doubt_of, impossible, impossible_launches, lateness_of
from fabricbench.analysis.measured import Side
from fabricbench.analysis.sides import read_sides
from fabricbench.model import Layer, Pattern
from fabricbench.record.launch import CellLateness, LaunchFacts, write_launch
from fabricbench.record.lines import RankInfo
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.report.markdown import render as render_markdown
from fabricbench.report.tables import ladder_table, summary_table
from fabricbench.report.terminal import render_terminal
from fabricbench.statistics.decision import Consequence
from support.synthetic_run import Noise, SyntheticCell

from .conftest import MakeRun

TRIP = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 47e3, "other": 47e3})
OTHER_TRIP = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {"one": 50e3, "other": 50e3})
STREAM = SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, {"one": 90e6, "other": 90e6}, messages_per_sample=100)
KERNEL = SyntheticCell(
    Layer.MPI, Pattern.NPB, 0, {"one": 1e9}, samples=3, parameters={"benchmark": "IS", "class": "W", "program": "own"}
)
CELLS = (TRIP, OTHER_TRIP, STREAM)

LIFELONG = {
    name: {"name": name, "lateness_ns": {"count": 9, "p50": 100, "p99": p99_ns, "maximum": 10**7}}
    for name, p99_ns in (("one", 1_200_000), ("other", 300))
}


def late(p99_ns: float, *, p90_ns: float = 100, mean_ns: float = 100, count: int = 1000) -> CellLateness:
    return CellLateness(count=count, mean=mean_ns, p50=90, p90=p90_ns, p99=p99_ns, maximum=10 * p99_ns)


def with_facts(run: Run, change: Callable[[StoredLaunch], dict[str, object]]) -> Run:
    """The run after something was added to the facts of its launches."""
    for launch in run.launches:
        facts = LaunchFacts(**{**launch.summary.facts.model_dump(), **change(launch)})
        write_launch(launch.directory, facts=facts)
    return Run.open(run.path)


def measured(make_run: MakeRun, lateness: Callable[[StoredLaunch], dict[int, CellLateness]], **options: object) -> Run:
    """A run of `one` and `other` whose launches tell the lateness of their cells, by number; a flood's beside it."""
    run = make_run(options.pop("cells", CELLS), **options)
    return with_facts(run, lambda launch: {"switches_after": LIFELONG, "lateness": lateness(launch)})


def side_of(run: Run, name: str = "one") -> Side:
    return next(side for side in read_sides([run]) if side.name == name)


def key_of(side: Side, cell: SyntheticCell) -> CellKey:
    return next(
        key
        for key in side.cells
        if (key.layer, key.pattern, key.message_bytes) == (cell.layer, cell.pattern, cell.message_bytes)
    )


def switch_warnings(findings: Findings, severity: Severity) -> list[str]:
    return [one.text for one in findings.warnings if "switch released" in one.text and one.severity is severity]


def summary_of(findings: Findings, cell: SyntheticCell, fabric: str = "one") -> CellSummary:
    def what(key: CellKey) -> Sequence[object]:
        return key.layer, key.pattern, key.message_bytes

    wanted = (cell.layer, cell.pattern, cell.message_bytes)
    return next(one for one in findings.summaries if one.fabric == fabric and what(one.key) == wanted)


def test_lateness_at_other_times_is_not_held_against_cells_measured_on_time(make_run: MakeRun):
    # The switch's whole life has a flood of 1.2 ms in it, which stood against every ping-pong.
    findings = analyse([measured(make_run, lambda _: {number: late(300) for number in range(3)})])
    assert switch_warnings(findings, Severity.WARNING) == []
    assert switch_warnings(findings, Severity.NOTE) == []
    assert {one.doubt for one in findings.summaries} == {""}


def test_memory_is_none_of_the_tests_that_the_switch_could_be_late_in(make_run: MakeRun):
    memory = replace(CELLS[0], layer=Layer.MEMORY)
    findings = analyse([measured(make_run, lambda _: {0: late(3.15e6, p90_ns=1e6)}, cells=[*CELLS, memory])])
    (of_one,) = switch_warnings(findings, Severity.WARNING)
    assert "during 1 test of 3" in of_one


def test_the_warning_names_the_cells_during_which_the_switch_was_late_and_by_how_much(make_run: MakeRun):
    findings = analyse([measured(make_run, lambda _: {0: late(3.15e6, p90_ns=1e6), 1: late(300), 2: late(300)})])
    (of_one,) = switch_warnings(findings, Severity.WARNING)
    assert "67 times the tcp round trip of 64 B" in of_one
    assert "up to 3.15 ms late" in of_one
    assert "during 1 test of 3" in of_one
    assert "udp" not in of_one
    assert "the median stands" not in of_one
    doubted = summary_of(findings, TRIP)
    assert doubted.doubt == (
        "the emulated switch released frames up to 3.15 ms late (p99 of the worst launch), 67 times a round trip"
    )
    assert summary_of(findings, OTHER_TRIP).doubt == summary_of(findings, STREAM).doubt == ""


@pytest.mark.slow
def test_where_only_one_frame_in_ten_was_late_the_median_is_said_to_stand(make_run: MakeRun):
    run = measured(make_run, lambda _: {0: late(3.15e6, p90_ns=200)})
    side = side_of(run)
    doubt = doubt_of(side, side.cells[key_of(side, TRIP)])
    assert doubt is not None
    assert doubt.is_tail_only
    assert "the median stands, the tail does not" in doubt.words
    assert "the median stands" in switch_warnings(analyse([run]), Severity.WARNING)[0]


def test_frames_that_are_all_a_little_late_put_the_median_of_a_round_trip_in_doubt(make_run: MakeRun):
    run = measured(
        make_run, lambda _: {0: late(4_000, p90_ns=2_000, mean_ns=1_000)}
    )  # 8.5 and 4.3 % of a round trip that waits for two
    side = side_of(run)
    doubt = doubt_of(side, side.cells[key_of(side, TRIP)])
    assert doubt is not None
    assert not doubt.is_tail_only
    assert 0.0 < doubt.delay_share < 1.0


def test_a_tail_that_is_the_switchs_is_a_note_unless_it_is_longer_than_a_whole_sample(make_run: MakeRun):
    findings = analyse([measured(make_run, lambda _: {0: late(9_000, p90_ns=200), 1: late(300)})])
    assert switch_warnings(findings, Severity.WARNING) == []
    (of_one,) = switch_warnings(findings, Severity.NOTE)
    assert "19 % of the tcp round trip of 64 B; nine in ten were on time" in of_one


@pytest.mark.slow
def test_late_launches_that_are_few_put_no_cell_in_doubt(make_run: MakeRun):
    run = measured(make_run, lambda launch: {0: late(3.15e6 if launch.block < 3 else 300)})
    side = side_of(run)
    lateness = lateness_of(side, key_of(side, TRIP))
    assert lateness is not None
    assert (lateness.launches, lateness.frames, lateness.median_ns, lateness.worst_ns) == (8, 8000, 300, 3.15e6)
    assert doubt_of(side, side.cells[key_of(side, TRIP)]) is None
    assert switch_warnings(analyse([run]), Severity.WARNING) == []


def test_a_stream_minds_lateness_only_as_a_share_of_the_time_it_was_measured_for(make_run: MakeRun):
    # 200 samples of 9.1 ms: 1.8 s, in which 3.15 ms once are nothing and 90 ms are not.
    run = measured(make_run, lambda launch: {2: late(3.15e6 if launch.fabric == "one" else 90e6, p90_ns=1e6)})
    one, other = (side_of(run, name) for name in ("one", "other"))
    assert doubt_of(one, one.cells[key_of(one, STREAM)]) is None
    doubt = doubt_of(other, other.cells[key_of(other, STREAM)])
    assert doubt is not None
    assert "4.9 % of the time in which it was measured" in doubt.words


@pytest.mark.slow
def test_a_workload_minds_the_time_in_which_the_switch_held_any_frame(make_run: MakeRun):
    for held_share, is_doubted in ((None, False), (0.01, False), (0.034, True)):
        run = measured(
            make_run,
            lambda _, held_share=held_share: {0: late(9e5).model_copy(update={"held_share": held_share})},
            cells=[KERNEL],
            name=f"kernel{held_share}",
        )
        side = side_of(run)
        (cell,) = side.cells.values()
        doubt = doubt_of(side, cell)
        assert (doubt is not None) is is_doubted
        assert doubt is None or doubt.delay_share == 0.034
        assert doubt is None or "held some frame longer than it should in up to 3.4 % of its time" in doubt.words
        warned = [
            one.text
            for one in analyse([run]).warnings
            if "it held some frame for up to 3.4 % of the time of " in one.text
        ]
        assert len(warned) == is_doubted


def test_frames_that_the_switch_lost_itself_have_no_bound_on_what_they_delay(make_run: MakeRun):
    def status(frames: int) -> dict[str, object]:
        return {"one": {"name": "one", "ports": [{"unsent_frames": 0, "ring_lost_frames": frames}]}}

    for lost_in, is_doubted in ((1, False), (8, True)):
        run = with_facts(
            make_run([KERNEL], name=f"lost{lost_in}"),
            lambda launch, lost_in=lost_in: {
                "lateness": {0: late(300).model_copy(update={"held_share": 0.001})},
                "switches_before": status(0),
                "switches_after": status(3 * (launch.block < lost_in)),
            },
        )
        side = side_of(run)
        (cell,) = side.cells.values()
        doubt = doubt_of(side, cell)
        assert (doubt is not None) is is_doubted
        assert doubt is None or "lost 24 frames itself, which may have delayed it by more" in doubt.words
        assert doubt is None or (doubt.held_share, doubt.delay_share) == (0.001, 1.0)


def test_a_rate_that_cannot_be_is_told_of_the_launch_that_measured_it(make_run: MakeRun):
    side = side_of(make_run([replace(STREAM, medians={"one": 2e9})]))
    (cell,) = side.cells.values()
    first = side.launches[0]
    # A workload's launch of the same block stands before the measurer's.
    workloads = replace(first, directory=first.directory.with_name(f"{first.launch_id}-is.W"), subject="is.W")
    told = impossible_launches(replace(side, launches=(workloads, *side.launches)), cell)
    assert workloads.launch_id not in told
    assert first.launch_id in told


@pytest.mark.slow
def test_a_doubt_about_a_cell_that_nothing_is_compared_with_is_a_note(make_run: MakeRun):
    cells = [replace(TRIP, medians={"one": 47e3}), OTHER_TRIP]
    lateness = {0: late(3.15e6), 1: late(300)}
    findings = analyse(
        [measured(make_run, lambda launch: {1: late(300)} | (lateness if launch.fabric == "one" else {}), cells=cells)]
    )
    assert switch_warnings(findings, Severity.WARNING) == []
    assert len(switch_warnings(findings, Severity.NOTE)) == 1
    alone = measured(
        make_run, lambda _: lateness, cells=[replace(cell, medians={"one": 47e3}) for cell in cells], name="alone"
    )
    assert len(switch_warnings(analyse([alone]), Severity.WARNING)) == 1


def test_what_a_run_of_an_earlier_version_tells_of_its_whole_life_is_a_note(make_run: MakeRun):
    findings = analyse([measured(make_run, lambda _: {})])
    assert switch_warnings(findings, Severity.WARNING) == []
    of_one, of_other = switch_warnings(findings, Severity.NOTE)
    assert "up to 1.20 ms late" in of_one
    assert "not told per test by this run's version" in of_one
    assert "up to 300 ns late" in of_other


def test_a_real_fabric_has_no_lateness(make_run: MakeRun):
    side = side_of(make_run(CELLS))
    assert all(lateness_of(side, key) is None and doubt_of(side, cell) is None for key, cell in side.cells.items())


def test_a_rate_beyond_the_wire_is_struck_where_it_stands(make_run: MakeRun):
    too_fast = replace(STREAM, medians={"one": 949.5e6, "other": 90e6})
    findings = analyse([make_run([too_fast])])
    struck, right = (summary_of(findings, too_fast, fabric) for fabric in ("one", "other"))
    assert (struck.is_impossible, right.is_impossible) == (True, False)
    assert "% of the payload that the wire can carry" in struck.doubt
    rows = {row[1]: row for row in summary_table(findings.summaries).rows}
    assert rows["one"][5].endswith(" % (impossible)")
    assert rows["one"][2].endswith(" Mbit/s (impossible)")
    assert not any("impossible" in cell for cell in rows["other"])
    ladder = {row[1]: row for row in ladder_table(findings).rows}
    assert [index for index, cell in enumerate(ladder["one"]) if "impossible" in cell] == [5, 7, 8]
    assert not any("impossible" in cell for cell in ladder["other"])


LIMIT = 100e6 * 1448 / 1538
"""What TCP can carry on `one`, bit/s."""


def streams(*levels: float) -> list[SyntheticCell]:
    """A stream at these shares of what the wire of `one` carries, in as many blocks each."""
    return [
        SyntheticCell(
            Layer.TCP, Pattern.STREAM, 1 << 16, {"one": LIMIT * share, "other": LIMIT}, messages_per_sample=16
        )
        for share in levels
    ]


def test_a_level_beyond_the_wire_by_what_buffers_explain_is_cautioned_where_it_stands(make_run: MakeRun):
    findings = analyse([make_run(streams(1.016), noise=Noise(launch=0.002, sample=0.002))])
    (effect,) = findings.headline.effects
    of_one, of_other = effect.readings
    assert (of_one.is_beyond_wire, of_one.is_impossible, of_other.is_beyond_wire) == (True, False, False)
    assert effect.grade is not Grade.CLEAR  # who leads does so by no more than that
    assert any("one: 101." in str(doubt) and "buffers" in str(doubt) for doubt in effect.doubts)
    (comparison,) = findings.cells
    assert any("one: 101." in str(note) for note in comparison.notes), "the size table shows the same level"
    assert summary_of(findings, streams(1)[0]).doubt.startswith("101.")
    assert [row[2].endswith("(beyond the wire)") for row in summary_table(findings.summaries).rows] == [True, False]
    assert "beyond the wire" in render_terminal(findings, 120, color=False, is_brief=True)
    assert "beyond the wire" in render_markdown(findings).decode()


@pytest.mark.parametrize("share", [0.98, 1.0002])
def test_a_level_at_the_wire_or_just_below_gets_no_caution(make_run: MakeRun, share: float):
    """A wire is not known to four digits, and "100.0 %, beyond the wire" would contradict itself."""
    findings = analyse([make_run(streams(share), noise=Noise(launch=0.00005, sample=0.00005))])
    assert findings.headline.effects[0].doubts == ()
    assert findings.cells[0].notes == ()


def test_the_level_that_is_shown_is_tested_and_not_only_the_median(make_run: MakeRun):
    run = make_run(streams(1.0), noise=Noise(launch=0.001, sample=0.001))
    side = side_of(run)
    cell = side.cells[key_of(side, streams(1)[0])]
    values = cell.launch_values.copy()
    values[:3] *= 1.3  # the median of eight stays at 1.00, their geometric mean is 1.10
    skewed = replace(cell, launch_values=values)
    assert impossible(side, cell) is None
    assert "110 %" in str(impossible(side, skewed))


def test_a_launch_beyond_the_wire_is_named(make_run: MakeRun):
    cells = [replace(one, drift=0.08) for one in streams(1.055)]  # the first launches are beyond what buffers explain
    findings = analyse([make_run(cells, noise=Noise(launch=0.0005, sample=0.0005))])
    told = [one for one in findings.warnings if one.subject.startswith("launch ") and "the wire can carry" in one.text]
    assert "launch b00-one" in told[0].subject
    assert {one.severity for one in told} == {Severity.WARNING}
    assert not any("b07-one" in one.subject for one in told)
    assert any("b00-one" in str(doubt) for doubt in findings.headline.effects[0].doubts)


@pytest.mark.parametrize(("slower", "consequence"), [(13.3, Consequence.NOTHING), (1.02, Consequence.DIRECTION)])
def test_launches_beyond_the_wire_weigh_by_what_they_would_leave_of_the_verdict(
    make_run: MakeRun, slower: float, consequence: Consequence
):
    """A token bucket lets a burst through: that all of its launches are as much too fast changes nothing of 13.3 times."""
    one, other = LIMIT, LIMIT / slower
    cell = replace(streams(1.055)[0], drift=0.08, medians={"one": 1.055 * one, "other": 1.055 * other})
    effect = analyse([make_run([cell], noise=Noise(launch=0.0005, sample=0.0005))]).headline.effects[0]
    (doubt,) = (one for one in effect.doubts if "b00-one" in str(one))
    assert doubt.consequence is consequence
    if consequence is Consequence.NOTHING:
        assert effect.grade is Grade.CLEAR
        largest = effect.readings[0].launches[0]
        assert largest is not None
        assert doubt.numbers[-1].value == pytest.approx(effect.pairs[0].times ** -1 * one / largest, rel=1e-3)
        assert f"({doubt.numbers[-1].written} times if all launches on one are off by as much)" in str(doubt)
        assert str(doubt).endswith("; who is faster would be the same without it")
    else:
        assert effect.grade is Grade.ALARM


@pytest.mark.parametrize(
    ("layer", "message_bytes", "least_us"),
    [
        (Layer.FRAME, 64, 2 * 102 * 0.08),
        (Layer.UDP, 3000, 2 * (1538 + 1538 + 106) * 0.08),
        (Layer.TCP, 64, 2 * (64 + 52 + 38) * 0.08),
        (Layer.MPI, 64, 2 * (64 + 38) * 0.08),
    ],
)
def test_a_round_trip_shorter_than_its_bits_take_is_impossible(
    make_run: MakeRun, layer: Layer, message_bytes: int, least_us: float
):
    trips = {"one": least_us * 1e3 * 0.9, "other": least_us * 1e3 * 1.1}
    cell = SyntheticCell(layer, Pattern.PINGPONG, message_bytes, trips)
    findings = analyse([make_run([cell])])
    assert [summary_of(findings, cell, name).is_impossible for name in trips] == [True, False]
    (warning,) = [one for one in findings.warnings if "where the bits alone take" in one.text]
    assert warning.severity is Severity.WARNING
    assert warning.subject == "one"


def test_ranks_on_one_host_need_no_wire(make_run: MakeRun):
    run = make_run([replace(TRIP, medians={"one": 500.0})])
    side = side_of(run)
    header = side.launches[0].summary.header
    assert header is not None
    on_one_host = tuple(RankInfo(**{**rank.model_dump(), "host": "n0"}) for rank in header.ranks)
    assert analyse([run]).summaries[0].is_impossible
    for launch in run.launches:
        assert launch.summary.header is not None
        there = launch.summary.header.model_copy(update={"ranks": on_one_host})
        told = launch.summary.model_copy(update={"header": there})
        (launch.directory / "launch.json").write_text(told.model_dump_json(by_alias=True))
    assert not analyse([Run.open(run.path)]).summaries[0].is_impossible


def port(**counted: int) -> dict[str, object]:
    """A port of a switch as launch.json has it; versions before these counters had fewer."""
    return {
        "interface": "p0",
        "received_frames": 9,
        "sent_frames": 9,
        "dropped_frames": 5,
        "ring_lost_frames": 0,
    } | counted


def own_failures(findings: Findings) -> list[tuple[str, str]]:
    return [(one.subject, one.text) for one in findings.warnings if "switch failed by itself" in one.text]


def test_frames_that_the_emulator_lost_by_itself_are_a_caution_and_the_fabrics_drops_are_not(make_run: MakeRun):
    def facts(launch: StoredLaunch) -> dict[str, object]:
        so_far = {"unsent_frames": 7, "ring_lost_frames": 1}
        during = {"unsent_frames": 10, "ring_lost_frames": 1} if launch.block < 2 else so_far
        return {
            f"switches_{when}": {"one": {"ports": [port(**counted), port()]}, "other": {"ports": [port()]}}
            for when, counted in (("before", so_far), ("after", during))
        }

    findings = analyse([with_facts(make_run(CELLS), facts)])
    ((subject, text),) = own_failures(findings)
    assert subject == "one"
    assert "in 2 launches of 8: 6 frames could not be sent." in text
    assert "ring" not in text


def test_frames_admitted_out_of_order_are_a_caution(make_run: MakeRun):
    def facts(_: StoredLaunch) -> dict[str, object]:
        both = {name: {"ports": [port(out_of_order_frames=0)]} for name in ("one", "other")}
        return {"switches_before": both, "switches_after": both | {"one": {"ports": [port(out_of_order_frames=3)]}}}

    ((_, text),) = own_failures(analyse([with_facts(make_run(CELLS), facts)]))
    assert "24 frames entered its model after one with a later time" in text


@pytest.mark.parametrize(("received", "severity"), [(10_000, Severity.WARNING), (1_000_000, Severity.NOTE)])
def test_a_few_frames_out_of_order_among_very_many_are_a_note(make_run: MakeRun, received: int, severity: Severity):
    def facts(_: StoredLaunch) -> dict[str, object]:
        after = port(out_of_order_frames=3, received_frames=9 + received)
        return {
            "switches_before": {"one": {"ports": [port(out_of_order_frames=0)]}},
            "switches_after": {"one": {"ports": [after]}},
        }

    findings = analyse([with_facts(make_run(CELLS), facts)])
    ((_, text),) = own_failures(findings)
    assert "24 frames entered its model after one with a later time" in text
    assert f"of {8 * received:,} in all" in text
    assert {one.severity for one in findings.warnings if "switch failed by itself" in one.text} == {severity}


@pytest.mark.slow
def test_switches_that_lost_nothing_or_told_nothing_are_no_caution(make_run: MakeRun):
    assert own_failures(analyse([measured(make_run, lambda _: {0: late(300)})])) == []
    both = {name: {"ports": [port()]} for name in ("one", "other")}
    told = with_facts(make_run(CELLS, name="told"), lambda _: {"switches_before": both, "switches_after": both})
    assert own_failures(analyse([told])) == []


def test_nodes_that_are_not_alike_are_told_with_what_the_others_have(make_run: MakeRun):
    run = make_run(CELLS)
    inventory = {f"n{node}": {"net.ib0.adapter.firmware": "16.28" if node == 2 else "16.35"} for node in range(4)}
    unlike = replace(run, manifest=run.manifest.model_copy(update={"inventory": inventory}))
    (told,) = [one.text for one in analyse([unlike]).warnings if "not alike" in one.text]
    assert told == "its nodes are not alike in 1 fact: net.ib0.adapter.firmware: n2: 16.28; the other 3 have 16.35"
    assert not [one for one in analyse([run]).warnings if "not alike" in one.text]
