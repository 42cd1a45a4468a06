"""What `fabricbench testbed check` does and writes: look, measure every fabric, once more where something looks wrong, and tell."""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabricbench.analysis.network_map import CONFIRMATION
from fabricbench.analysis.testbed_check import FabricChecked, check_fabric, expected_bit_s, nodes_to_measure_again
from fabricbench.campaign.pattern_presets import STREAM_BYTES
from fabricbench.campaign.run import start_run
from fabricbench.campaign.testbed_check import Looked, Measuring, look_at_testbed, measurings
from fabricbench.campaign.venue import OwnLab, Standing, find_venue
from fabricbench.cli.doctor import UNBOUNDED, PreflightFormat, preflight_table, problem_lines
from fabricbench.cli.output import as_json, say, wrapped
from fabricbench.cli.progress import RunProgress, interruptible
from fabricbench.errors import EnvironmentLacks, FabricbenchError, Interrupted, UsageError
from fabricbench.model import Model
from fabricbench.quantity import count, format_bit_s, format_duration, format_seconds
from fabricbench.record.atomic import explained
from fabricbench.record.integrity import MANIFEST
from fabricbench.record.provenance import Proof
from fabricbench.record.store import Run
from fabricbench.report.terminal_table import table_text
from fabricbench.table import table
from fabricbench.testbed.model import Fabric, LauncherKind, Testbed
from fabricbench.testbed.preflight_result import Finding, FindingSeverity, Preflight, folded, told
from fabricbench.testbed.wire import Wire


class Clocks(Model):
    """How far the nodes' clocks of the day are from this machine's, in seconds, and by how much each may be wrong."""

    ahead_s: dict[str, float] = {}
    error_s: dict[str, float] = {}
    source: dict[str, str | None] = {}


