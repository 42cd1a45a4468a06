"""`fabricbench list`: every layer, pattern and operation, what it measures and what it may be told, in words and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fabricbench.cli import completion
from fabricbench.cli.output import check_output, entry, hanging, write_output
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.native import doors
from fabricbench.pattern_facts import Family, Parameter, Parameters, PatternFacts, chosen_parameters
from fabricbench.patterns import PATTERNS, why_impossible

app = typer.Typer()


@app.command(name="list")
def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=completion.measurable,
            help="A pattern, an operation, a layer, a kind of workload or an application; `workloads` for all of these, "
            "`mpis` for the MPIs that fabricbench is built with.",
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """List the layers, patterns, operations and kinds of workload that can be measured, or tell one of them in detail.

    Example: `fabricbench list`, `fabricbench list chaos`, `fabricbench list hpl` or `fabricbench list mpis`
    """
    check_output(output)
    write_output(as_data(name) if json_ else as_text(name), output)


LAYERS = {
    Layer.MEMORY: "the processor's memory: copies within a node, the ceiling of everything above it",
    Layer.FRAME: "raw Ethernet frames (AF_PACKET): the wire and the driver, nothing above",
    Layer.IP: "raw IP datagrams: what routing and fragmentation add",
    Layer.UDP: "UDP datagrams: what ports and sockets add",
    Layer.TCP: "TCP connections: what reliability and congestion control add",
    Layer.RDMA: "RDMA verbs (InfiniBand, RoCE, iWARP): the adapter itself, past the kernel's stack",
    Layer.MPI: "MPI messages and operations, over the fabric under test",
}

FAMILIES = {
    Family.PAIR: "Two ranks; the first leads.",
    Family.LOCKSTEP: "Every rank sends to and receives from its neighbours, turn after turn.",
    Family.FLOOD: "All channels carry as much as they can for a while.",
    Family.MATRIX: "Every pair of ranks in its turn.",
    Family.OPERATION: "MPI operations, from a start that clocks agree on.",
    Family.WORKLOAD: "Programs that do real work, each started for itself.",
}

METRICS = {
    Metric.ROUND_TRIP_TIME: "round trip",
    Metric.OPERATION_TIME: "time",
    Metric.THROUGHPUT: "throughput",
    Metric.MESSAGE_RATE: "message rate",
    Metric.WORK_RATE: "rate of work",
}

SAMPLES = {
    Family.PAIR: "one round trip",
    Family.LOCKSTEP: "one turn, from when the last rank was done with the one before until the last is done with it",
    Family.FLOOD: "one window of time, with the bytes that arrived at all receivers in it",
    Family.MATRIX: "one round trip of one pair; those of all pairs together, and each pair by itself as a channel",
    Family.OPERATION: "one call, from the start that the ranks' clocks agree on to its end on the slowest rank; samples whose "
    "start some rank missed are kept, marked, and do not count",
    Family.WORKLOAD: "one run, by the program's own clock; its checks, its profile and its rate are in launch.json",
}


def as_text(name: str | None) -> str:
    """Return the list as text; UsageError where nothing has this name."""
    if name is None:
        return "\n".join(_overview()) + "\n"
    lines = [] if (found := _find(name)) is None else [*_detail(found)]
    if found in (None, Pattern.NPB):  # which is a workload as well
        from fabricbench.cli import list_workloads  # noqa: PLC0415 - patterns are listed without loading what it needs

        lines += [*([""] if lines else []), *list_workloads.lines(name)]
    return "\n".join(lines) + "\n"


def as_data(name: str | None) -> str:
    """Return the list as JSON."""
    if name is None:
        data = {
            "layers": [_layer_data(layer) for layer in Layer],
            "patterns": [_pattern_data(facts) for facts in PATTERNS.values()],
        }
    else:
        data, found = {}, _find(name)
        if found in (None, Pattern.NPB):
            from fabricbench.cli import list_workloads  # noqa: PLC0415 - as above

            data = list_workloads.data(name)
        if found is not None:
            data |= _layer_data(found) if isinstance(found, Layer) else _pattern_data(PATTERNS[found])
    return json.dumps(data, indent=2) + "\n"


def _find(name: str) -> Layer | Pattern | None:
    return Layer(name) if name in set(Layer) else Pattern(name) if name in set(Pattern) else None


def _overview() -> Iterator[str]:
    yield "Layers, from the bottom up"
    yield from (hanging(f"  {layer:8} ", text) for layer, text in LAYERS.items())
    widest = max(len(pattern) for pattern in Pattern)
    for family, text in FAMILIES.items():
        yield ""
        yield text
        for facts in (one for one in PATTERNS.values() if one.family is family):
            yield hanging(
                f"  {facts.name:{widest}}  {METRICS[facts.metric]:12}  ", f"{facts.summary}{_defaults(facts)}"
            )
    yield ""
    yield "`fabricbench list workloads` tells which kinds of kernels and applications [[workload]] of a campaign may have."
    yield "`fabricbench list NAME` tells one of them in detail: its exact metric, its parameters, and which layers can carry it;"
    yield "of a kind of workload which keys it has, and which values they take."


def _defaults(facts: PatternFacts) -> str:
    parts = [f"{name}={parameter.default}" for name, parameter in facts.parameters.items()]
    return f" [{', '.join(parts)}]" if parts else ""


def _detail(found: Layer | Pattern) -> Iterator[str]:
    return _layer_detail(found) if isinstance(found, Layer) else _pattern_detail(PATTERNS[found])


def _layer_detail(layer: Layer) -> Iterator[str]:
    yield f"{layer}: {LAYERS[layer]}"
    yield ""
    if names := doors().get(layer):
        yield entry("doors", ", ".join(names))
    for name, parameter in chosen_parameters(layer).items():
        yield entry("parameter", _parameter(name, parameter))
    able = [pattern for pattern in Pattern if why_impossible(layer, pattern, {}) is None]
    yield entry("can carry", ", ".join(able))
    reasons: dict[str, list[str]] = {}
    for pattern in Pattern:
        why = why_impossible(layer, pattern, {})
        if why is not None:
            reasons.setdefault(why, []).append(pattern)
    for why, patterns in reasons.items():
        yield entry("cannot", f"{', '.join(patterns)}: {why}")
    with_flows = why_impossible(layer, Pattern.INCAST, {"flows": 2})
    if with_flows is not None and Pattern.INCAST in able:
        yield entry("cannot", f"flows above 1: {with_flows}")


def _pattern_detail(facts: PatternFacts) -> Iterator[str]:
    pattern = Pattern(facts.name)
    yield f"{pattern}: {facts.summary}"
    yield ""
    for what, text in _facts(facts):
        yield entry(what, text)
    for name, parameter in facts.parameters.items():
        yield entry("parameter", _parameter(name, parameter))
    able = [layer for layer in Layer if why_impossible(layer, pattern, {}) is None]
    yield entry("layers", ", ".join(able))
    for why, layers in _reasons(pattern, [layer for layer in Layer if layer not in able], {}):
        yield entry("not over", f"{', '.join(layers)}: {why}")
    if "flows" in facts.parameters:
        for why, layers in _reasons(pattern, able, {"flows": 2}):
            yield entry("one flow", f"over {', '.join(layers)}: {why}")


def _reasons(pattern: Pattern, layers: Iterable[Layer], parameters: Parameters) -> Iterable[tuple[str, list[str]]]:
    """Return each reason why some of the layers cannot carry a pattern, with these layers."""
    reasons: dict[str, list[str]] = {}
    for layer in layers:
        why = why_impossible(layer, pattern, parameters)
        if why is not None:
            reasons.setdefault(why, []).append(layer)
    return reasons.items()


OTHER_TIMES = (
    (
        "also kept",
        "barrier_start_ns: from when a barrier before the call lets each rank go, mean over calls and ranks, as OSU",
    ),
    (
        "also kept",
        "back_to_back_ns: calls one after the other without a barrier, time over number on the slowest rank, as IMB",
    ),
)
"""The other two definitions of an operation's time, in the values of a cell's end: docs/collectives.md."""


def _facts(facts: PatternFacts) -> Iterator[tuple[str, str]]:
    yield "measures", _metric(facts)
    yield "a sample", facts.sample or SAMPLES[facts.family]
    if facts.family is Family.OPERATION:
        yield from OTHER_TIMES if facts.most_ranks != 2 else OTHER_TIMES[1:]
    if facts.channels is not None:
        yield (
            "channels",
            f"{facts.channels} among n ranks; the mean logical-channel throughput is the throughput over this",
        )
    yield "ranks", _ranks(facts)
    if not facts.has_size:
        yield "size", "none to choose" + (f": {facts.smallest_message_bytes} B" if facts.smallest_message_bytes else "")
    elif facts.smallest_message_bytes > 1:
        yield "size", f"from {facts.smallest_message_bytes} B, whole doubles"


def _metric(facts: PatternFacts) -> str:
    match facts.metric:
        case Metric.ROUND_TRIP_TIME:
            return "round trip time (ns), never halved; a launch counts with the median of its samples"
        case Metric.OPERATION_TIME:
            return "time (ns); a launch counts with the median of its samples"
        case Metric.THROUGHPUT:
            return "throughput (bit/s): payload that arrived; a launch counts with all its bits over all its time"
    return "message rate (message/s): messages that arrived; a launch counts with all of them over all its time"


def _ranks(facts: PatternFacts) -> str:
    alone = ", one over memory" if Layer.MEMORY in facts.layers else ""
    if facts.most_ranks is None:
        least = max(facts.least_ranks, 2) if alone else facts.least_ranks
        number = "an even number" if facts.needs_even_ranks else f"{least} or more"
        return f"{number}; all there are if a campaign does not say"
    return f"{facts.most_ranks}{alone}"


def _parameter(name: str, parameter: Parameter) -> str:
    if parameter.words:
        values = ", ".join(parameter.words)
    elif isinstance(parameter.default, str):
        values = "any text"
    else:
        values = f"{parameter.least:.10g} to {parameter.most:.10g}"
    return f"{name} = {parameter.default} ({values}): {parameter.summary}"


def _layer_data(layer: Layer) -> dict[str, Any]:
    return {
        "layer": layer.value,
        "summary": LAYERS[layer],
        "doors": list(doors().get(layer, ())),
        "parameters": {name: asdict(one) for name, one in chosen_parameters(layer).items()},
        "patterns": {pattern.value: why_impossible(layer, pattern, {}) for pattern in Pattern},
    }


def _pattern_data(facts: PatternFacts) -> dict[str, Any]:
    """Return an entry for programs; `layers` maps each layer to None, or to the reason why it cannot."""
    return {
        "pattern": facts.name,
        "family": facts.family.value,
        "metric": facts.metric.value,
        "unit": facts.metric.unit,
        "summary": facts.summary,
        "least_ranks": facts.least_ranks,
        "most_ranks": facts.most_ranks,
        "has_size": facts.has_size,
        "smallest_message_bytes": facts.smallest_message_bytes,
        "parameters": {name: asdict(one) for name, one in facts.parameters.items()},
        "layers": {layer.value: why_impossible(layer, Pattern(facts.name), {}) for layer in Layer},
    }
