"""The manifest: what a run is, written before its first launch, and again only where blocks are added or given up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from fabricbench.configuration import first_problem
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.printable import shortened
from fabricbench.record.atomic import replace_text
from fabricbench.record.integrity import MANIFEST, read_file
from fabricbench.record.inventories import Inventory
from fabricbench.testbed.model import Testbed
from fabricbench.testbed.preflight_result import Preflight

FORMAT = "fabricbench/run/"
FORMAT_VERSION = 1
MOST_DIGITS = 9
"""More than that is no version that anybody wrote."""


def subject_of_name(launch_id: str, block: int, fabric: str) -> str:
    """Return the subject of a launch by its name: of plans and manifests of earlier versions, and of launches that none plans."""
    return launch_id.removeprefix(f"b{block:02d}-{fabric}").removeprefix("-")


class PlannedLaunch(Model):
    """A launch that the plan holds: `position` is its place within the randomised block.

    `subject` is what it measures, alike on every fabric: the name of its workload, empty for the measurer.
    """

    launch_id: str
    block: int = Field(ge=0)
    position: int = Field(ge=0)
    fabric: str
    subject: str = ""

    @model_validator(mode="before")
    @classmethod
    def _earlier_plans_told_subjects_in_names(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "subject" not in data:
            launch_id, block, fabric = (data.get(name) for name in ("launch_id", "block", "fabric"))
            if isinstance(launch_id, str) and isinstance(block, int):
                return {**data, "subject": subject_of_name(launch_id, block, str(fabric))}
        return data


class Extension(Model):
    """Blocks that were added to a run, up to `blocks` in all, where `planned` were planned before, or that it gave up unmeasured.

    `measured` is how many held a whole pair: somebody could have looked at those and decided because of what they said.
    """

    blocks: int
    planned: int
    measured: int
    unix_ns: int


class NodeLoss(Model):
    """Nodes that failed, and that a run went on without: every block but those that were whole by then (`kept`) is on the rest.

    `reasons` tells what was heard of each failed node instead of an answer; `ranks` how many ranks the measurer has from then on;
    `left_out` what the rest cannot be asked for, and why.
    """

    reasons: dict[str, str]
    kept: tuple[int, ...] = ()
    ranks: int
    left_out: tuple[str, ...] = ()
    unix_ns: int


def lost_by(losses: Iterable[NodeLoss], block: int) -> tuple[str, ...]:
    """Return the nodes that a block was measured without, or is to be."""
    return tuple(node for loss in losses if block not in loss.kept for node in loss.reasons)


MOST_BLOCKS = 10_000
"""More is a slip of the hand: a run of that many blocks takes weeks."""


def gave_up_blocks(losses: Sequence[NodeLoss], last_block: int) -> bool:
    """Tell whether a run went on with the whole blocks alone once nodes had failed: on the rest no other can be measured."""
    return bool(losses) and last_block in losses[-1].kept


def may_grow(manifest: Manifest, blocks: int) -> bool:
    """Tell whether a run may be given so many blocks: not where it was declared final or gave up blocks."""
    last = max((launch.block for launch in manifest.planned), default=0)
    return not manifest.is_final and not gave_up_blocks(manifest.losses, last) and blocks <= MOST_BLOCKS


def workload_names(manifest: Manifest) -> tuple[str, ...]:
    """Return what the workloads of a run's campaign are called: each by its `name`, else by its `kind`."""
    return tuple(str(table.get("name") or table.get("kind")) for table in manifest.campaign.get("workloads", ()))


def has_moved(ranks: Iterable[int], testbed: Testbed, lost: Collection[str]) -> bool:
    """Tell whether some of these ranks are on other nodes of some fabric where `lost` are missing.

    Rank i is on node i of the fabric's, modulo their number.
    """
    ranks, rest = tuple(ranks), testbed.without(lost)
    if not rest.seats:
        return True
    for fabric in testbed.fabrics:
        before, after = testbed.nodes_of(fabric), rest.nodes_of(fabric)
        if any(before[rank % len(before)] != after[rank % len(after)] for rank in ranks):
            return True
    return False


