"""Where a run takes place: what people ask for with `--testbed`, the testbed that it is, and opening it for launching.

A venue is written down with the plan, so that a resumed run takes place in the same one: an own lab is built anew.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fabricbench.campaign.condition import Condition, expanded, sides_of
from fabricbench.configuration import did_you_mean
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import Lab, lab_support, parse_fabrics, running_labs
from fabricbench.lab.fabric import EmulatedFabric
from fabricbench.lab.presets import PRESETS
from fabricbench.lab.process import ProcessIdentity
from fabricbench.lab.topology import CONTROL_INTERFACE, plan_lab
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import find_starter, starter_of
from fabricbench.launch.slurm import SlurmLauncher
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starting import loopback_library, yield_library
from fabricbench.model import Model
from fabricbench.settings.session import Sides
from fabricbench.testbed.allocation import check_allocated, check_in_job
from fabricbench.testbed.model import LauncherKind, Lost, Testbed
from fabricbench.testbed.reading import SRUN, local_testbed, read_testbed

LAB_PREFIX = "lab:"
LOCAL = "local"
USUAL_NODES = 4


class OwnLab(Model):
    """A lab of the run's own: built for it, gone with it, however it ends."""

    kind: Literal["own lab"] = "own lab"
    nodes: int
    fabrics: tuple[EmulatedFabric, ...]

    def testbed(self) -> Testbed:
        """Return the testbed that the lab will be."""
        planned = plan_lab("own", self.nodes, self.fabrics, sorted(os.sched_getaffinity(0)))
        return planned.testbed().model_copy(update={"name": f"lab of {self.nodes} nodes"})

    def without(self, _nodes: Collection[str]) -> OwnLab:
        """Return the lab: none of its nodes fails alone."""
        return self

    def sketch(self) -> Launcher:
        """Return a launcher whose commands can be shown but not run: the lab is not there yet."""
        return LabLauncher(_SketchedLab(self.testbed()), find_starter(), yield_library())

    def check(self) -> None:
        """Raise EnvironmentLacks where no lab can be had."""
        support = lab_support()
        if support.mode == "none":
            raise EnvironmentLacks(
                f"no lab can be had on this machine: {support.reason}",
                hint="use `--testbed local` (this machine's loopback and shared memory), or a machine that allows namespaces",
            )

    @contextmanager
    def open(self) -> Iterator[Launcher]:
        """Build the lab, give its launcher, take it down."""
        self.check()
        name = f"run-{os.getpid()}-{secrets.token_hex(3)}"
        lab = Lab.up(name, self.nodes, self.fabrics, owned=True)
        try:
            yield LabLauncher(lab, find_starter(), yield_library())
        finally:
            lab.down()


class Standing(Model):
    """A testbed that stands there by itself: this machine, machines reached over ssh, or a lab that somebody else runs."""

    kind: Literal["standing"] = "standing"
    given: Testbed

    def testbed(self) -> Testbed:
        """Return the testbed."""
        return self.given

    def without(self, nodes: Collection[str]) -> Standing:
        """Return the venue without these nodes."""
        return self.model_copy(update={"given": self.given.without(nodes)}) if nodes else self

    def sketch(self) -> Launcher:
        """Return the launcher; nothing needs to be opened. UsageError where the nodes are those of another batch job."""
        if self.given.is_allocated:
            check_allocated([node.name for node in self.given.nodes])
        starter, layout = starter_of(self.given), self.given.layout
        match self.given.launcher:
            case LauncherKind.LOCAL:
                return LocalLauncher(starter, yield_library(), layout, loopback_library())
            case LauncherKind.SSH:
                return SshLauncher(starter, self.given)
            case LauncherKind.SLURM:
                return SlurmLauncher(starter, self.given)
            case LauncherKind.LAB:
                return LabLauncher(Lab.open(str(self.given.lab)), starter, yield_library(), layout, self.given)

    def check(self) -> None:
        """Raise EnvironmentLacks where the starter needs a batch job and this runs in none."""
        starter = starter_of(self.given)
        if self.given.launcher.is_cluster and starter.reaches_nodes:
            check_in_job(starter.starter.NAME)
        if self.given.launcher is LauncherKind.SLURM:
            check_in_job(SRUN)
            SlurmLauncher(starter, self.given).check()

    @contextmanager
    def open(self) -> Iterator[Launcher]:
        """Give the launcher and leave the testbed as it is.

        EnvironmentLacks where this machine lacks an interface, or a batch job is needed.
        """
        self.check()
        if self.given.launcher is LauncherKind.LOCAL:
            there = sorted(name for _, name in socket.if_nameindex())
            for fabric in self.given.fabrics:
                if fabric.interface is not None and fabric.interface not in there:
                    raise EnvironmentLacks(
                        f"fabric {fabric.name}: this machine has no interface {fabric.interface!r}",
                        hint=f"it has {', '.join(there)}; correct `interface` in the testbed",
                    )
        yield self.sketch()


