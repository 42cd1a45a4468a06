"""Writes runs of systems whose truth is known: a processor and a kernel in the inventory, fabrics that are slower by a factor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.manifest import read_manifest, write_manifest
from fabricbench.record.store import Run
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

XEON, EPYC = "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "AMD EPYC 7742 64-Core Processor"
KERNEL = "6.1.0-18-amd64"
NOISE = Noise(launch=0.004, sample=0.01)


def write_system(
    directory: Path,
    fabrics: Mapping[str, float],
    *,
    seed: int,
    processor: str = XEON,
    kernel: str = KERNEL,
    nodes: int = 2,
    mtu: int = 1500,
    blocks: int = 4,
    memory: float = 1.0,
    noise: Noise = NOISE,
) -> Run:
    """Write a run of MPI and memory: `fabrics` maps names to how many times slower each is than 100 µs and 1 Gbit/s.

    `memory` is how many times slower memory is than usual.
    """
    cells = [
        SyntheticCell(
            Layer.MPI,
            Pattern.PINGPONG,
            64,
            {name: 100e3 * slower for name, slower in fabrics.items()},
            receive=Receive.LIBRARY,
            samples=20,
        ),
        SyntheticCell(
            Layer.MPI,
            Pattern.STREAM,
            65536,
            {name: 1e9 / slower for name, slower in fabrics.items()},
            receive=Receive.LIBRARY,
            samples=20,
        ),
        SyntheticCell(Layer.MEMORY, Pattern.PINGPONG, 64, dict.fromkeys(fabrics, 500.0 * memory), samples=20),
    ]
    testbed = synthetic_testbed(dict.fromkeys(fabrics, 100e9), nodes=nodes, mtu=mtu)
    write_synthetic_run(directory, cells=cells, blocks=blocks, seed=seed, noise=noise, testbed=testbed)
    manifest = read_manifest(directory)
    facts = {"cpu.model": processor, "kernel.release": kernel, "mpi.version": "Open MPI v5.0.3"}
    inventory = {node.name: dict(facts) for node in testbed.nodes}
    write_manifest(directory, manifest.model_copy(update={"inventory": inventory}))
    return Run.open(directory)
