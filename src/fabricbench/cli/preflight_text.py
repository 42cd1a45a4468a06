"""How a preflight is shown: a table of the nodes, then what is wrong; the refusal decides the exit code."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from fabricbench.cli.output import write_output
from fabricbench.cli.progress import RunProgress
from fabricbench.cli.tables import as_json
from fabricbench.table import as_text, table

if TYPE_CHECKING:
    from fabricbench.campaign.plan import RunPlan
    from fabricbench.campaign.venue import Venue
    from fabricbench.testbed.preflight_result import NodeResult, Preflight


class PreflightFormat(StrEnum):
    """How a preflight, and the doctor, write."""

    TEXT = "text"
    JSON = "json"


def show_preflight(venue: Venue, plan: RunPlan | None, form: PreflightFormat, output: Path | None = None) -> None:
    """Write how a venue was found. Raises the refusal that a run would end with."""
    from fabricbench.campaign.preflight import examine_venue  # noqa: PLC0415 - keeps the start of the program fast

    with RunProgress() as progress:
        found = examine_venue(venue, plan, progress.show)
    text = as_json(_data(found)) if form is PreflightFormat.JSON else _text(found)
    write_output(text + "\n", output)
    refusal = found.refusal(with_findings=False)
    if refusal is not None:
        raise refusal


def _data(found: Preflight) -> dict[str, object]:
    return {"is_passed": not found.errors} | found.model_dump(mode="json", exclude={"is_skipped"})


def _text(found: Preflight) -> str:
    from fabricbench.testbed.preflight_result import told  # noqa: PLC0415

    fabrics = list(dict.fromkeys(name for node in found.nodes for name in node.attachments))
    title = f"testbed {found.testbed}"
    nodes = table(
        columns=("node", "host", "fabricbench", "load", *fabrics, "result"),
        rows=[
            (*_of_node(node), *(_attached(node, name) for name in fabrics), _result(found, node))
            for node in found.nodes
        ],
        title=title,
    )
    parts = [as_text(nodes) if found.nodes else title, *(f"  {note}" for note in found.notes)]
    for title, findings in (("problems:", found.errors), ("warnings:", found.warnings)):
        if findings:
            parts += ["", title, *told(findings)]
    return "\n".join(parts if found.findings else [*parts, "", "nothing speaks against a run"])


def _of_node(node: NodeResult) -> tuple[str, ...]:
    load = "" if node.load is None else f"{node.load:.1f} of {node.processors}"
    return (node.name, node.host or "no answer", node.version, load)


def _attached(node: NodeResult, fabric: str) -> str:
    found = node.attachments.get(fabric)
    return "" if found is None else f"{found.interface} {found.address or 'no address'} mtu {found.mtu}"


def _result(found: Preflight, node: NodeResult) -> str:
    is_refused = any(one.node == node.name for one in found.errors)
    is_warned = any(one.node == node.name for one in found.warnings)
    return "refused" if is_refused else "warning" if is_warned else "good"
