"""The first testbed file of hosts: what was found on them as TOML, with comments that say what it rests on and what to correct.

Pure text. It is read back by `reading` before anybody gets it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from fabricbench.errors import EnvironmentLacks, FabricbenchError
from fabricbench.model import Layer
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.printable import one_line
from fabricbench.quantity import count, write_bit_s
from fabricbench.testbed.allocation import ALLOCATION
from fabricbench.testbed.discovery import Discovery, InterfaceGroup, LeftOutInterfaces
from fabricbench.testbed.model import INTERFACE_NAME, LauncherKind, Testbed
from fabricbench.testbed.preflight_result import folded
from fabricbench.testbed.reading import read_testbed

WIDTH = 110
USUAL_MTU = 1500

ENOUGH_WITHOUT_CONTROL = 2
"""So many other networks make a comparison: the one that ssh arrives over is then offered behind comment signs."""

RAW = (Layer.FRAME, Layer.IP)


@dataclass(frozen=True)
class HowAsked:
    """How the hosts were asked, which the file says as well. `command` is what was typed, `mpi` the MPI of ours by what hosts told.

    `raw_refused` are the hosts on which raw sockets may not be opened.
    """

    name: str
    launcher: LauncherKind
    command: str
    lab: str | None = None
    starter: str | None = None
    reach: tuple[str, ...] = ()
    is_allocated: bool = False
    mpi: Mapping[str, str] | None = None
    raw_refused: tuple[str, ...] = ()
    others_mpi: Mapping[str, tuple[str, ...]] | None = None


def first_file(found: Discovery, origin: HowAsked) -> str:
    """Return the text of a testbed file; EnvironmentLacks where the hosts share no network."""
    if not found.networks:
        told = "\n".join(f"  {line}" for line in map(_left_out, _gathered(found.left_out)))
        raise EnvironmentLacks(
            f"no network was found that joins {folded(found.nodes)}\n{told}".rstrip(),
            hint="give the interfaces of each network IPv4 addresses in one subnet, or write the file by hand (docs/testbeds.md)",
        )
    lines = [*_head(found, origin), "", *_testbed(found, origin)]
    spare = _spare(found.networks)
    for network in found.networks:
        lines += ["", *_fabric(network, origin, is_spare=network is spare)]
    lines += _below(found, origin)
    return "\n".join(lines) + "\n"


def read_back(text: str) -> Testbed:
    """Return the testbed that a text describes; EnvironmentLacks where it cannot be read, which is a mistake of ours."""
    with tempfile.TemporaryDirectory(prefix="fabricbench-") as folder:
        path = Path(folder) / "testbed.toml"
        path.write_text(text, encoding="utf-8")
        try:
            return read_testbed(path)
        except FabricbenchError as error:
            raise EnvironmentLacks(
                f"the file that was put together cannot be read back: {error.message}\n{text}",
                hint="correct it by hand, and report this: it is a mistake of fabricbench's",
            ) from error


def _head(found: Discovery, origin: HowAsked) -> Iterator[str]:
    fabrics = count(len(found.networks), "network")
    yield from _comment(
        f"Written by `{origin.command}`, which found {fabrics} on {count(len(found.nodes), 'host')}. Read it, correct it, then "
        "prove it: `fabricbench testbed check FILE`."
    )
    yield from _comment(
        "What people usually correct: the names of fabrics, line_rate where no driver told it, prices, and which networks are to "
        "be compared: take out what is none of them. All keys: docs/testbeds.md."
    )
    by_mpi: dict[str, list[str]] = {}
    for node, version in (origin.mpi or {}).items():
        by_mpi.setdefault(version or "none that answers", []).append(node)
    for version, nodes in by_mpi.items():
        yield from _comment(f"MPI on {folded(nodes)}: {version}, the one that fabricbench was built with there.")


def _testbed(found: Discovery, origin: HowAsked) -> Iterator[str]:
    yield "[testbed]"
    yield f"name = {_text(origin.name)}"
    yield f"launcher = {_text(origin.launcher)}"
    if origin.lab is not None:
        yield f"lab = {_text(origin.lab)}"
    if origin.starter is not None:
        yield f"starter = {_text(origin.starter)}"
    if origin.reach:
        yield f"reach = [{', '.join(map(_text, origin.reach))}]"
    nodes = folded(found.nodes)
    if origin.is_allocated:
        yield f"nodes = {_text(ALLOCATION)}  # those of the batch job; they were {one_line(nodes)}"
    else:
        yield f"nodes = {_text(nodes)}"


def _spare(networks: Sequence[InterfaceGroup]) -> InterfaceGroup | None:
    """Return the network that the nodes are reached over, where enough others are there to be compared."""
    control = [one for one in networks if one.is_control]
    return control[0] if control and len(networks) - 1 >= ENOUGH_WITHOUT_CONTROL else None


def _fabric(network: InterfaceGroup, origin: HowAsked, *, is_spare: bool) -> Iterator[str]:
    reached = "the control network: the nodes are reached over it"
    if is_spare:
        yield from _comment(f"{network.name} is {reached}. Take the signs away to measure it as well.")
    lines = list(_table(network, origin))
    remarks = [reached, *network.remarks] if network.is_control and not is_spare else network.remarks
    for remark in remarks:
        yield from _comment(f"{remark}.")
    yield from (f"# {line}" for line in lines) if is_spare else lines


def _table(network: InterfaceGroup, origin: HowAsked) -> Iterator[str]:
    interface = network.interface
    yield "[[fabric]]"
    yield f"name = {_text(network.name)}"
    if interface is not None and re.match(INTERFACE_NAME, interface):
        yield f"interface = {_text(interface)}"
    elif len({one.interface.name for one in network.members}) > 1:
        named: dict[str, list[str]] = {}
        for one in network.members:
            named.setdefault(one.interface.name, []).append(one.node)
        yield from _comment(f"called {_both((name, folded(nodes)) for name, nodes in named.items())}")
    if network.needs_subnet or interface is None or not re.match(INTERFACE_NAME, interface):
        yield f"subnet = {_text(str(network.subnets[0]))}"
    else:
        yield from _comment(f"{', '.join(map(str, network.subnets[:3]))}{', ...' * (len(network.subnets) > 3)}")
    if network.mtu != USUAL_MTU:
        yield f"mtu = {network.mtu}"
    if network.speed_bit_s is not None:
        yield f"line_rate = {_text(write_bit_s(network.speed_bit_s))}"
    else:
        yield '# line_rate = "1Gbit/s"  # no driver tells it: `init --measure` does'
    rdma = (Layer.RDMA,) if network.rdma else ()
    has = [layer for layer in Layer if layer in (*USUAL_LAYERS, *rdma)]
    if not origin.raw_refused and rdma:
        yield f"layers = [{', '.join(map(_text, has))}]"
    if origin.raw_refused:
        layers = [layer for layer in has if layer not in RAW]
        lacking = f"frame and ip need CAP_NET_RAW, which {_where(origin.raw_refused)} lacks"
        yield f"layers = [{', '.join(map(_text, layers))}]  # {lacking}"


def _below(found: Discovery, origin: HowAsked) -> Iterator[str]:
    """Yield what was seen and is no fabric."""
    left_out = _gathered(found.left_out)
    if left_out:
        yield ""
        yield "# Left out:"
        for one in left_out:
            yield from _comment(f"* {_left_out(one)}")
    for port, nodes in found.idle_rdma:
        yield ""
        yield from _comment(
            f"RDMA port {port} on {folded(nodes)} belongs to no network above. To measure it, give its network interface (`ib0`) "
            "an address on every node: addresses are how ranks find each other."
        )
    if origin.others_mpi:
        yield ""
        yield from _comment("Other MPIs are installed. One that is to be measured gets a table such as this one:")
        for prefix, nodes in origin.others_mpi.items():
            yield f"# [[mpi]]  # on {_where(nodes)}"
            yield f"# name = {_text(_mpi_name(prefix))}"
            yield f"# prefix = {_text(prefix)}"


def _gathered(left_out: Sequence[LeftOutInterfaces]) -> list[LeftOutInterfaces]:
    """Return what is left out, interfaces of one reason on the same hosts together."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in left_out:
        found.setdefault((one.reason, one.nodes), []).append(one.interface)
    return [LeftOutInterfaces(", ".join(names), nodes, reason) for (reason, nodes), names in found.items()]


def _left_out(one: LeftOutInterfaces) -> str:
    return f"{one.interface} on {folded(one.nodes)}: {one.reason}"


def _both(named: Iterator[tuple[str, str]]) -> str:
    return ", ".join(f"{name} on {nodes}" for name, nodes in named)


def _where(nodes: Sequence[str]) -> str:
    return one_line(folded(nodes))


def _mpi_name(prefix: str) -> str:
    """Return what an MPI may be called by its folder: `/usr/lib64/openmpi` -> `openmpi`."""
    words = [word for word in Path(prefix).parts if any(name in word.lower() for name in ("mpi", "mvapich"))]
    return (words[-1] if words else "system").lower()


def _text(value: str) -> str:
    """Return a basic string of TOML, which are JSON's but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> list[str]:
    return wrap(one_line(text), WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
