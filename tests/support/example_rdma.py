"""A run of the campaign `rdma` whose truth is known: two rails of 20 and 40 Mbit/s, the slower of which retransmits under load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.chapters import rdma
from fabricbench.model import Layer, Pattern, RdmaDoor
from fabricbench.record.lines import PortState, RdmaAttachment, RdmaTransport
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.testbed.wire import Wire
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

OF_RDMA = frozenset(rdma.CHAPTER.figures)
"""The figures that findings without RDMA hold nothing for."""

RATES = {"rail20": 20e6, "rail40": 40e6}
SIZES = (64, 1024, 16384, 65536)
QUEUE_PAIRS = (1, 4, 16, 64)
RETRANSMISSIONS = 5
"""On rail20, in each launch of each test of three senders with 64 queue pairs."""


def ports(fabric: str, *, retransmissions: int = 0) -> PortState:
    """What the ports of two hosts counted in a launch: ordinary work, and what one had to send again."""
    again = {"completer_retry_err": retransmissions} if retransmissions else {}
    device = f"rxe{list(RATES).index(fabric)}/1"
    return {"n0": {device: {"rcvd_pkts": 900}}, "n1": {device: {"sent_pkts": 900, **again}}}


def attached(
    fabric: str,
    host: int = 0,
    *,
    driver: str = "rxe",
    transport: RdmaTransport = RdmaTransport.ROCE_V2,
    port_mtu: int = 1024,
) -> RdmaAttachment:
    """How a host of the run was attached by RDMA."""
    return RdmaAttachment(
        ranks=(host,),
        host=f"n{host}",
        device=f"{driver}{list(RATES).index(fabric)}",
        port=1,
        driver=driver,
        transport=transport,
        netdev=f"fe{list(RATES).index(fabric)}",
        gid_index=1,
        gid=f"0000:0000:0000:0000:0000:ffff:0a62:000{host + 1}",
        port_mtu=port_mtu,
        path_mtu=None if transport is RdmaTransport.IWARP else port_mtu,
        inline_bytes=64,
    )


def rdma_cells(
    doors: Sequence[RdmaDoor] = (RdmaDoor.SEND,), *, is_read: bool = True, queue_pairs: Sequence[int] = QUEUE_PAIRS
) -> list[SyntheticCell]:
    """Return bandwidths and latencies of the campaign; `is_read`: the ports could be read."""
    cells = []
    for door in doors:
        of_door = {} if door is RdmaDoor.SEND else {"door": door.value}
        for size in SIZES:
            trips = {name: 60e3 + 2 * (1.1 * size + 90) * 8e9 / rate for name, rate in RATES.items()}
            quiet = {name: ports(name) for name in RATES} if is_read else {}
            cells.append(
                SyntheticCell(
                    Layer.RDMA, Pattern.PINGPONG, size, trips, samples=30, port_state=quiet, parameters={**of_door}
                )
            )
            for flows in queue_pairs:
                several = {"flows": flows} if flows > 1 else {}
                lossy = {**quiet, "rail20": ports("rail20", retransmissions=RETRANSMISSIONS)} if is_read else {}
                load = PlanCongestor(
                    layer=Layer.RDMA,
                    pattern=Pattern.INCAST,
                    message_bytes=4096,
                    ranks=(5, 2, 3),
                    parameters={**several, **of_door},
                )
                waits = {name: 3 * flows * 4096 * 8e9 / rate for name, rate in RATES.items()}
                if size <= 1024:
                    slow = {name: trips[name] + waits[name] for name in RATES}
                    cells.append(
                        SyntheticCell(
                            Layer.RDMA,
                            Pattern.PINGPONG,
                            size,
                            slow,
                            samples=30,
                            congestor=load,
                            port_state=quiet,
                            parameters={**of_door},
                        )
                    )
                for ranks in (2, 4):
                    reached = {name: rate * 0.98 * size / (size + 30) for name, rate in RATES.items()}
                    cells.append(
                        SyntheticCell(
                            Layer.RDMA,
                            Pattern.INCAST,
                            size,
                            reached,
                            samples=10,
                            messages_per_sample=8,
                            ranks=tuple(range(ranks)),
                            channels=(ranks - 1) * flows,
                            parameters={**several, **of_door},
                            port_state=lossy if flows == 64 and ranks == 4 else quiet,
                        )
                    )
    return cells


def rdma_findings(folder: Path, cells: Sequence[SyntheticCell] | None = None, unproven: Sequence[str] = ()) -> Findings:
    """Return the findings of such a run, written into a folder."""
    bed = synthetic_testbed(RATES, nodes=4, mtu=4200)
    fabrics = tuple(
        fabric.model_copy(update={"layers": tuple(Layer), "wire": Wire(line_rate_bit_s=RATES[fabric.name])})
        for fabric in bed.fabrics
    )
    bed = bed.model_copy(update={"fabrics": fabrics})
    chosen = rdma_cells() if cells is None else cells
    return analyse([write_synthetic_run(folder, cells=chosen, blocks=8, testbed=bed, unproven=unproven)])
