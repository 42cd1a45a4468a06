"""`fabricbench doctor`: what this host is and what about it hurts measurements, or whether a testbed is as its file says.

That is a preflight, as `run` makes it first: a table of the nodes, then what is wrong; the refusal decides the exit code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.preflight import examine_venue
from fabricbench.campaign.venue import Venue, find_venue
from fabricbench.cli.output import as_json, check_output, output_width, wrapped, write_output
from fabricbench.cli.progress import RunProgress
from fabricbench.errors import EnvironmentLacks
from fabricbench.lab import lab_support
from fabricbench.launch.mpi import check_fits, find_starter
from fabricbench.native import native_file
from fabricbench.quantity import format_bit_s
from fabricbench.report.terminal_table import table_text
from fabricbench.table import Table, table
from fabricbench.testbed.advice import ADVICE
from fabricbench.testbed.doctor import Host, examine
from fabricbench.testbed.preflight_result import Finding, FindingSeverity, NodeResult, Preflight, folded, told

app = typer.Typer()

UNBOUNDED = 10_000
"""Columns of text that no terminal cuts."""


class PreflightFormat(StrEnum):
    """How a preflight, and the doctor, write."""

    TEXT = "text"
    JSON = "json"


@app.command()
def doctor(
    testbed: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Look at every node of this testbed instead, as `run` does first."),
    ] = None,
    format_: Annotated[PreflightFormat, typer.Option("--format")] = PreflightFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """Take the inventory of this host and say which settings hurt measurements, and what to do.

    With --testbed: is every node reachable, with the same fabricbench, and are its interfaces, addresses and MTU as the testbed
    says? What carries the fabrics, and in what do nodes differ? Exit code 2 where the testbed cannot be read, 3 where nodes
    are not as it says, as `run` would refuse it.

    Examples: `fabricbench doctor`, `fabricbench doctor --format json -o inventory.json`,
    `fabricbench doctor --testbed rack-7.toml`
    """
    check_output(output)
    if testbed is not None:
        show_preflight(find_venue(testbed), None, format_, output)
        return
    host, lab = examine(), _lab_support()
    if format_ is PreflightFormat.JSON:
        data = host.model_dump(mode="json") | {"lab": lab, "inventory": host.inventory()}
        write_output(json.dumps(data, indent=2) + "\n", output)
    else:
        write_output(_host_text(host, lab, output_width(output, UNBOUNDED)), output)
    _check_measurer()


def _check_measurer() -> None:
    """Raise EnvironmentLacks where the measurer does not start with its own MPI: another library is in its way."""
    try:
        starter, measurer = find_starter(), native_file("fabricbench-probe")
    except EnvironmentLacks:  # the inventory tells that there is no MPI here
        return
    check_fits(starter, measurer)


def _lab_support() -> dict[str, str]:
    """Try whether and how a lab can be had here."""
    support = lab_support()
    return {"mode": str(support.mode), "reason": support.reason}


def _host_text(host: Host, lab: dict[str, str], columns: int) -> str:
    """Return the facts, then what to know before measuring, in so many columns."""
    facts = [(name, value) for name, value in host.inventory().items() if not name.startswith(f"{ADVICE}.")]
    facts.append(("lab", f"{lab['mode']}: {lab['reason']}"))
    width = max(len(name) for name, _ in facts)
    lines = [f"host {host.name}", ""]
    for name, value in facts:
        lines += _hanging(f"  {name.ljust(width)}  ", value, columns)
    lines.append("")
    if not host.advice:
        return "\n".join([*lines, "nothing was found that hurts measurements", ""])
    lines.append("what to know before measuring here:")
    for advice in host.advice:
        lines += _hanging("  ", f"{advice.weight}: {advice.subject}: {advice.finding}", columns)
        lines += _hanging("      ", f"what to do: {advice.action}", columns)
    return "\n".join(lines) + "\n"


def _hanging(head: str, text: str, columns: int) -> list[str]:
    """Return text behind its head; what has no room on the first line hangs below it, less far in where there is little room."""
    below = min(len(head), columns // 2)
    return wrap(text, columns, initial_indent=head, subsequent_indent=" " * below, break_on_hyphens=False) or [head]


def show_preflight(venue: Venue, plan: RunPlan | None, form: PreflightFormat, output: Path | None = None) -> None:
    """Write how a venue was found. Raises the refusal that a run would end with."""
    with RunProgress() as progress:
        found = examine_venue(venue, plan, progress.show)
    text = as_json(_data(found)) if form is PreflightFormat.JSON else _text(found, output_width(output, UNBOUNDED))
    write_output(text + "\n", output)
    refusal = found.refusal(with_findings=False)
    if refusal is not None:
        raise refusal


def _data(found: Preflight) -> dict[str, object]:
    data = {"is_passed": not found.errors} | found.model_dump(mode="json", exclude={"is_skipped"})
    return data | {"inventories": found.inventories}


def _text(found: Preflight, width: int) -> str:
    parts = [preflight_table(found, found.findings, width), *wrapped((f"  {note}" for note in found.notes), width)]
    adapters = _adapters(found)
    parts += ["", table_text(adapters, width)] if adapters.rows else []
    parts += problem_lines(found.errors, found.warnings, width)
    return "\n".join(parts if found.findings else [*parts, "", "nothing speaks against a run"])


def problem_lines(errors: Sequence[Finding], warnings: Sequence[Finding], width: int) -> list[str]:
    """Return problems and warnings, each under its heading, in so many columns."""
    parts = []
    for title, findings in (("problems:", errors), ("warnings:", warnings)):
        parts += ["", title, *wrapped(told(findings), width)] if findings else []
    return parts


def preflight_table(found: Preflight, findings: Sequence[Finding], width: int) -> str:
    """Return the table of the nodes, each with the worst of what was found of it, in so many columns."""
    fabrics = list(dict.fromkeys(name for node in found.nodes for name in node.attachments))
    title = f"testbed {found.testbed}"
    nodes = table(
        columns=("node", "host", "fabricbench", "load", *fabrics, "result"),
        rows=_rows(found, fabrics, findings),
        title=title,
        spare=("load", "host", "fabricbench"),
    )
    return table_text(nodes, width) if found.nodes else title


FEWEST_FOLDED = 17
"""Nodes: from here on a table has a row for those that are alike, and not for each."""


def _rows(found: Preflight, fabrics: Sequence[str], findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """Return the rows of the nodes, of many those that are alike as one."""
    if len(found.nodes) < FEWEST_FOLDED:
        return [
            (*_of_node(node), *(_attached(node, name) for name in fabrics), _result(findings, node))
            for node in found.nodes
        ]
    alike: dict[tuple[str, ...], list[NodeResult]] = {}
    results = {node.name: _result(findings, node) for node in found.nodes}
    for node in found.nodes:
        places = (_attached(node, name, with_address=False) for name in fabrics)
        alike.setdefault((node.version, *places, results[node.name]), []).append(node)
    return [
        (_folded(nodes), "" if nodes[0].host else "no answer", version, _loads(nodes), *places)
        for (version, *places), nodes in alike.items()
    ]


def _folded(nodes: Sequence[NodeResult]) -> str:
    return f"{folded(node.name for node in nodes)} ({len(nodes)})"


def _loads(nodes: Sequence[NodeResult]) -> str:
    loads = [node.load for node in nodes if node.load is not None]
    return f"{min(loads):.1f} to {max(loads):.1f}" if loads else ""


ADAPTER_FACTS = {
    "driver": "driver",
    "version": "adapter.driver_version",
    "firmware": "adapter.firmware",
    "speed": "speed_bit_s",
    "PCIe": "adapter.pcie.transfers_s",
    "lanes": "adapter.pcie.lanes",
    "of": "adapter.pcie.most_lanes",
    "NUMA": "numa_node",
    "near": "adapter.near",
    "interrupts": "adapter.interrupts",
    "pause rx": "adapter.pause.rx",
    "pause tx": "adapter.pause.tx",
}


def _adapters(found: Preflight) -> Table:
    """Return what carries the fabrics, a row for the nodes that are alike; without what no node tells."""
    alike: dict[tuple[str, ...], list[NodeResult]] = {}
    for node in found.nodes:
        facts = found.inventories.get(node.name, {})
        for fabric, attached in node.attachments.items():
            told = (
                _shown(name, facts.get(f"net.{attached.interface}.{fact}", "")) for name, fact in ADAPTER_FACTS.items()
            )
            alike.setdefault((fabric, attached.interface, *told), []).append(node)
    rows = [(_folded(nodes), *row) for row, nodes in alike.items() if any(row[2:])]
    whole = table(("nodes", "fabric", "interface", *ADAPTER_FACTS), rows, title="adapters")
    for column in reversed(range(3, len(whole.columns))):
        if not any(row[column] for row in whole.rows):
            whole = whole.without(column)
    return whole


def _shown(name: str, value: str) -> str:
    if name == "speed" and value:
        return format_bit_s(float(value))
    return f"{float(value) / 1e9:g} GT/s" if name == "PCIe" and value else value


def _of_node(node: NodeResult) -> tuple[str, ...]:
    load = "" if node.load is None else f"{node.load:.1f} of {node.processors}"
    return (node.name, node.host or "no answer", node.version, load)


def _attached(node: NodeResult, fabric: str, *, with_address: bool = True) -> str:
    found = node.attachments.get(fabric)
    if found is None:
        return ""
    address = f" {found.address or 'no address'}" if with_address or not found.address else ""
    return f"{found.interface}{address} mtu {found.mtu}"


def _result(findings: Sequence[Finding], node: NodeResult) -> str:
    found = {one.severity for one in findings if one.node == node.name}
    return "refused" if FindingSeverity.ERROR in found else "warning" if found else "good"
