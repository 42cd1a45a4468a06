"""`fabricbench doctor`: what this host is and what about it hurts measurements, or whether a testbed is as its file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricbench.cli.output import write_output
from fabricbench.cli.preflight_text import PreflightFormat, show_preflight

if TYPE_CHECKING:
    from fabricbench.testbed.doctor import Host


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def doctor(
        testbed: Annotated[
            str | None,
            typer.Option(metavar="WHERE", help="Look at every node of this testbed instead, as `run` does first."),
        ] = None,
        format_: Annotated[PreflightFormat, typer.Option("--format")] = PreflightFormat.TEXT,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")
        ] = None,
    ) -> None:
        """Take the inventory of this host and say which settings hurt measurements, and what to do.

        With --testbed: is every node reachable, with the same fabricbench, and are its interfaces, addresses and MTU as the testbed
        says? Exit code 2 where the testbed is wrong, 3 where the nodes lack something, as `run` would refuse it.

        Examples: `fabricbench doctor`, `fabricbench doctor --format json -o inventory.json`,
        `fabricbench doctor --testbed rack-7.toml`
        """
        if testbed is not None:
            from fabricbench.campaign.venue import find_venue  # noqa: PLC0415 - keeps the start of the program fast

            show_preflight(find_venue(testbed), None, format_, output)
            return
        from fabricbench.testbed.doctor import examine  # noqa: PLC0415 - keeps the start of the program fast

        host, lab = examine(), _lab_support()
        if format_ is PreflightFormat.JSON:
            data = host.model_dump(mode="json") | {"lab": lab, "inventory": host.inventory()}
            write_output(json.dumps(data, indent=2) + "\n", output)
        else:
            write_output(_text(host, lab), output)


def _lab_support() -> dict[str, str]:
    """Try whether and how a lab can be had here."""
    from fabricbench.lab import lab_support  # noqa: PLC0415

    support = lab_support()
    return {"mode": str(support.mode), "reason": support.reason}


def _text(host: Host, lab: dict[str, str]) -> str:
    facts = host.inventory()
    lines = [f"host {host.name}", ""]
    width = max(len(name) for name in facts)
    lines += [f"  {name.ljust(width)}  {value}" for name, value in facts.items() if not name.startswith("advice.")]
    lines += [f"  {'lab'.ljust(width)}  {lab['mode']}: {lab['reason']}", ""]
    if not host.advice:
        return "\n".join([*lines, "nothing was found that hurts measurements", ""])
    lines.append("what to know before measuring here:")
    for advice in host.advice:
        lines += [f"  {advice.weight}: {advice.subject}: {advice.finding}", f"      what to do: {advice.action}"]
    return "\n".join(lines) + "\n"
