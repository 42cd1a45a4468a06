"""How starters are told where ranks go and what they are bound to, and a real run that srun starts."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing, find_venue
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch import installation
from fabricbench.launch.library import mpich, openmpi
from fabricbench.launch.mpi import MpiStarter, find_starter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra, srun
from fabricbench.launch.starter.prterun import ORTERUN, PRTERUN
from fabricbench.launch.starter.template import Template, check_fan_out, check_reach, reached, spread
from fabricbench.launch.starting import Job, Placement
from fabricbench.model import Layer, Pattern
from fabricbench.native import build_info
from fabricbench.record.store import Run
from fabricbench.testbed.model import Binding, Fabric, LauncherKind, Layout, Node, Testbed
from support import fake_srun
from support.scripts import script

NET = Fabric(name="net", interface="eth1")
PROGRAM = ["probe", "a plan"]
NODES = ("n0", "n1")
SRUN = MpiStarter("srun", srun, "22.05.8", mpich, "5.0.2")


def after(tokens: Sequence[str], option: str) -> str:
    return tokens[list(tokens).index(option) + 1]


def bound(starter: object, layout: Layout, ranks: int = 2) -> list[str]:
    mpi = MpiStarter("prog", starter, "5.0", mpich, "5.0.2")  # type: ignore[arg-type]
    return mpi.tokens(Placement(ranks, NODES, layout), NET, PROGRAM)


def test_srun_starts_a_step_of_the_job_that_shares_its_processors_and_goes_around_the_nodes():
    uneven = SRUN.tokens(Placement(5, NODES), NET, PROGRAM)
    assert not any(token.startswith("--ntasks-per-node") for token in uneven)
    tokens = SRUN.tokens(Placement(6, NODES), NET, PROGRAM)
    assert tokens[:1] == ["srun"]
    assert {
        *("--mpi=pmi2", "--nodes=2", "--nodelist=n0,n1", "--ntasks=6", "--ntasks-per-node=3", "--distribution=cyclic"),
        *("--cpu-bind=none", "--overlap", "--export=ALL", "--chdir=/", "--kill-on-bad-exit=1"),
    } <= set(tokens)
    assert tokens[tokens.index("env") + 1 :][-2:] == PROGRAM
    assert "FI_TCP_IFACE=eth1" in tokens
    of_open_mpi = MpiStarter("srun", srun, "22.05.8", openmpi, "5.0.11").tokens(Placement(2, NODES), NET, PROGRAM)
    assert {"--mpi=pmix", "OMPI_MCA_btl=tcp,self"} <= set(of_open_mpi)


@pytest.mark.parametrize(
    ("binding", "of_hydra", "of_open_mpi", "of_srun"),
    [
        (Binding.NONE, "none", "none", "--cpu-bind=none"),
        (Binding.CORE, "core", "core", "--cpu-bind=cores"),
        (Binding.SOCKET, "socket", "socket", "--cpu-bind=sockets"),
    ],
)
def test_binding_is_as_the_testbed_says(binding: Binding, of_hydra: str, of_open_mpi: str, of_srun: str):
    layout = Layout(binding=binding)
    assert after(bound(hydra, layout), "-bind-to") == of_hydra
    assert after(bound(PRTERUN, layout), "--bind-to") == of_open_mpi
    assert after(bound(ORTERUN, layout), "--bind-to") == of_open_mpi
    assert of_srun in bound(srun, layout)


def test_a_rank_with_threads_gets_as_many_cores():
    layout = Layout(binding=Binding.CORE, threads_per_rank=4)
    assert after(bound(hydra, layout), "-bind-to") == "core:4"
    assert after(bound(PRTERUN, layout), "--map-by") == "slot:PE=4"
    assert after(bound(ORTERUN, layout, ranks=4), "--map-by") == "node:PE=4"
    assert "--cpus-per-task=4" in bound(srun, layout)
    assert {"OMP_NUM_THREADS=4"} <= set(bound(srun, layout))


def test_more_ranks_than_the_testbed_seats_on_a_node_are_refused():
    assert Placement(6, NODES, Layout(ranks_per_node=3)).ranks_on_each_host == 3
    with pytest.raises(UsageError, match="7 ranks on 2 nodes are 4 on each, and the testbed has ranks_per_node = 3"):
        Placement(7, NODES, Layout(ranks_per_node=3))


def test_ranks_of_a_node_talk_through_memory_only_where_the_testbed_seats_several_there():
    assert "MPIR_CVAR_NOLOCAL=1" in bound(srun, Layout())
    assert "MPIR_CVAR_NOLOCAL=1" not in bound(srun, Layout(ranks_per_node=2))


def test_a_template_is_filled_in_token_by_token():
    template = Template(
        ("ssh", "head", "aprun -n {ranks} -N {ranks_per_node} -L {hosts} {arguments} {program}", "{binding}{nodes}")
    )
    starter = MpiStarter("/usr/bin/ssh", template, "", mpich, "5.0.2")
    fabric = NET.model_copy(update={"mpi_arguments": ("-cc", "0,1 2")})
    tokens = starter.tokens(Placement(3, NODES), fabric, PROGRAM)
    assert tokens[:2] == ["/usr/bin/ssh", "head"]
    assert tokens[2].startswith("aprun -n 3 -N 2 -L n0,n1 -cc '0,1 2' env ")
    assert tokens[2].endswith(" probe 'a plan'")
    assert tokens[3] == "none2"
    alone = Template(("jsrun", "{arguments}", "-n", "{ranks}", "{program}"))
    tokens = MpiStarter("jsrun", alone, "", mpich, "5.0.2").tokens(Placement(3, NODES), fabric, PROGRAM)
    assert tokens[:5] == ["jsrun", "-cc", "0,1 2", "-n", "3"]
    assert tokens[-2:] == PROGRAM


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (("aprun", "{rank}", "{program}"), "{rank} is no placeholder; did you mean 'ranks'?"),
        (("aprun", "-n", "{ranks}"), "its tokens start no program"),
        (("flux", "--env={name}", "{program}"), "lacks {value}"),
    ],
)
def test_a_template_that_cannot_start_a_program_is_refused(template: tuple[str, ...], said: str):
    with pytest.raises(UsageError) as raised:
        Template(template)
    assert said in raised.value.message


SETTINGS = {"A": "1", "B": "2 3"}


@pytest.mark.parametrize(
    ("template", "started"),
    [
        (("flux", "-n", "{ranks}", "--env={name}={value}", "{program}"), ("-n", "2", "--env=A=1", "--env=B=2 3")),
        (("jsrun", "-E", "{name}={value}", "-n{ranks}", "{program}"), ("-E", "A=1", "-E", "B=2 3", "-n2")),
        (("mpiexec", "-genv", "{name}", "{value}", "{program}"), ("-genv", "A", "1", "-genv", "B", "2 3")),
        (("prog", "--quiet", "--set={name}={value}", "{program}"), ("--quiet", "--set=A=1", "--set=B=2 3")),
    ],
)
def test_a_template_with_an_option_for_variables_has_it_once_for_each(
    template: tuple[str, ...], started: tuple[str, ...]
):
    job = Job(tuple(PROGRAM), Placement(2, NODES), SETTINGS)
    assert Template(template).tokens(template[0], job) == [template[0], *started, *PROGRAM]
    bare = Template(template).tokens(template[0], Job(tuple(PROGRAM), Placement(2, NODES)))
    assert not any("{" in token or token in ("-E", "-genv") for token in bare)


def test_a_template_hands_a_shell_one_line():
    job = Job(tuple(PROGRAM), Placement(2, NODES), SETTINGS)
    assert Template(("sh", "-c", "{line}")).tokens("sh", job) == ["sh", "-c", "env A=1 'B=2 3' probe 'a plan'"]


def test_reach_runs_a_program_on_a_node_in_the_place_of_ssh():
    assert reached(("kubectl", "exec", "-i", "{node}", "--", "{program}"), "n1", PROGRAM) == [
        *("kubectl", "exec", "-i", "n1", "--"),
        *PROGRAM,
    ]
    assert reached(("ssh", "-p", "22", "{node}", "{line}"), "n1", PROGRAM)[-1] == "probe 'a plan'"
    nodes = tuple(Node(name=name) for name in NODES)
    testbed = Testbed(
        name="pods", launcher=LauncherKind.SSH, nodes=nodes, fabrics=(NET,), reach=("in", "{node}", "{program}")
    )
    assert SshLauncher(SRUN, testbed).in_node("n0", PROGRAM) == ["in", "n0", *PROGRAM]


@pytest.mark.parametrize(
    ("reach", "said"),
    [
        (("kubectl", "exec", "{node}"), "{program} is missing"),
        (("sh", "-c", "{line}"), "{node} is missing"),
        (("in", "{host}", "{program}"), "{host} is no placeholder"),
    ],
)
def test_a_reach_that_reaches_nothing_is_refused(reach: tuple[str, ...], said: str):
    with pytest.raises(UsageError) as raised:
        check_reach(reach)
    assert said in raised.value.message
    assert "reach" in str(raised.value.message)


def test_a_fan_out_runs_a_program_on_many_nodes():
    assert spread(("pdsh", "-w", "{nodes}", "{line}"), ["n1", "n2"], PROGRAM) == [
        "pdsh",
        "-w",
        "n1,n2",
        "probe 'a plan'",
    ]
    assert spread(("x", "{nodes}", "{program}"), ["n1", "n2"], PROGRAM) == ["x", "n1,n2", *PROGRAM]


def test_nodes_that_fit_into_no_argument_by_their_names_are_a_node_set():
    many = [f"rack-of-many-nodes-{number:05d}" for number in range(10_000)]
    assert spread(("pdsh", "-w", "{nodes}", "{line}"), many, PROGRAM)[2] == "rack-of-many-nodes-[00000-09999]"
    step = srun.on_nodes("srun", many, PROGRAM)
    assert step is not None
    assert "--nodelist=rack-of-many-nodes-[00000-09999]" in step


@pytest.mark.parametrize(
    ("fan_out", "said"),
    [
        (("pdsh", "{nodes}"), "{program} is missing"),
        (("pdsh", "{line}"), "{nodes} is missing"),
        (("pdsh", "{node}", "{line}"), "{node} is no placeholder; did you mean {nodes}"),
    ],
)
def test_a_fan_out_that_reaches_nothing_is_refused(fan_out: tuple[str, ...], said: str):
    with pytest.raises(UsageError) as raised:
        check_fan_out(fan_out)
    assert said.partition(";")[0] in raised.value.message
    assert "fan_out" in str(raised.value.message)


def test_srun_asks_all_nodes_by_one_step_and_puts_their_names_before_what_they_say():
    step = srun.on_nodes("srun", ["n1", "n2"], ["printf", "%s\\n", "{one}", "two & three"])
    assert step is not None
    assert {"--nodelist=n1,n2", "--ntasks-per-node=1", "--overlap"} <= {*step}
    inside = step[step.index("sh") :]
    said = subprocess.run(
        inside, env={**os.environ, "SLURMD_NODENAME": "n1"}, capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout == "n1: {one}\nn1: two & three\n"
    long = srun.on_nodes("srun", ["n1", "n2"], ["printf", "%s", "x" * 1300])
    assert long is not None
    parts = subprocess.run(
        long[long.index("sh") :],
        env={**os.environ, "SLURMD_NODENAME": "n1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert parts.stdout.splitlines() == [f"n1:+ {'x' * 600}", f"n1:+ {'x' * 600}", f"n1: {'x' * 100}"]
    assert srun.on_nodes("srun", ["n1"], ["true"]) is None


def test_arguments_without_a_place_in_a_template_are_refused():
    starter = MpiStarter("aprun", Template(("aprun", "{program}")), "", mpich, "5.0.2")
    with pytest.raises(UsageError, match="no place for them"):
        starter.tokens(Placement(2), NET.model_copy(update={"mpi_arguments": ("-x",)}), PROGRAM)


@pytest.fixture(autouse=True)
def _found_anew() -> Iterator[None]:
    find_starter.cache_clear()
    yield
    find_starter.cache_clear()


def test_a_starter_that_there_is_not_is_said_with_those_that_there_are():
    with pytest.raises(UsageError, match=r"found 'srum', needed one of hydra, .*did you mean 'srun'") as raised:
        find_starter("srum")
    assert raised.value.exit_code == 2


def test_a_starter_that_is_not_here_is_what_the_environment_lacks(monkeypatch: pytest.MonkeyPatch):
    if shutil.which("srun", path=str(Path(build_info().mpicxx).parent)):
        pytest.skip("an srun stands beside the compiler of this MPI, and is found there without a PATH")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentLacks, match="no srun: srun is neither on the PATH nor"):
        find_starter("srun")
    with pytest.raises(EnvironmentLacks, match="there is no program aprun here"):
        find_starter(("aprun", "{program}"))


def test_another_program_of_the_name_is_not_taken_for_a_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script(tmp_path / "srun", "echo serial runner 1.0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(EnvironmentLacks, match=r"srun is another: .*printed 'serial runner 1.0'"):
        find_starter("srun")


@pytest.fixture
def mpich_here() -> str:
    """The hydra that the fake srun starts ranks with."""
    if find_starter().starter is not hydra:
        pytest.skip("the fake srun starts its ranks with hydra, and this MPI has none")
    return build_info().mpiexec


def in_job(program: Path, nodes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("SLURM_JOB_NODELIST", nodes)
    find_starter.cache_clear()


def test_srun_needs_no_mpiexec_as_the_compiler_tells_which_library_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpich_here: str
):
    from dataclasses import replace

    in_job(fake_srun.install(tmp_path / "slurm", "c1,c2", mpich_here), "c1,c2", monkeypatch)
    without = replace(build_info(), mpiexec="/no/mpiexec")
    monkeypatch.setattr(installation, "build_info", lambda: without)
    found = find_starter("srun")
    assert (found.starter, found.version, found.library.NAME) == (srun, "22.05.8", mpich.NAME)


TESTBED = """
[testbed]
name = "job"
nodes = "allocation"
starter = "srun"