class AAPair(Model):
    """A venue in which one fabric stands under two names, so that a campaign compares it with itself."""

    kind: Literal["twins"] = "twins"
    of: OwnLab | Standing = Field(discriminator="kind")
    fabric: str

    def testbed(self) -> Testbed:
        """Return the testbed with the fabric under both names."""
        return self.of.testbed().aa_pair_of(self.fabric)

    def without(self, nodes: Collection[str]) -> AAPair:
        """Return the venue without these nodes."""
        return self.model_copy(update={"of": self.of.without(nodes)})

    def sketch(self) -> Launcher:
        """Return the venue's own launcher: the two names differ in nothing that it looks at."""
        return self.of.sketch()

    @contextmanager
    def open(self) -> Iterator[Launcher]:
        """Open the venue itself."""
        with self.of.open() as launcher:
            yield launcher


class Conditioned(Model):
    """A venue whose fabrics stand in it once for each condition that a campaign measures them in."""

    kind: Literal["conditioned"] = "conditioned"
    of: OwnLab | Standing = Field(discriminator="kind")
    conditions: tuple[Condition, ...] = Field(min_length=1)

    def testbed(self) -> Testbed:
        """Return the testbed with a fabric for each fabric in each of its conditions. Raises UsageError."""
        return expanded(self.of.testbed(), self.conditions)

    def sides(self) -> Sides:
        """Return what is set of hosts for each of these; nothing where none sets anything."""
        return sides_of(self.of.testbed(), self.conditions)

    def without(self, nodes: Collection[str]) -> Conditioned:
        """Return the venue without these nodes."""
        return self.model_copy(update={"of": self.of.without(nodes)})

    def sketch(self) -> Launcher:
        """Return the venue's own launcher, which takes fabrics as it is given them."""
        return self.of.sketch()

    @contextmanager
    def open(self) -> Iterator[Launcher]:
        """Open the venue itself; `campaign.run` applies the conditions."""
        with self.of.open() as launcher:
            yield launcher


def in_conditions(venue: Venue, conditions: tuple[Condition, ...]) -> Venue:
    """Return a venue in the conditions of a campaign. Raises UsageError where one fabric is compared with itself."""
    if not conditions:
        return venue
    if isinstance(venue, AAPair):
        raise UsageError(
            "a self-check compares a fabric with itself, and the campaign varies conditions",
            hint="take a campaign without [[condition]], or give `run` one with two conditions that set the same",
        )
    return Conditioned(of=venue.of if isinstance(venue, Conditioned) else venue, conditions=conditions)


Venue = OwnLab | Standing | AAPair | Conditioned
AnyVenue = Annotated[Venue, Field(discriminator="kind")]