class CheckedTestbed(Model):
    """A testbed as it was found: the nodes, their clocks, each fabric as it was measured, and what is wrong."""

    testbed: str
    preflight: Preflight
    clocks: Clocks
    fabrics: tuple[FabricChecked, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What keeps the testbed from being as its file says."""
        return tuple(one for one in self.findings if one.severity is FindingSeverity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What to know, which is no reason to refuse it."""
        return tuple(one for one in self.findings if one.severity is FindingSeverity.WARNING)


def check_testbed(place: Standing, output: Path | None) -> CheckedTestbed:
    """Look at the nodes of a testbed and measure all of its fabrics."""
    with RunProgress() as progress:
        looked = look_at_testbed(place, progress.show)
    seed = secrets.randbits(32)
    planned = measurings(looked, seed)
    if planned:
        seconds = sum(one.plan.estimated_seconds for one in planned)
        names = ", ".join(one.fabric.name for one in planned)
        say(f"every pair is measured on {names}: about {format_duration(seconds)}, longer where something looks wrong")
    findings, fabrics = list(looked.findings), {}
    with _folder(output) as folder:
        for one in planned:
            checked, wrong = _measured(one, folder / one.fabric.name, is_kept=output is not None)
            fabrics[one.fabric.name] = checked
            findings += wrong
    return CheckedTestbed(
        testbed=looked.testbed.name,
        preflight=looked.preflight,
        clocks=_clocks(looked),
        fabrics=tuple(_with_left_out(fabrics.get(one.name), one.name, looked) for one in looked.testbed.fabrics),
        findings=tuple(sorted(findings, key=lambda one: one.severity is not FindingSeverity.ERROR)),
    )


def measured_rates(testbed: Testbed) -> dict[str, float]:
    """Return the line rate of each fabric without one, as its pairs carry it; what is wrong with nodes is said and left out.

    The payload of the median pair is what arithmetic leaves of the line rate.
    """
    unknown = tuple(one for one in testbed.fabrics if one.wire is None and one.has_interface)
    if not unknown or len(testbed.nodes) < 2:
        return {}
    found = check_testbed(Standing(given=testbed.model_copy(update={"fabrics": unknown})), None)
    for line in told(found.errors):
        say(line)
    return {
        one.name: checked.median_bit_s / (expected_bit_s(with_rate(one, 1.0), checked.layer, STREAM_BYTES) or 1.0)
        for one, checked in zip(unknown, found.fabrics, strict=True)
        if checked.median_bit_s is not None and checked.layer is not None
    }


def with_rate(fabric: Fabric, line_rate_bit_s: float) -> Fabric:
    """Return the fabric with a line rate and Ethernet's framing."""
    return fabric.model_copy(update={"wire": Wire(line_rate_bit_s=line_rate_bit_s)})


def find_place(text: str) -> Standing:
    """Return the testbed that is to be checked; UsageError where it cannot be read, or has no pairs of nodes."""
    venue = find_venue(text)
    if isinstance(venue, OwnLab):
        raise UsageError(
            f"{text} is built for a run as its fabrics say: there is nothing to check",
            hint="start a lab (`fabricbench lab up NAME`) and check lab:NAME, or give a testbed file",
        )
    if venue.given.launcher is LauncherKind.LOCAL or len(venue.given.nodes) < 2:
        raise UsageError(
            f"{text} has one node: there are no pairs to check", hint="`fabricbench doctor` looks at this machine"
        )
    return venue


@contextmanager
def _folder(output: Path | None) -> Iterator[Path]:
    """Give the folder for the runs: the one asked for, else one that is gone afterwards."""
    if output is None:
        with tempfile.TemporaryDirectory(prefix="fabricbench-check-") as folder:
            yield Path(folder)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        is_used = any(output.iterdir())
    except OSError as error:
        raise explained(error, output) from error
    if is_used:
        raise UsageError(f"{output} is not empty", hint="give a new folder")
    yield output


def _measured(one: Measuring, directory: Path, *, is_kept: bool) -> tuple[FabricChecked, Sequence[Finding]]:
    """Measure a fabric, once and again where something looks wrong, and return what it came to."""
    runs: list[Run] = []
    failures: list[Finding] = []
    nodes: Sequence[str] = one.nodes
    while nodes:
        path = directory.with_name(f"{directory.name}-{CONFIRMATION}-{len(runs)}") if runs else directory
        failure = _run(one.again(nodes) if runs else one, path, is_kept=is_kept)
        failures += [failure] if failure is not None else []
        run = _opened(path)
        if run is None:
            failures += [_failed(one, "that no launch came to its end", is_kept=is_kept)] if failure is None else []
            break
        runs.append(run)
        nodes = nodes_to_measure_again(one.fabric, runs)
        if nodes:
            who = "something" if len(nodes) == len(one.nodes) else f"what lies between {folded(nodes)}"
            say(f"{one.fabric.name}: {who} looks slow, and is measured again before it is named")
    if not runs:
        checked = FabricChecked(fabric=one.fabric.name, nodes=one.nodes, unmeasured="no launch came to its end")
        return checked, failures
    checked, findings = check_fabric(one.fabric, one.nodes, runs[0], runs[1:])
    return checked, [*failures, *findings]


def _run(one: Measuring, directory: Path, *, is_kept: bool) -> Finding | None:
    """Measure into a directory; return what went wrong. Raises Interrupted."""
    try:
        with RunProgress() as progress, interruptible(directory, progress.show) as notify:
            command = ("fabricbench", *sys.argv[1:])
            start_run(
                directory,
                one.campaign,
                one.venue,
                one.plan,
                notify=notify,
                command=command,
                preflight=False,
                found=one.found,
            )
    except Interrupted:
        raise Interrupted("interrupted", hint="give the same command to begin again") from None
    except FabricbenchError as error:
        return _failed(one, f"that it cannot be measured: {_shortened(error.message)}", is_kept=is_kept)
    return None


def _failed(one: Measuring, found: str, *, is_kept: bool) -> Finding:
    keep = "" if is_kept else "; `-o RUNDIR` keeps what the ranks wrote"
    return Finding(
        fabric=one.fabric.name,
        subject="launch",
        found=found,
        needed="a launch over all of its nodes that comes to its end",
        action=f"mend what it says{keep}",
    )


def _shortened(message: str) -> str:
    """Return the first line of a message and, of what it quotes below, the last: why the ranks ended."""
    first, *quoted = message.splitlines()
    return f"{first}: {quoted[-1].strip()}" if quoted else first


def _opened(directory: Path) -> Run | None:
    """Return the run in a directory where it has a launch that counts; None where none was begun or came to its end."""
    if not (directory / MANIFEST).exists():
        return None
    run = Run.open(directory)
    return run if run.launches else None


def _with_left_out(checked: FabricChecked | None, name: str, looked: Looked) -> FabricChecked:
    fabric = looked.testbed.fabric(name)
    sound = set(looked.sound_nodes(fabric))
    left_out = tuple(node.name for node in looked.testbed.joined_by(fabric) if node.name not in sound)
    if checked is None:
        why = (
            "no interface: nothing crosses a network"
            if not fabric.has_interface
            else "fewer than two nodes are sound there"
        )
        checked = FabricChecked(fabric=name, unmeasured=why)
    return checked.model_copy(update={"left_out": left_out})


def _clocks(looked: Looked) -> Clocks:
    return Clocks(
        ahead_s={name: round(one.offset_s, 3) for name, one in looked.clocks.items()},
        error_s={name: round(one.error_s, 3) for name, one in looked.clocks.items()},
        source={name: one.facts.clock_source for name, one in looked.answers.items()},
    )


def conclude(found: CheckedTestbed) -> None:
    """Raise EnvironmentLacks where something is wrong, which the text has said already."""
    if found.errors:
        raise EnvironmentLacks(
            f"{found.testbed} is not as its file says: {count(len(found.errors), 'problem')}",
            hint="mend what is told above, and give the same command again",
        )


def render(found: CheckedTestbed, form: PreflightFormat, width: int = UNBOUNDED) -> str:
    """Return what was found in a format; JSON has every fact, text so many columns."""
    if form is PreflightFormat.JSON:
        data: dict[str, Any] = {"is_passed": not found.errors} | found.model_dump(mode="json")
        return as_json(data)
    fabrics = table(
        columns=("fabric", "nodes", "pairs", "lowest", "median", "highest", "expected", "mpi", "full MTU", "path"),
        rows=[_row(one) for one in found.fabrics],
        title="fabrics, as one stream between each two nodes found them",
        spare=("nodes", "highest", "full MTU", "path"),
    )
    nodes = preflight_table(found.preflight, found.findings, width)
    parts = [nodes, "", table_text(fabrics, width), *wrapped(_notes(found), width)]
    parts += problem_lines(found.errors, found.warnings, width)
    return "\n".join(parts if found.errors else [*parts, "", "the testbed is as its file says"])


def _row(one: FabricChecked) -> tuple[str, ...]:
    name = f"{one.fabric} (emulated)" if one.is_emulated else one.fabric
    if one.unmeasured:
        return (name, "", "", f"not measured: {one.unmeasured}", *("" for _ in range(6)))
    round_trip = (
        "" if one.round_trip_ns is None else f"{one.datagram_bytes} B in {format_seconds(one.round_trip_ns * 1e-9)}"
    )
    return (
        name,
        str(len(one.nodes)),
        str(one.pairs),
        *(_rate(value) for value in (one.lowest_bit_s, one.median_bit_s, one.highest_bit_s)),
        _rate(one.expected_bit_s) or "not told",
        _rate(one.mpi_bit_s),
        round_trip,
        {Proof.PROVEN: "proven", Proof.REFUTED: "elsewhere"}.get(one.proof, "unknown") if one.proof else "unknown",
    )


def _rate(value: float | None) -> str:
    return "" if value is None else format_bit_s(value)


def _notes(found: CheckedTestbed) -> Iterator[str]:
    if found.clocks.ahead_s:
        offsets = found.clocks.ahead_s.values()
        worst = max(found.clocks.error_s.values())
        sources = ", ".join(sorted({source or "not told" for source in found.clocks.source.values()}))
        within = format_seconds(max(max(offsets) - min(offsets), worst))
        yield f"clocks: {sources}; those of the day lie within {within} of each other, as far as asking can tell"
    for one in found.fabrics:
        if one.median_bit_s is not None and one.expected_bit_s is None:
            yield f"{one.fabric}: the testbed tells no `line_rate`, so nodes were held against one another only"
        if one.is_beyond_wire:
            yield (
                f"{one.fabric}: {_rate(one.highest_bit_s)} is more than a wire of that rate can carry, "
                f"{_rate(one.expected_bit_s)} of payload: what was in buffers as the stream ended, a shaper's burst, or "
                "`line_rate` or `mtu` of the testbed is too low"
            )
