"""From a campaign and a testbed to the cells that are to be measured, each with the fabrics that carry it. Pure.

A cell keeps its id on every fabric and in every launch, so that a number means the same wherever it is read. What a layer can
carry on a fabric comes first: which layers it has at all, and the smallest and largest message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from fabricbench.campaign.estimate import (
    PAIR_WINDOW_SECONDS,
    WINDOW_SECONDS,
    line_rate_bit_s,
    slow_parameters,
    why_too_slow,
)
from fabricbench.campaign.members import SeatPlan, UnfitRanksError
from fabricbench.campaign.specification import MOST_STAGED_SAMPLES, Campaign, Experiment, Sweep, spread
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.pattern_facts import STAGES, STAGES_BY_USER, Family, Parameters
from fabricbench.patterns import PATTERNS, why_impossible
from fabricbench.quantity import format_bytes
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe
from fabricbench.record.setup import Value, setup_of, variant
from fabricbench.testbed.model import Fabric, LauncherKind, MpiTransport, Testbed
from fabricbench.testbed.wire import IP_HEADER_BYTES, UDP_HEADER_BYTES

DOUBLE_BYTES = 8
"""Operations that sum take doubles; the table of patterns says so by their smallest message."""

LARGEST_IP_PACKET_BYTES = 65_535
"""RFC 791: the length field has 16 bits."""

LARGEST_MESSAGE_BYTES = 2**30
"""For memory and the byte streams: a bound against typing errors, not a limit of theirs."""

LARGEST_RDMA_PACKET_BYTES, SMALLEST_RDMA_PACKET_BYTES = 4096, 256
"""The largest and smallest path MTU of RDMA, which are powers of two."""

ROCE_HEADER_BYTES = 96
"""What RoCE leaves for its headers when it finds the path MTU below an interface's (iboe_get_mtu of the kernel)."""

IPOIB_HEADER_BYTES = 4
"""An interface of IP over InfiniBand has a path MTU less these (RFC 4391)."""

WITHOUT_INTERFACE = frozenset({Layer.MEMORY, Layer.MPI})
"""What a fabric that is no network interface (shared memory) can still be measured with."""


def has_layer(fabric: Fabric, layer: Layer) -> bool:
    """Tell whether the fabric has the layer: it is listed, and reached through an interface where it needs one."""
    return layer in fabric.layers and (fabric.has_interface or layer in WITHOUT_INTERFACE)


def shows_stages(fabric: Fabric, layer: Layer) -> bool:
    """Tell whether the stages of a layer that has some are known on a fabric: of MPI where it goes through sockets of TCP."""
    return layer is not Layer.MPI or (fabric.has_interface and fabric.transport is MpiTransport.TCP)


def carries(fabric: Fabric, experiment: Experiment) -> bool:
    """Tell whether a fabric has a layer of an experiment, with stages where it asks for them."""
    return any(
        has_layer(fabric, layer) and (not experiment.stages or shows_stages(fabric, layer))
        for layer in experiment.layers
    )


def why_unfit_datagram(size: int, parameters: Parameters, fabrics: Iterable[Fabric]) -> str | None:
    """Return why messages of that size are no datagrams of layer rdma, which are one packet; None if they are."""
    if parameters.get("door") != "datagram":
        return None
    for fabric in fabrics:
        most = min(_rdma_packet_bytes(fabric), int(parameters.get("mtu", LARGEST_RDMA_PACKET_BYTES)))
        if size > most:
            return f"a datagram on {fabric.name} is one packet, which holds at most {most} B"
    return None


def _rdma_packet_bytes(fabric: Fabric) -> int:
    """Return the path MTU of a fabric by that of its interface."""
    for packet in (4096, 2048, 1024, 512):
        if fabric.mtu - ROCE_HEADER_BYTES >= packet or fabric.mtu + IPOIB_HEADER_BYTES == packet:
            return packet
    return SMALLEST_RDMA_PACKET_BYTES