[[fabric]]
name = "loopback"
interface = "lo"
subnet = "127.0.0.0/8"
mtu = 65536
layers = ["tcp", "mpi"]
"""

EXPERIMENT = Experiment(
    layers=(Layer.TCP, Layer.MPI),
    pattern=Pattern.PINGPONG,
    message_bytes=(1024,),
    maximum_seconds="50ms",
    minimum_samples=5,
    warmup_samples=2,
)
CAMPAIGN = Campaign(name="tiny", blocks=2, experiments=(EXPERIMENT,))


@pytest.mark.mpi
def test_a_run_in_an_allocation_is_started_by_srun_and_asks_its_nodes_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpich_here: str
):
    program = fake_srun.install(tmp_path / "slurm", "c1,c2", mpich_here)
    in_job(program, "c1,c2", monkeypatch)
    file = tmp_path / "testbed.toml"
    file.write_text(TESTBED)
    venue = find_venue(str(file))
    plan = plan_run(CAMPAIGN, venue.testbed(), seed=1)
    # The fabric of both nodes is this machine's loopback, which a preflight would refuse.
    start_run(tmp_path / "run", CAMPAIGN, venue, plan, notify=lambda _: None, preflight=False)
    run = Run.open(tmp_path / "run")
    assert set(run.cells()["status"]) == {"done"}
    assert run.manifest.testbed.is_allocated
    assert run.manifest.versions["starter"] == "srun 22.05.8"
    assert all("missing" not in facts for facts in run.manifest.inventory.values())
    facts = run.launches[0].summary.facts
    assert facts.is_valid, facts.invalid_because
    assert facts.conditions["starter"] == "srun 22.05.8"
    told = fake_srun.steps(program)
    assert len(told) == 2 + 1 + 2, "each node was asked once, rank 0's what it sees, and two launches were started"
    assert all("--nodelist=c1,c2" in step for step in told[3:])


@pytest.mark.lab
@pytest.mark.mpi
def test_srun_starts_ranks_on_the_nodes_of_a_lab_and_the_path_is_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpich_here: str
):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    lab = Lab.up(f"test-{secrets.token_hex(4)}", 2, tuple(parse_fabrics("fast-ethernet,myrinet")), owned=True)
    try:
        program = fake_srun.install(tmp_path / "slurm", "n0,n1", mpich_here, lab.agent, lab.control_interface)
        in_job(program, "n0,n1", monkeypatch)
        testbed = lab.testbed().model_copy(update={"starter": "srun"})
        plan = plan_run(CAMPAIGN, testbed, seed=1)
        start_run(tmp_path / "run", CAMPAIGN, Standing(given=testbed), plan, notify=lambda _: None)
    finally:
        lab.down()
    run = Run.open(tmp_path / "run")
    assert [launch.is_valid for launch in run.launches] == [True] * 4
    for launch in run.launches:
        assert launch.summary.header is not None
        assert {info.host for info in launch.summary.header.ranks} == {"n0", "n1"}


@pytest.mark.parametrize("is_looked_at", [True, False])
def test_srun_with_named_nodes_outside_of_a_job_is_refused_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpich_here: str, is_looked_at: bool
):
    program = fake_srun.install(tmp_path / "slurm", "c1,c2", mpich_here)
    in_job(program, "", monkeypatch)
    for variable in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(variable, raising=False)
    named = Testbed(
        name="named",
        launcher=LauncherKind.SSH,
        nodes=(Node(name="c1"), Node(name="c2")),
        fabrics=(NET,),
        starter="srun",
    )
    plan = plan_run(CAMPAIGN, named, seed=1)
    with pytest.raises(EnvironmentLacks, match="within a batch job, and this runs in none") as raised:
        start_run(
            tmp_path / "run", CAMPAIGN, Standing(given=named), plan, notify=lambda _: None, preflight=is_looked_at
        )
    assert "salloc" in str(raised.value.hint)
    assert not (tmp_path / "run").exists()
    assert not fake_srun.steps(program)
    assert Standing(given=named).sketch().in_node("c1", ["true"])[0].endswith("srun"), "a plan shows its commands"
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    Standing(given=named).check()


def test_the_nodes_of_another_job_are_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpich_here: str
):
    in_job(fake_srun.install(tmp_path / "slurm", "c3,c4", mpich_here), "c3,c4", monkeypatch)
    nodes = (Node(name="c1"), Node(name="c3"))
    given = Testbed(
        name="job", launcher=LauncherKind.SSH, nodes=nodes, fabrics=(NET,), starter="srun", is_allocated=True
    )
    with pytest.raises(UsageError, match="which this one does not have: c1"):
        Standing(given=given).sketch()
    here = given.model_copy(update={"nodes": (Node(name="c3"), Node(name="c4"))})
    assert isinstance(Standing(given=here).sketch(), SshLauncher)
