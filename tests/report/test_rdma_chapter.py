"""The chapter on RDMA: the study's table with ratios, verdicts and what ports counted, in every format of a run that is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.analysis.findings import Findings, Severity
from fabricbench.chapters.congestion import incasts
from fabricbench.chapters.rdma import (
    PORTS,
    RdmaPorts,
    RdmaQuantity,
    attached_table,
    bandwidth,
    latency,
    lines,
    rdma_table,
    rows,
)
from fabricbench.chapters.topologies import TOPOLOGIES
from fabricbench.model import Layer, Pattern, RdmaDoor
from fabricbench.record.lines import RdmaAttachment, RdmaTransport
from fabricbench.record.port_counters import PortEvent
from fabricbench.report import markdown
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.figures import present
from fabricbench.report.html import render_html
from fabricbench.report.terminal import render_terminal
from support.example_findings import small_findings
from support.example_rdma import QUEUE_PAIRS, RATES, RETRANSMISSIONS, SIZES, attached, ports, rdma_cells, rdma_findings

BLOCKS = 8


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return rdma_findings(tmp_path_factory.mktemp("rdma") / "run")


def test_bandwidth_has_a_row_for_every_size_queue_pairs_and_load_with_ratio_and_verdict(findings: Findings):
    made = rdma_table(findings, RdmaQuantity.BANDWIDTH)
    assert len(made.rows) == len(SIZES) * len(QUEUE_PAIRS) * 2
    assert made.columns[:3] == ("Message", "Queue pairs", "Load")
    assert "Door" not in made.columns
    for row in made.rows:
        cells = dict(zip(made.columns, row, strict=True))
        times = next(text for name, text in cells.items() if name.startswith("Times faster"))
        assert 1.9 < float(times.split()[0]) < 2.1
        assert cells["Verdict"] == "rail40 faster"
        assert cells["Load"] in ("alone", "3 to 1")


def test_latency_is_alone_and_beside_the_queue_pairs_of_others(findings: Findings):
    made = rdma_table(findings, RdmaQuantity.LATENCY)
    places = [row[:3] for row in made.rows]
    assert places[: len(SIZES)] == [(size, "1", "alone") for size in ("64 B", "1 KiB", "16 KiB", "64 KiB")]
    assert {row[1:3] for row in made.rows[len(SIZES) :]} == {(str(number), "3 to 1") for number in QUEUE_PAIRS}


def test_what_the_ports_counted_stands_beside_each_ratio(findings: Findings):
    made = rdma_table(findings, RdmaQuantity.BANDWIDTH)
    ports = {
        (row[1], row[2]): (row[made.columns.index("Ports of rail20")], row[made.columns.index("Ports of rail40")])
        for row in made.rows
    }
    assert ports["64", "3 to 1"] == (f"{BLOCKS * RETRANSMISSIONS} retransmissions", "nothing")
    assert ports["16", "3 to 1"] == ports["64", "alone"] == ("nothing", "nothing")
    total = BLOCKS * RETRANSMISSIONS * len(SIZES)
    assert lines(findings)[0].startswith(f"rail20: the ports counted {total} retransmissions in ")
    assert lines(findings)[1].startswith("rail40: the ports counted nothing in ")


def test_retransmissions_on_one_fabric_only_are_a_warning(findings: Findings):
    (told,) = [one for one in findings.warnings if "retransmission" in one.text]
    assert (told.severity, told.subject) == (Severity.WARNING, "rail20")
    assert "and none of them on rail40: their ratios do not compare the links alone" in told.text
    assert f"({BLOCKS * RETRANSMISSIONS:,}, " in told.text


def test_losses_on_every_fabric_are_a_warning_of_each_with_their_rate(tmp_path: Path):
    lossy = {name: ports(name, retransmissions=9) for name in RATES}
    cells = [replace(cell, port_state=lossy) for cell in rdma_cells(queue_pairs=(1,))]
    found = rdma_findings(tmp_path / "run", cells)
    told = [one for one in found.warnings if "retransmissions" in one.text]
    assert {one.severity for one in told} == {Severity.WARNING}
    assert all(any(name in one.subject for one in told) for name in RATES)
    for one in told:
        assert " a measured message)" in one.text
        assert "packets were lost" in one.text
        assert "none of them" not in one.text


def attached_findings(folder: Path, *by_fabric: tuple[RdmaAttachment, ...]) -> Findings:
    rdma = dict(zip(RATES, by_fabric, strict=True))
    return rdma_findings(folder, [replace(cell, rdma=rdma) for cell in rdma_cells(queue_pairs=(1,))])


def test_how_hosts_were_attached_stands_in_a_table_and_fabrics_of_another_kind_are_told(tmp_path: Path):
    roce = tuple(attached("rail20", host) for host in (0, 1))
    iwarp = tuple(
        attached("rail40", host, driver="siw", transport=RdmaTransport.IWARP, port_mtu=2048) for host in (0, 1)
    )
    found = attached_findings(tmp_path / "run", roce, iwarp)
    first, second = attached_table(found).rows
    assert first[:6] == ("rail20", "n[0-1]", "rxe0/1", "RoCE v2 (rxe, soft RoCE)", "fe0", "1")
    assert first[7:] == ("1024", "1024", "64 B")
    assert second[3] == "iWARP (siw, soft iWARP)"
    assert second[8] == "–"
    (told,) = [one for one in found.warnings if "compare that too" in one.text]
    assert told.severity is Severity.NOTE
    assert (
        "RDMA over rail20 was RoCE v2 (rxe, soft RoCE) with path MTU 1024, over rail40 iWARP (siw, soft iWARP)"
        in told.text
    )
    text = markdown.render(found).decode()
    for word in ("iWARP", "Path MTU", "GID index", "0000:0000:0000:0000:0000:ffff:0a62:0001"):
        assert word in text
    assert "How the hosts were attached" in render_html(found)


def test_an_end_with_a_smaller_mtu_is_a_warning(tmp_path: Path):
    narrow = attached("rail20", 1, port_mtu=512)
    ends = (attached("rail20").model_copy(update={"path_mtu": 512}), narrow)
    alike = tuple(attached("rail40", host) for host in (0, 1))
    found = attached_findings(tmp_path / "run", ends, alike)
    (told,) = [one for one in found.warnings if "its ends of RDMA differ" in one.text]
    assert (told.severity, told.subject) == (Severity.WARNING, "rail20")
    assert "port MTU 1024 on n0, port MTU 512 on n1; the path MTU in force was 512" in told.text


@pytest.mark.slow
def test_runs_that_do_not_tell_how_they_were_attached_have_no_such_table(findings: Findings):
    assert not attached_table(findings).rows


def test_the_study_is_quoted_with_its_source(findings: Findings):
    said = lines(findings)[-1]
    assert "RoCE slightly ahead except at 64 and 1024 bytes" in said
    assert "grows faster on IB" in said
    assert "Xu Defa" in said


def test_figures_have_a_panel_for_each_load_and_number_of_queue_pairs(findings: Findings):
    figure = bandwidth(findings)
    assert figure is not None
    titles = [panel.title for panel in figure.panels]
    assert titles[0] == "alone, 1 queue pair"
    assert titles[-1] == "3 to 1, 64 queue pairs"
    assert len(titles) == 2 * len(QUEUE_PAIRS)
    points = figure.panels[-1].spec["data"]["values"]
    assert {(row["fabric"], row["size"]) for row in points} == {
        (name, size) for name in ("rail20", "rail40") for size in SIZES
    }
    trips = latency(findings)
    assert trips is not None
    assert [panel.title for panel in trips.panels][:2] == ["alone, 1 queue pair", "3 to 1, 1 queue pair"]


def test_a_run_without_rdma_has_neither_chapter_nor_figures():
    bare = small_findings()
    assert not {"rdma-bandwidth", "rdma-latency"} & set(present(bare))
    assert lines(bare) == []
    assert not rdma_table(bare, RdmaQuantity.BANDWIDTH).rows


def test_incasts_over_rdma_are_not_mixed_with_those_of_sockets(findings: Findings):
    assert any(one.key.pattern is Pattern.INCAST and one.key.layer is Layer.RDMA for one in TOPOLOGIES.of(findings))
    assert incasts(findings) == []


@pytest.mark.slow
def test_every_text_format_and_the_page_show_the_chapter(findings: Findings):
    terminal, text = render_terminal(findings, 160, color=False), markdown.render(findings).decode()
    for shown in (terminal, text):
        assert "RDMA" in shown
        assert "retransmissions" in shown
    page = render_html(findings)
    assert "RDMA bandwidth" in page
    assert "RDMA latency" in page


def test_rows_keep_full_precision_for_programs(findings: Findings):
    (first, *_) = findings.chapters["rdma"]
    assert len(str(first.value.value)) > 6
    assert json.loads(first.model_dump_json())["quantity"] == "bandwidth"
    with_events = [
        row
        for row in rows(findings, RdmaQuantity.BANDWIDTH)
        if row.events and row.events[PortEvent.RETRANSMISSION.value]
    ]
    assert {(row.queue_pairs, row.senders, row.fabric) for row in with_events} == {(64, 3, "rail20")}


def test_the_csv_file_has_a_column_for_each_kind_of_event(findings: Findings):
    head, *body = findings_csv(findings)["rdma"].splitlines()
    assert (
        "events_retransmission,events_out_of_sequence,events_duplicate,events_not_ready,events_ecn_mark,events_congestion,"
        "events_pause,events_pause_sent,events_credit_wait,events_drop,events_error,ports" in head
    )
    assert len(body) == len(findings.chapters["rdma"])


def test_doors_stand_apart_and_ports_that_nobody_read_have_a_dash(tmp_path: Path):
    cells = rdma_cells((RdmaDoor.SEND, RdmaDoor.WRITE), is_read=False, queue_pairs=(1, 4))
    found = rdma_findings(tmp_path / "run", cells)
    made = rdma_table(found, RdmaQuantity.BANDWIDTH)
    assert {row[3] for row in made.rows} == {"send", "write"}
    assert {row[made.columns.index("Ports of rail20")] for row in made.rows} == {"–"}
    assert lines(found)[0].startswith("rail20: no port could be read in ")
    figure = bandwidth(found)
    assert figure is not None
    assert figure.panels[0].title == "alone, 1 queue pair, send"
    assert figure.panels[-1].title == "3 to 1, 4 queue pairs, write"
    assert not any("retransmission" in one.text for one in found.warnings)


@pytest.mark.slow
def test_an_unproven_path_is_said_on_the_first_screen_and_in_the_warnings(tmp_path: Path):
    found = rdma_findings(tmp_path / "run", rdma_cells(queue_pairs=(1,)), unproven=["rail40"])
    assert any("of unproven path" in one.text and one.subject == "rail40" for one in found.warnings)
    for shown in (
        render_terminal(found, 120, color=False),
        markdown.render(found).decode(),
        render_html(found),
    ):
        assert "path unproven" in shown.lower()


def test_what_else_than_the_network_bounds_is_said_before_its_numbers(findings: Findings):
    bound = "the nodes are guests: their processor bounds what is fast"
    told = tuple(RdmaPorts(fabric=name, tests=1, unread=0, ports="nothing", bounds=(bound,)) for name in ("a", "b"))
    chapters = {**findings.chapters, PORTS: told}
    first, *others = lines(findings.model_copy(update={"chapters": chapters}))
    assert first == f"Not the network alone is measured: {bound}."
    assert not any(bound in line for line in others)