def why_unfit_size(size: int, layer: Layer, pattern: Pattern) -> str | None:
    """Return why messages of that size are too small for the layer or the pattern; None if they are not."""
    facts = PATTERNS[pattern]
    least = facts.smallest_message_bytes if layer is Layer.MPI else max(1, facts.smallest_message_bytes)
    if size < least:
        return f"the smallest is {least} B"
    if facts.family is Family.OPERATION and facts.smallest_message_bytes == DOUBLE_BYTES and size % DOUBLE_BYTES:
        return f"it sums doubles, so sizes are multiples of {DOUBLE_BYTES} B"
    return None


def largest_message_bytes(layer: Layer, fabric: Fabric) -> int:
    """Return the largest message that the layer carries on the fabric (datagrams may be fragmented, frames may not)."""
    if layer is Layer.FRAME:
        return fabric.mtu
    if layer is Layer.IP:
        return LARGEST_IP_PACKET_BYTES - IP_HEADER_BYTES
    if layer is Layer.UDP:
        return LARGEST_IP_PACKET_BYTES - IP_HEADER_BYTES - UDP_HEADER_BYTES
    return LARGEST_MESSAGE_BYTES


WHERE_RDMA_COMES_FROM = (
    f'write layers = ["{Layer.RDMA}", ...] into the [[fabric]] whose interface has an RDMA port, and '
    'rdma = { device = "mlx5_0", port = 1 } where that is not the one beside the interface; `fabricbench testbed init` finds the '
    "ports of your nodes, and `rdma link` shows those of this one"
)

RDMA_IN_A_LAB = (
    "`fabricbench lab up NAME --rdma --fabric ... --fabric ...` gives the nodes of a lab RDMA devices (docs/rdma.md); then "
    "--testbed lab:NAME"
)

LARGEST_WINDOW_BYTES = 4 * 1024 * 1024
WINDOW_MESSAGES = 1024
"""A layer that is limited by the cost of a message, not by the wire, ends its window by this."""


class PlannedCell(Model):
    """A probe and the fabrics that it is measured on."""

    probe: PlanProbe
    fabrics: tuple[str, ...]


class CellPlan(Model):
    """All cells by id, and in words what was left out and why."""

    cells: tuple[PlannedCell, ...]
    notes: tuple[str, ...]


def plan_cells(campaign: Campaign, testbed: Testbed) -> CellPlan:
    """Return the cells of a campaign on a testbed; UsageError where an explicit wish cannot be carried."""
    planner = _Planner(campaign, testbed)
    for number, experiment in enumerate(campaign.experiments, start=1):
        planner.add(number, experiment)
    if not campaign.workloads:  # they run on every fabric with MPI
        planner.refuse_idle_fabrics()
    return CellPlan(
        cells=tuple(planner.cells),
        notes=(*planner.missing_layers(), *dict.fromkeys(planner.notes), *planner.slow_notes()),
    )


