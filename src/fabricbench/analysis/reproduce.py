"""What somebody needs to measure the same again and to know that they hold the same data: command, version, seed, hash.

The hash of the data is the one that `fabricbench verify` tells, and can be recomputed by sha256sum (docs/run-directory.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import join

from fabricbench.record.integrity import HASHED, data_hash
from fabricbench.record.manifest import Manifest
from fabricbench.record.store import Run

NEW_DIRECTORY = "RUNDIR"
"""Stands for the output: the same folder is not empty any more."""


def reproduce(run: Run) -> tuple[str, ...]:
    """Return the lines: how to measure it again, with what it was measured, what its data hash to."""
    manifest = run.manifest
    versions = manifest.versions
    version = versions.get("fabricbench", "of unknown version")
    others = [
        f"{name} {versions[name]}" for name in ("mpi", "compiler") if versions.get(name) not in (None, "", "none")
    ]
    return (
        _command(manifest),
        ", ".join([f"fabricbench {version}", f"seed {manifest.seed}", *others]),
        f"data SHA-256 {data_hash(run.path)}, as `fabricbench verify` tells it (manifest.json, each launch's {', '.join(HASHED)})",
    )


def again(command: Sequence[str], seed: int, blocks: int, blocks_in_campaign: int | None) -> tuple[str, ...]:
    """Return a stored `fabricbench run` as it can be given again: another output, the seed drawn, the blocks there are.

    Any other command is returned as it was.
    """
    if len(command) < 2 or command[1] != "run":
        return tuple(command)
    rest, has_seed, has_blocks = list(_without_output(command)), False, False
    for index, token in enumerate(rest):
        name = token.partition("=")[0]
        has_seed |= name == "--seed"
        has_blocks |= name in ("--blocks", "--budget")
        if name == "--blocks" and blocks:  # a run that was extended has more than its command said
            rest[index : index + 2] = [f"--blocks={blocks}"] if "=" in token else ["--blocks", str(blocks)]
    if not has_seed:
        rest += ["--seed", str(seed)]
    if not has_blocks and blocks and blocks_in_campaign not in (None, blocks):
        rest += ["--blocks", str(blocks)]
    return (*rest, "-o", NEW_DIRECTORY)


def testbed_arguments(manifest: Manifest) -> tuple[str, ...]:
    """Return the arguments that named the testbed when the run was started; empty where the command was not recorded."""
    found: list[str] = []
    tokens = iter(manifest.command)
    for token in tokens:
        name, equals, _ = token.partition("=")
        if name in ("--testbed", "--nodes"):
            found += [token] if equals else [token, next(tokens, "")]
    return tuple(found)


def _command(manifest: Manifest) -> str:
    blocks = len({launch.block for launch in manifest.planned})
    stored = manifest.campaign.get("blocks")
    if manifest.command:
        return join(again(manifest.command, manifest.seed, blocks, stored if isinstance(stored, int) else None))
    names = ", ".join(fabric.name for fabric in manifest.testbed.fabrics)
    return (
        f"campaign {manifest.campaign_name} in {blocks} blocks with seed {manifest.seed} on testbed {manifest.testbed.name} "
        f"({names}); its command was not recorded"
    )


def _without_output(command: Sequence[str]) -> Iterator[str]:
    """Yield the tokens but those that name the run directory."""
    tokens = iter(command)
    for token in tokens:
        if token in ("-o", "--output"):
            next(tokens, None)
        elif not token.startswith("--output=") and not (token.startswith("-o") and not token.startswith("--")):
            yield token