def find_aa_pair(text: str, fabric: str | None, nodes: int | None = None) -> AAPair:
    """Return the venue that compares a fabric with itself: the testbed's only one, or the one named. Raises UsageError."""
    venue = find_venue(text, nodes)
    names = [one.name for one in venue.testbed().fabrics]
    if fabric is None and len(names) > 1:
        raise UsageError(
            f"--testbed {text} has {len(names)} fabrics", hint=f"choose one with --fabric: {', '.join(names)}"
        )
    chosen = fabric or names[0]
    if chosen not in names:
        raise UsageError(f"--testbed {text} has no fabric {chosen!r}", hint=f"there are {', '.join(names)}")
    if isinstance(venue, OwnLab):  # no need for switches that nothing crosses
        venue = venue.model_copy(update={"fabrics": tuple(one for one in venue.fabrics if one.name == chosen)})
    return AAPair(of=venue, fabric=chosen)


def find_venue(text: str, nodes: int | None = None) -> OwnLab | Standing:
    """Return the venue that `--testbed` and `--nodes` ask for: a file, `local`, `lab:FABRICS` or `lab:NAME`. Raises UsageError."""
    if text.startswith(LAB_PREFIX):
        asked = text.removeprefix(LAB_PREFIX)
        first = asked.split(",", maxsplit=1)[0].partition(":")[0].rpartition("=")[2].strip()
        if first in PRESETS:
            return OwnLab(nodes=nodes or USUAL_NODES, fabrics=tuple(parse_fabrics(asked)))
        if asked not in running_labs():
            running = running_labs()
            raise UsageError(
                f"{LAB_PREFIX}{asked} is neither a fabric nor a running lab{did_you_mean(first, [*PRESETS, *running])}",
                hint=f"fabrics: {', '.join(PRESETS)}; labs: {', '.join(running) or 'none is running'}",
            )
    if nodes is not None:
        raise UsageError(
            f"--nodes says how large a lab is to be built, and --testbed {text} builds none",
            hint="leave --nodes out; a testbed file names its nodes",
        )
    if text == LOCAL:
        return Standing(given=local_testbed())
    if text.startswith(LAB_PREFIX):
        return Standing(given=Lab.open(text.removeprefix(LAB_PREFIX)).testbed())
    if not text or ("/" not in text and "." not in text and not Path(text).exists()):
        raise UsageError(
            f"--testbed {text!r} is no file, and neither `{LOCAL}` nor `{LAB_PREFIX}FABRICS`",
            hint=f"write {LAB_PREFIX}fast-ethernet,myrinet, {LAB_PREFIX}NAME of a running lab, {LOCAL}, or a testbed file's path",
        )
    return Standing(given=read_testbed(Path(text)))


class _SketchedLab:
    """Stands for a lab that is not built yet, so that its commands can be shown."""

    directory = Path("LAB")
    agent = directory / "agent"
    control_interface = CONTROL_INTERFACE

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed

    def testbed(self) -> Testbed:
        return self._testbed

    def command_in(
        self, node: str, command: Sequence[str], *, working_directory: Path, environment: Mapping[str, str]
    ) -> list[str]:
        del working_directory
        added = [f"{name}={value}" for name, value in environment.items()]
        return ["fabricbench", "lab", "exec", "LAB", node, "--", *(["env", *added] if added else []), *command]

    def command_in_each(self, nodes: Sequence[str], module: str, arguments: Sequence[str]) -> None:
        del nodes, module, arguments

    @property
    def keeper(self) -> ProcessIdentity:
        raise EnvironmentLacks("the lab is not built yet")

    def processes(self, needed: str | None = None) -> Mapping[int, str]:
        del needed
        return {}

    def lost(self, needed: str | None = None) -> Lost | None:
        del needed
        return None

    def stopped(self) -> Lost | None:
        return None

    def status(self) -> object:
        raise EnvironmentLacks("the lab is not built yet")

    def crossings(self, interface: str, spans: Mapping[int, tuple[int, int]]) -> Mapping[int, list[list[int]]]:
        del interface, spans
        return {}

    def lateness(self, interface: str, spans: Mapping[int, tuple[int, int]]) -> Mapping[int, object]:
        del interface, spans
        raise EnvironmentLacks("the lab is not built yet")