class _Planner:
    """Collects cells and notes over the experiments of one campaign."""

    def __init__(self, campaign: Campaign, testbed: Testbed) -> None:
        self.campaign = campaign
        self.testbed = testbed
        self.cells: list[PlannedCell] = []
        self.notes: list[str] = []
        self._missing: dict[str, dict[Layer, None]] = {}
        self._too_slow: dict[tuple[Layer, Pattern, int, str], list[PlanProbe]] = {}
        self._slow_parameters: dict[str, set[int]] = {}
        self._without_stages: set[str] = set()
        self.seats = SeatPlan(testbed)
        self._seen: set[object] = set()
        self._measured_by: dict[object, int] = {}

    def add(self, number: int, experiment: Experiment) -> None:
        for layer in experiment.layers:
            fabrics = self._fabrics_with(layer, number)
            if experiment.stages:
                fabrics = list(self._with_stages(layer, fabrics, number))
            members = self._members(experiment, layer, number)
            if not fabrics or members is None:
                continue
            names = tuple(fabric.name for fabric in fabrics)
            sizes = self._sizes(experiment, layer, fabrics, number)
            variations = [
                each
                for each in self._spread(experiment.parameters, layer, experiment.pattern, fabrics)
                if self._is_possible(experiment, layer, each, number)
            ]
            congestors = list(self._congestors(experiment, layer, members, fabrics, number))
            for probe in self._probes(experiment, layer, members, variations, sizes):
                if self._is_too_slow(probe, fabrics) or not self._is_datagram(probe, fabrics, number):
                    continue
                self._append(probe, names, number, may_be_there=experiment.congestor is not None)
                if experiment.stages:
                    self._append(_stamped(probe), names, number, may_be_there=False)
                for congestor, carriers in congestors:
                    congested = probe.model_copy(update={"congestor": congestor})
                    self._append(congested, carriers, number, may_be_there=False)

    def _append(self, probe: PlanProbe, fabrics: tuple[str, ...], number: int, *, may_be_there: bool) -> None:
        """Number a cell. One that `may_be_there` is left out if another experiment measures it: alone is alone."""
        if self._is_measured(probe, number, may_be_there=may_be_there):
            return
        numbered = probe.model_copy(update={"id": len(self.cells)})
        self.cells.append(PlannedCell(probe=numbered, fabrics=fabrics))

    def missing_layers(self) -> list[str]:
        return [
            f"{fabric} does not have {', '.join(layers)}: left out there" for fabric, layers in self._missing.items()
        ]

    def refuse_idle_fabrics(self) -> None:
        asked = {layer for experiment in self.campaign.experiments for layer in experiment.layers}
        if asked == {Layer.RDMA} and not any(has_layer(fabric, Layer.RDMA) for fabric in self.testbed.fabrics):
            raise UsageError(
                f"no fabric of testbed {self.testbed.name} has layer {Layer.RDMA}, and campaign {self.campaign.name} measures "
                "no other",
                hint=RDMA_IN_A_LAB if self.testbed.launcher is LauncherKind.LAB else WHERE_RDMA_COMES_FROM,
            )
        for fabric in self.testbed.fabrics:
            if not any(fabric.name in cell.fabrics for cell in self.cells):
                raise UsageError(
                    f"fabric {fabric.name} carries nothing that campaign {self.campaign.name} measures",
                    hint="ask for a layer that it has, or leave it out of the testbed",
                )

    def _fabrics_with(self, layer: Layer, number: int) -> list[Fabric]:
        having = [fabric for fabric in self.testbed.fabrics if has_layer(fabric, layer)]
        lacking = [fabric for fabric in self.testbed.fabrics if fabric not in having]
        if lacking and self.campaign.unfit == "refuse":
            have = ", ".join(each for each in Layer if has_layer(lacking[0], each))
            raise UsageError(
                f"[[experiment]] number {number} asks for layer {layer}, which fabric {lacking[0].name} does not have "
                f"(it has {have})",
                hint='take the layer or the fabric out, or write unfit = "leave out" in [campaign]',
            )
        for fabric in lacking:
            self._missing.setdefault(fabric.name, {})[layer] = None
        return having

    def _with_stages(self, layer: Layer, fabrics: Iterable[Fabric], number: int) -> Iterator[Fabric]:
        for fabric in fabrics:
            if shows_stages(fabric, layer):
                yield fabric
            elif fabric.name not in self._without_stages:
                self._without_stages.add(fabric.name)
                self._leave_out_or_refuse(
                    f"{layer} with stages on {fabric.name}",
                    "stages are known of those that go through sockets of TCP (`transport` of the [[fabric]])",
                    number,
                    f"take {layer} or the fabric out of the experiment with stages",
                )

    def _members(self, experiment: Experiment, layer: Layer, number: int) -> tuple[int, ...] | None:
        try:
            return self.seats.members(experiment, layer)
        except UnfitRanksError as error:
            self._leave_out_or_refuse(experiment.pattern, str(error), number, "give fewer `ranks` or more nodes")
            return None

    def _is_possible(self, experiment: Experiment, layer: Layer, parameters: Parameters, number: int) -> bool:
        why = why_impossible(layer, experiment.pattern, parameters)
        if why is not None:
            names = ", ".join(PATTERNS[experiment.pattern].layers)
            named = "".join(f" with {name} {value}" for name, value in parameters.items())
            what = f"{layer} {experiment.pattern}{named}"
            self._leave_out_or_refuse(what, why, number, f"{experiment.pattern} is possible over {names}")
        return why is None

    def _sizes(self, experiment: Experiment, layer: Layer, fabrics: list[Fabric], number: int) -> list[int]:
        facts = PATTERNS[experiment.pattern]
        if not facts.has_size:
            return [facts.smallest_message_bytes]
        sizes = experiment.message_bytes
        return [size for size in sizes if self._is_carried(size, layer, experiment.pattern, fabrics, number)]

    def _is_carried(self, size: int, layer: Layer, pattern: Pattern, fabrics: list[Fabric], number: int) -> bool:
        """Tell whether every one of the fabrics carries the size: what is compared must exist on all."""
        why = why_unfit_size(size, layer, pattern)
        for fabric in fabrics:
            most = largest_message_bytes(layer, fabric)
            if why is None and size > most:
                why = f"{fabric.name} carries at most {most} B"
        if why is not None:
            whose = "" if pattern in (Pattern.PINGPONG, Pattern.STREAM) else f"{pattern} "
            what = f"{layer} {whose}messages of {format_bytes(size)}"
            self._leave_out_or_refuse(what, why, number, "use other sizes", "are")
        return why is None

    def _is_datagram(self, probe: PlanProbe, fabrics: list[Fabric], number: int) -> bool:
        """Tell whether every one of the fabrics carries it, where it asks for datagrams of layer rdma."""
        why = why_unfit_datagram(probe.message_bytes, probe.parameters, fabrics) if probe.layer is Layer.RDMA else None
        if why is not None:
            what = f"{probe.layer} datagram messages of {format_bytes(probe.message_bytes)}"
            self._leave_out_or_refuse(what, why, number, "use other sizes or another door", "are")
        return why is None

    def _congestors(
        self, experiment: Experiment, layer: Layer, members: tuple[int, ...], fabrics: list[Fabric], number: int
    ) -> Iterator[tuple[PlanCongestor, tuple[str, ...]]]:
        """Yield what congests the cells of a layer, each with the fabrics that have both layers."""
        congestor = experiment.congestor
        if congestor is None:
            return
        what = f"{layer} {experiment.pattern} beside {congestor.pattern}"
        if layer is Layer.MEMORY:
            self._leave_out_or_refuse(what, "memory crosses no network", number, "take memory out of `layers`")
            return
        try:
            ranks = self.seats.congestors(congestor, members)
        except UnfitRanksError as error:
            self._leave_out_or_refuse(what, str(error), number, "give the congestor `ranks` or the testbed nodes")
            return
        of = congestor.layer or layer
        with_both = [fabric for fabric in self._fabrics_with(of, number) if fabric in fabrics]
        for parameters in self._spread(congestor.parameters, of, congestor.pattern, with_both):
            why = why_impossible(of, congestor.pattern, parameters)
            if why is not None:
                self._leave_out_or_refuse(what, why, number, "use another layer or other parameters")
                continue
            for size in congestor.message_bytes:
                if with_both and self._is_carried(size, of, congestor.pattern, with_both, number):
                    yield (
                        PlanCongestor(
                            layer=of,
                            pattern=congestor.pattern,
                            message_bytes=size,
                            ranks=ranks,
                            parameters=parameters,
                            is_idle=congestor.idle,
                        ),
                        tuple(fabric.name for fabric in with_both),
                    )

    def _is_too_slow(self, probe: PlanProbe, fabrics: list[Fabric]) -> bool:
        """Tell whether a campaign that leaves out what is unfit does so with a cell; noted for all of a size at once."""
        why = why_too_slow(probe, fabrics) if self.campaign.unfit != "refuse" else None
        if why is not None:
            self._too_slow.setdefault((probe.layer, probe.pattern, probe.message_bytes, why), []).append(probe)
        return why is not None

    def _spread(
        self, wished: Sweep, layer: Layer, pattern: Pattern, fabrics: list[Fabric]
    ) -> Iterator[dict[str, Value]]:
        """Yield the combinations of parameters, of queue pairs over slow fabrics with what those need and nobody told."""
        adapts = layer is Layer.RDMA and self.campaign.unfit != "refuse" and fabrics
        for parameters in spread(wished):
            needed = slow_parameters(pattern, fabrics, int(parameters.get("flows", 1))) if adapts else {}
            added = {name: value for name, value in needed.items() if name not in parameters}
            for name, value in added.items():
                self._slow_parameters.setdefault(name, set()).add(int(value))
            yield {**parameters, **added}

    def slow_notes(self) -> Iterator[str]:
        if self._slow_parameters:
            told = " and ".join(
                f"{name} {min(values)}" + (f" to {max(values)}, fewer the more they are," if len(values) > 1 else "")
                for name, values in sorted(self._slow_parameters.items())
            )
            slowest = min(self.testbed.fabrics, key=line_rate_bit_s)
            yield f"rdma: queue pairs have {told}, since queues of {slowest.name} hold messages for longer than usual"
        for (layer, pattern, size, why), probes in self._too_slow.items():
            fewest = min((len(probe.ranks) - 1) * int(probe.parameters.get("flows", 1)) for probe in probes)
            beyond = f" over {fewest} queue pairs in all and more" if fewest > 1 else ""
            yield f"{layer} {pattern} messages of {format_bytes(size)}{beyond} are left out: {why}"

    def _leave_out_or_refuse(self, what: str, why: str, number: int, advice: str, verb: str = "is") -> None:
        if self.campaign.unfit == "refuse":
            raise UsageError(
                f"[[experiment]] number {number}: {what} cannot be measured: {why}",
                hint=f'{advice}, or write unfit = "leave out" in [campaign]',
            )
        self.notes.append(f"{what} {verb} left out: {why}")

    def _is_measured(self, probe: PlanProbe, number: int, *, may_be_there: bool) -> bool:
        """Tell whether a cell is there already; UsageError where it was not expected to be."""
        key = (probe.layer, probe.pattern, probe.receive, probe.message_bytes, setup_of(probe))
        first = self._measured_by.setdefault(key, number)
        is_new = key not in self._seen
        self._seen.add(key)
        if not is_new and not may_be_there:
            named = ", ".join(filter(None, (f"{probe.layer} {probe.pattern}", variant(probe))))
            what = f"{named} of {format_bytes(probe.message_bytes)}"
            raise UsageError(
                f"[[experiment]] number {number} measures {what} again, number {first} does already",
                hint="remove it from one of the two",
            )
        return not is_new

    def _probes(
        self,
        experiment: Experiment,
        layer: Layer,
        members: tuple[int, ...],
        variations: list[dict[str, Value]],
        sizes: list[int],
    ) -> Iterator[PlanProbe]:
        for receive, parameters, size in product(self._receives(experiment, layer), variations, sizes):
            yield PlanProbe(
                id=0,
                layer=layer,
                pattern=experiment.pattern,
                message_bytes=size,
                receive=receive,
                ranks=members,
                warmup_samples=experiment.warmup_samples,
                verify_messages=experiment.verify_messages,
                stopping=experiment.stopping,
                parameters=parameters,
            )

    def _receives(self, experiment: Experiment, layer: Layer) -> tuple[Receive, ...]:
        if layer is Layer.MPI:
            return (Receive.LIBRARY,)
        if layer is Layer.MEMORY:
            return (Receive.BLOCKING,)  # one rank alone: nothing is received
        return experiment.receive or (Receive(self.testbed.default_receive),)