class Manifest(Model):
    """What was to be measured, on what, from which seed, and what the machines were like.

    `created` is when it was begun; of a run that was `imported` when the first of its texts was measured, and the moment of the
    import where none tells. `imported` is None of a run that was measured here, and of one that an earlier version imported.
    `campaign` is the campaign as data (its own model is the campaign's affair), `versions` maps what (fabricbench, python, mpi,
    compiler) to its version, `inventory` maps hosts to `doctor`'s facts, `command` is what was typed, where it is known.
    `preflight` is how the testbed was found before the run, with its warnings, None of a run before there were any.
    `extensions` tells how blocks were added or given up later; a run that `is_final` takes none. `losses` are nodes that failed
    and that it went on without; the testbed is as it was at the beginning.
    """

    schema_name: Literal["fabricbench/run/1"] = Field(default="fabricbench/run/1", alias="schema")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    imported: datetime | None = Field(default=None, exclude_if=lambda one: one is None)
    campaign_name: Annotated[str, AfterValidator(shortened)]
    campaign: dict[str, Any] = {}
    testbed: Testbed
    seed: int
    command: tuple[str, ...] = ()
    planned: tuple[PlannedLaunch, ...] = ()
    versions: dict[str, str] = {}
    inventory: Inventory = {}
    preflight: Preflight | None = None
    is_final: bool = False
    extensions: tuple[Extension, ...] = ()
    losses: tuple[NodeLoss, ...] = ()

    model_config = {**Model.model_config, "populate_by_name": True}

    @property
    def is_dated_by_import(self) -> bool:
        """Whether nobody knows when it was measured: its date is that of its import."""
        return self.imported is not None and self.imported == self.created


def margin_of(manifest: Manifest) -> float | None:
    """Return the smallest relative difference that matters by the run's campaign; None where that does not tell."""
    margin = manifest.campaign.get("margin")
    return float(margin) if isinstance(margin, int | float) and 0.0 < margin < 1.0 else None


def looks_of(manifest: Manifest) -> tuple[int, ...]:
    """Return how many blocks held a whole pair at each extension, each number once, ascending: looks that verdicts must pay for.

    Whoever adds blocks may do it because of what the data said, so every extension of a run that held data is one look; adding
    twice with nothing measured in between is one look.
    """
    return tuple(sorted({extension.measured for extension in manifest.extensions if extension.measured > 0}))


def paired_blocks(planned: Iterable[PlannedLaunch], measured: Collection[str]) -> set[int]:
    """Return the blocks that hold a pair: two fabrics (or the only one) are measured of some subject (the measurer, or a kernel).

    `measured` are launch ids. One side of a pair has no ratio, so that nobody learns from it which fabric is faster; of three
    fabrics of which one is dead two are compared.
    """
    measured = set(measured)
    groups: dict[tuple[int, str], list[str]] = {}
    for launch in planned:
        groups.setdefault((launch.block, launch.subject), []).append(launch.launch_id)
    return {block for (block, _), ids in groups.items() if len(measured & set(ids)) >= min(2, len(ids))}


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest into the run directory, whole or not at all."""
    replace_text(directory / MANIFEST, manifest_text(manifest))


def manifest_text(manifest: Manifest) -> str:
    """Return what is written of a manifest."""
    return manifest.model_dump_json(by_alias=True, indent=2) + "\n"


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a run directory; UsageError says why a folder is not one that can be read."""
    path = directory / MANIFEST
    text = _text(directory, path)
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        version = _format_version(text)
        if version is not None and version > FORMAT_VERSION:
            raise UsageError(
                f"{directory} was written by a newer fabricbench: its format is {FORMAT}{version}, "
                f"this one reads up to {FORMAT}{FORMAT_VERSION}",
                hint="upgrade fabricbench here",
            ) from None
        raise UsageError(
            f"{path} cannot be read: {first_problem(error)}",
            hint="restore the file from a copy; the launches beside it are untouched",
        ) from error


def _text(directory: Path, path: Path) -> bytes:
    if not directory.exists():
        raise UsageError(f"there is no run directory {directory}", hint="check the path")
    try:
        return read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(
            f"{directory} is not a run directory: it has no {MANIFEST}",
            hint="give the folder that `fabricbench run -o` wrote",
        ) from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="check that it is a file, and its permissions"
        ) from error


def _format_version(text: bytes) -> int | None:
    """Return the format version that a manifest claims, even if nothing else in it is known."""
    mark = f'"{FORMAT}'.encode()
    _, found, rest = text.partition(mark)
    digits = rest.split(b'"', 1)[0]
    return int(digits) if found and digits.isdigit() and len(digits) <= MOST_DIGITS else None
