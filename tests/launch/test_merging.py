"""What the testbed sets and what we set, merged by one rule: held for every starter and every library alike."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fabricbench.errors import UsageError
from fabricbench.launch.library import mpich, openmpi
from fabricbench.launch.mpi import LIBRARIES, STARTERS, MpiStarter
from fabricbench.launch.starter import hydra, srun
from fabricbench.launch.starter.prterun import ORTERUN, PRTERUN, OpenMpiStarter
from fabricbench.launch.starter.template import Template
from fabricbench.launch.starting import Library, Placement, Selection, Starter
from fabricbench.testbed.model import Fabric, Layout
from support.extending import example

YIELD = Path("/lib/yield.so")
PLACEMENT = Placement(4, (), Layout(threads_per_rank=2), preload=YIELD)
NET = Fabric(name="net", interface="eth1")
PROGRAM = ["probe", "plan"]
TEMPLATE = Template(("aprun", "-n", "{ranks}", "{arguments}", "{program}"))
GFORKER: Any = example("starter")


class AnotherLibrary:
    """One more library, as CONTRIBUTING.md has it."""

    NAME = "Another MPI"
    WAITS_ASLEEP: Mapping[str, str] = {}
    SLURM_PMI = "pmi9"

    def is_it(self, version_text: str) -> bool:
        return "another" in version_text

    def selection(self, fabric: Fabric, *, shares_memory: bool) -> Selection:
        return Selection({"ANOTHER_DEVICE": str(fabric.interface), "ANOTHER_MEMORY": str(shares_memory)})


EVERY = [
    pytest.param(MpiStarter("prog", starter, "1.0", library, "2.0"), id=f"{starter.NAME}-{library.NAME}")
    for starter, library in product((*STARTERS, TEMPLATE, GFORKER), (*LIBRARIES, AnotherLibrary()))
]


def setting(starter: Starter, name: str, value: str) -> tuple[str, ...]:
    """The arguments with which a user of that starter would set a variable; none where it is not known which do."""
    if isinstance(starter, Template):
        return ()
    if starter.parse == hydra.parse:
        return ("-genv", name, value)
    if starter is srun:
        return (f"--export=ALL,{name}={value}",)
    assert isinstance(starter, OpenMpiStarter), f"tell here how a user of {starter.NAME} sets a variable"
    prefix = "OMPI_MCA_"
    return ("--mca", name.removeprefix(prefix), value) if name.startswith(prefix) else ("-x", f"{name}={value}")


def told(mpi: MpiStarter, **update: object) -> dict[str, list[str]]:
    """Every variable that the tokens set, with all values that they give it."""
    tokens = mpi.tokens(PLACEMENT, NET.model_copy(update=update), PROGRAM)
    found: dict[str, list[str]] = {}
    for index, token in enumerate(tokens):
        options = {"--mca": "OMPI_MCA_", "--prtemca": "PRTE_MCA_", "--pmixmca": "PMIX_MCA_", "-genv": ""}
        if token in options:
            found.setdefault(options[token] + tokens[index + 1], []).append(tokens[index + 2])
        elif (before := tokens[index - 1]) not in options and tokens[index - 2] not in options and "=" in token:
            name, _, value = token.partition("=")
            if not name.startswith("-") and (before == "-x" or "env" in tokens[:index]):
                found.setdefault(name, []).append(value)
    return found


def variable_of(library: Library) -> tuple[str, str]:
    """A variable of what the library is told, with its value."""
    return next(iter(library.selection(NET, shares_memory=False).environment.items()))


@pytest.mark.parametrize("mpi", EVERY)
def test_ours_are_in_force_where_the_testbed_says_nothing(mpi: MpiStarter):
    name, value = variable_of(mpi.library)
    found = told(mpi)
    assert found[name] == [value]
    assert found["LD_PRELOAD"] == [str(YIELD)]
    assert found["OMP_NUM_THREADS"] == ["2"]
    assert "mpi replaced" not in mpi.conditions(PLACEMENT, NET)


@pytest.mark.parametrize("mpi", EVERY)
def test_a_variable_of_the_testbed_takes_the_place_of_ours_of_that_name_and_of_no_other(mpi: MpiStarter):
    name, ours = variable_of(mpi.library)
    before = told(mpi)
    fabric = NET.model_copy(update={"mpi_environment": {name: "theirs", "UCX_TLS": "rc"}})
    assert told(mpi, mpi_environment=fabric.mpi_environment) == {**before, name: ["theirs"], "UCX_TLS": ["rc"]}
    conditions = mpi.conditions(PLACEMENT, fabric)
    assert conditions["mpi replaced"] == f"{name}={ours} by the testbed's {name}"
    assert f"{name}=theirs" in conditions["mpi environment"]


@pytest.mark.parametrize("mpi", [one for one in EVERY if "template" not in str(one.id)])
def test_a_variable_that_an_argument_sets_wins_over_ours_and_over_the_testbeds_own(mpi: MpiStarter):
    name, _ = variable_of(mpi.library)
    arguments = setting(mpi.starter, name, "by-argument")
    found = told(mpi, mpi_environment={name: "by-variable"}, mpi_arguments=arguments)
    assert found == {**told(mpi), name: ["by-argument"]}
    fabric = NET.model_copy(update={"mpi_arguments": arguments})
    assert mpi.conditions(PLACEMENT, fabric)["mpi replaced"].endswith(f"by the testbed's {name}")


@pytest.mark.parametrize("mpi", EVERY)
def test_preloads_are_joined_ours_first_and_none_is_lost(mpi: MpiStarter):
    by_argument = setting(mpi.starter, "LD_PRELOAD", "/second.so")
    found = told(mpi, mpi_environment={"LD_PRELOAD": "/first.so"}, mpi_arguments=by_argument)
    assert found["LD_PRELOAD"] == [f"{YIELD}:/first.so" + ":/second.so" * bool(by_argument)]


@pytest.mark.parametrize("mpi", EVERY)
def test_all_other_arguments_follow_ours_in_their_order_and_take_nothing_away(mpi: MpiStarter):
    arguments = ("--other", "one", "--more=two")
    tokens = mpi.tokens(PLACEMENT, NET.model_copy(update={"mpi_arguments": arguments}), PROGRAM)
    first = tokens.index("--other")
    assert tuple(tokens[first : first + 3]) == arguments
    assert [*tokens[:first], *tokens[first + 3 :]] == mpi.tokens(PLACEMENT, NET, PROGRAM)
    fabric = NET.model_copy(update={"mpi_arguments": arguments})
    assert mpi.conditions(PLACEMENT, fabric)["mpi arguments"] == "--other one --more=two"


@pytest.mark.parametrize(
    ("starter", "arguments"), [(hydra, ("-genvlist", "FI_PROVIDER,A")), (PRTERUN, ("-x", "FI_PROVIDER"))]
)
def test_a_variable_that_is_handed_on_from_the_caller_is_not_set_by_us(starter: Starter, arguments: tuple[str, ...]):
    mpi = MpiStarter("prog", starter, "1.0", mpich, "2.0")
    fabric = NET.model_copy(update={"mpi_arguments": arguments})
    assert "FI_PROVIDER" not in told(mpi, mpi_arguments=arguments)
    assert " ".join(arguments) in " ".join(mpi.tokens(PLACEMENT, fabric, PROGRAM))
    handed_on = fabric.model_copy(update={"mpi_arguments": (arguments[0], "LD_PRELOAD")})
    with pytest.raises(UsageError, match="hand on the caller's LD_PRELOAD"):
        mpi.tokens(PLACEMENT, handed_on, PROGRAM)


@pytest.mark.parametrize("starter", [PRTERUN, ORTERUN], ids=["prterun", "orterun"])
def test_what_open_mpi_is_not_to_use_takes_the_place_of_what_it_is_to_use(starter: Starter):
    mpi = MpiStarter("prog", starter, "1.0", openmpi, "2.0")
    found = told(mpi, mpi_arguments=("--mca", "btl_tcp_if_exclude", "lo"))
    assert found["OMPI_MCA_btl_tcp_if_exclude"] == ["lo"]
    assert "OMPI_MCA_btl_tcp_if_include" not in found


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("-env", "A", "1", "-genv", "B=2", "--genv", "C", "3"), {"A": "1", "B": "2", "C": "3"}),
        (("-genvall", "-envlist", "A,B", "-genv"), {"A": None, "B": None}),
    ],
)
def test_hydras_ways_to_set_a_variable_are_known(arguments: tuple[str, ...], names: dict[str, str | None]):
    assert hydra.parse(arguments).environment == names


def test_sruns_ways_to_set_a_variable_are_known():
    assert srun.parse(("--export", "ALL,A=1", "--x")).arguments == ("--export=ALL", "--x")
    assert srun.parse(("--export=A=1,B=2",)) == srun.Given({"A": "1", "B": "2"}, ())


CLASHING = [
    (hydra, ("-bind-to", "core"), "-bind-to"),
    (hydra, ("--binding=core",), "-bind-to"),
    (PRTERUN, ("--bind-to", "core"), "--bind-to"),
    (PRTERUN, ("--map-by", "core"), "--map-by"),
    (ORTERUN, ("-bind-to", "core"), "--bind-to"),
    (srun, ("--cpu-bind=cores",), "--cpu-bind=none"),
    (hydra, ("-Bind-To", "core"), "-bind-to"),
    *[(PRTERUN, one, "--bind-to") for one in (("--bindto", "core"), ("--bind-t", "core"), ("--bind-to-core",))],
    *[(PRTERUN, one, "--map-by") for one in (("--mapby", "node"), ("--bynode",), ("--npersocket", "1"))],
    *[(srun, (one,), "--cpu-bind=none") for one in ("--cpu_bind=cores", "--cpu-bin=cores")],
]


@pytest.mark.parametrize(("starter", "arguments", "ours"), CLASHING)
def test_an_argument_that_binds_or_maps_takes_the_place_of_ours(
    starter: Starter, arguments: tuple[str, ...], ours: str
):
    """hydra and prterun end every launch where an option stands twice."""
    mpi, fabric = MpiStarter("prog", starter, "1.0", mpich, "2.0"), NET.model_copy(update={"mpi_arguments": arguments})
    tokens = mpi.tokens(PLACEMENT, fabric, PROGRAM)
    without = [token for token in tokens if token not in arguments]
    assert [token for token in tokens if token in arguments] == list(arguments)
    assert ours not in without
    assert ours in mpi.tokens(PLACEMENT, NET, PROGRAM)
    said = mpi.conditions(PLACEMENT, fabric)["binding"]
    assert said == ("none" if "map-by" in ours else "as mpi_arguments say")


REFUSED = [
    *[
        (hydra, arguments)
        for arguments in (("-launcher", "ssh"), ("-bootstrap=ssh",), ("--wdir", "/tmp"), ("-np", "2"))
    ],
    *[(hydra, arguments) for arguments in (("-f", "file"), ("-hosts", "n5"))],
    *[(one, arguments) for one in (PRTERUN, ORTERUN) for arguments in (("-np", "2"), ("--host", "n5"), ("-H", "n5"))],
    *[(srun, arguments) for arguments in (("-n4",), ("--ntasks=4",), ("-w", "n5"), ("--chdir", "/tmp"))],
    *[(hydra, (f"-{name}", "2")) for name in ("N", "NP", "HOSTS", "hostlist", "machines", "WDIR", "Launcher")],
    *[(PRTERUN, (name, "f")) for name in ("--rankfile", "--pernode", "--hostfil", "--nper")],
    *[(srun, (name,)) for name in ("-vn2", "-ln4", "--nodel=n5", "--ntas=4", "--tasks-per-node=3", "--chd=/tmp")],
]


@pytest.mark.parametrize(("starter", "arguments"), REFUSED)
def test_an_argument_that_says_what_a_launch_is_is_refused_with_who_says_it(
    starter: Starter, arguments: tuple[str, ...]
):
    mpi = MpiStarter("prog", starter, "1.0", mpich, "2.0")
    with pytest.raises(UsageError, match=r"mpi_arguments: .* is written by fabricbench itself: ") as raised:
        mpi.tokens(PLACEMENT, NET.model_copy(update={"mpi_arguments": arguments}), PROGRAM)
    assert arguments[0] in raised.value.message


@pytest.mark.parametrize(
    ("starter", "arguments"),
    [
        (hydra, ("-genv", "A", "-n")),
        (hydra, ("-GENV", "A", "-n")),
        (hydra, ("-prepend-pattern", "-n", "-Outfile-pattern", "-bind-to")),
        (PRTERUN, ("-nolocal", "--x", "--tune", "-c", "--display", "-bind-to")),
        (srun, ("--network=x", "--comment", "-n", "-A", "-N", "--job-name", "--cpu-bind=cores")),
        (srun, ("-vl", "--exclusive", "-Kn", "--ntasks-per-core=1")),
    ],
)
def test_values_and_other_options_that_begin_alike_are_nobodys_clash(starter: Starter, arguments: tuple[str, ...]):
    assert not starter.parse(arguments).replaced