def _stamped(probe: PlanProbe) -> PlanProbe:
    """Return the cell whose messages are stamped on their way beside one whose are not: another one, of fewer messages."""
    stopping = probe.stopping
    fewer = {
        "minimum_samples": min(stopping.minimum_samples, MOST_STAGED_SAMPLES),
        "maximum_samples": min(stopping.maximum_samples, MOST_STAGED_SAMPLES),
    }
    return probe.model_copy(
        update={
            "parameters": {**probe.parameters, STAGES: STAGES_BY_USER},
            "stopping": stopping.model_copy(update=fewer),
        }
    )


def window_messages(probe: PlanProbe, fabric: Fabric) -> int:
    """Return how many messages of a stream are one sample: an answered window, or as many as take a set time at line rate."""
    is_stream = PATTERNS[probe.pattern].is_stream
    if not (is_stream or probe.pattern is Pattern.PAIRS_STREAM) or probe.layer is Layer.MEMORY:
        return 1
    if answered := int(probe.parameters.get("window", 0)):
        return answered
    seconds = WINDOW_SECONDS if is_stream else PAIR_WINDOW_SECONDS
    window_bytes = min(line_rate_bit_s(fabric) / 8 * seconds, LARGEST_WINDOW_BYTES)
    return max(1, min(WINDOW_MESSAGES, int(window_bytes / max(1, probe.message_bytes))))
