"""MPICH and Open MPI from one installation: compared on one fabric, and each caught where it takes another way than it should."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fabricbench.analysis.sides import read_sides
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.installation import find_installation
from fabricbench.launch.library import mpich
from fabricbench.launch.mpi import find_library, programs_of
from fabricbench.model import Layer, Pattern
from fabricbench.native import build_info, native_file
from fabricbench.record.store import Run
from fabricbench.testbed.model import Fabric, Mpi, MpiTransport, Testbed
from fabricbench.testbed.reading import local_testbed
from support.calling import Call
from support.openmpi import OpenMpi, open_mpi

pytestmark = [pytest.mark.matrix, pytest.mark.mpi, pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(900)]

ON, ASIDE = "fast-ethernet", "myrinet"


@pytest.fixture(scope="module")
def openmpi() -> OpenMpi:
    if find_library(find_installation(None))[0] is not mpich:
        pytest.skip("fabricbench is not built with MPICH here")
    return open_mpi()


@pytest.fixture(scope="module")
def mpis(openmpi: OpenMpi) -> tuple[Mpi, Mpi]:
    """The MPICH that the package was built with, named as sites name theirs, and the Open MPI of another environment."""
    return Mpi(name="mpich", prefix=str(Path(build_info().mpicxx).parents[1])), openmpi.mpi


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        lab = Lab.up(f"test-{secrets.token_hex(4)}", 2, tuple(parse_fabrics(f"{ON},{ASIDE}")), owned=True)
        try:
            yield lab
        finally:
            lab.down()


def two_mpis(lab: Lab, mpis: tuple[Mpi, ...]) -> str:
    """A testbed as a site would write it: one interface, measured with each MPI."""
    fabric = lab.testbed().fabric(ON)
    lines = ["[testbed]", 'name = "two-mpis"', 'launcher = "lab"', f'lab = "{lab.name}"', 'nodes = "n[0-1]"']
    lines += [line for mpi in mpis for line in ("[[mpi]]", f'name = "{mpi.name}"', f'prefix = "{mpi.prefix}"')]
    for mpi in mpis:
        lines += ["[[fabric]]", f'name = "with-{mpi.name}"', 'condition_of = "ethernet"', f'mpi = "{mpi.name}"']
        lines += [f'interface = "{fabric.interface}"', f'subnet = "{fabric.subnet}"', "is_emulated = true"]
    return "\n".join(lines) + "\n"


CAMPAIGN = """\
[campaign]
name = "two-mpis"
blocks = 2

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["1KiB"]
maximum_seconds = "50ms"
"""


def test_one_campaign_compares_mpich_and_open_mpi_on_the_same_fabric(
    tmp_path: Path, lab: Lab, mpis: tuple[Mpi, Mpi], fabricbench: Call
):
    testbed, campaign, run = tmp_path / "testbed.toml", tmp_path / "campaign.toml", tmp_path / "run"
    testbed.write_text(two_mpis(lab, mpis))
    campaign.write_text(CAMPAIGN)
    code, out, err = fabricbench("plan", campaign, "--testbed", testbed)
    assert code == 0, err
    usual, others = native_file("fabricbench-probe"), programs_of(mpis[1])
    assert others is not None
    binaries = {f"with-{mpis[0].name}": usual, f"with-{mpis[1].name}": others / "fabricbench-probe"}
    commands = {
        words[0]: words for words in (line.strip().split(": ", 1) for line in out.splitlines()) if len(words) > 1
    }
    for fabric, binary in binaries.items():
        assert str(binary) in commands[fabric][1]
    assert f"with-openmpi: Open MPI 5.0.11, {others / 'fabricbench-probe'}" in out
    code, out, err = fabricbench("run", campaign, "--testbed", testbed, "-o", run)
    assert code == 0, err
    read = Run.open(run)
    assert [launch.is_valid for launch in read.launches] == [True] * 4
    libraries = {launch.fabric: launch.summary.facts.conditions["mpi"].split()[0] for launch in read.launches}
    assert libraries == {"with-mpich": "MPICH", "with-openmpi": "Open"}
    headers = {launch.fabric: launch.summary.header.mpi_library for launch in read.launches if launch.summary.header}
    assert headers["with-mpich"].startswith("MPICH")
    assert headers["with-openmpi"].startswith("Open MPI")
    assert read.manifest.versions["mpi"].startswith("mpich: MPICH")
    assert "openmpi: Open MPI" in read.manifest.versions["mpi"]
    assert [sorted(side.blocks) for side in read_sides([read])] == [[0, 1], [0, 1]]
    code, out, err = fabricbench("report", run, "--format", "markdown", "-o", "-")
    assert code == 0, err
    assert "| with-openmpi (B) | – | openmpi: Open MPI 5.0.11 |" in out


WRONG: Mapping[str, Mapping[str, dict[str, str] | tuple[str, ...]]] = {
    "mpich": {
        "interface": {"FI_TCP_IFACE": "{aside}"},
        "striping": {
            "MPIR_CVAR_CH4_NETMOD": "ucx",
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": "{on},{aside}",
            "UCX_MAX_RNDV_RAILS": "2",
        },
    },
    "openmpi": {
        "interface": ("--mca", "btl_tcp_if_include", "{aside}"),
        "striping": {"OMPI_MCA_btl_tcp_if_include": "{on},{aside}"},
    },
}
"""What a user may write by mistake, by MPI: `mpi_environment`, or as `mpi_arguments`."""

MEMORY = {"mpich": {"MPIR_CVAR_NOLOCAL": "0"}, "openmpi": {"OMPI_MCA_btl": "sm,self"}}


def measured(directory: Path, testbed: Testbed, size: int) -> Run:
    experiment = Experiment(
        layers=(Layer.MPI,),
        pattern=Pattern.PINGPONG,
        message_bytes=(size,),
        maximum_seconds="300ms",
        minimum_samples=4,
        warmup_samples=1,
    )
    campaign = Campaign(name="misled", blocks=2, unfit="leave out", experiments=(experiment,))
    start_run(directory, campaign, Standing(given=testbed), plan_run(campaign, testbed, seed=1), notify=lambda _: None)
    return Run.open(directory)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_an_mpi_keeps_to_its_fabric_by_each_transport_and_is_caught_on_another_network_or_on_both(
    tmp_path: Path, lab: Lab, mpis: tuple[Mpi, Mpi], name: str
):
    on, aside = (str(lab.testbed().fabric(one).interface) for one in (ON, ASIDE))
    right = lab.testbed().fabric(ON).model_copy(update={"condition_of": "ethernet", "mpi": name, "name": "right"})

    def misled(what: str, told: dict[str, str] | tuple[str, ...]) -> Fabric:
        def filled(text: str) -> str:
            return text.format(on=on, aside=aside)

        if isinstance(told, dict):
            update = {"mpi_environment": {variable: filled(text) for variable, text in told.items()}}
            return right.model_copy(update={"name": what, **update})
        return right.model_copy(update={"name": what, "mpi_arguments": tuple(map(filled, told))})

    transports = (MpiTransport.UCX, MpiTransport.OFI)
    others = (right.model_copy(update={"name": str(each), "transport": each}) for each in transports)
    fabrics = (right, *others, *(misled(what, told) for what, told in WRONG[name].items()))
    testbed = lab.testbed().model_copy(update={"fabrics": fabrics, "mpis": mpis})
    run = measured(tmp_path / "run", testbed, 1 << 20)
    reasons = {launch.fabric: launch.summary.facts.invalid_because for launch in run.launches}
    wrong = {"right": False, "ucx": False, "ofi": False, **dict.fromkeys(WRONG[name], True)}
    assert {what: bool(why) for what, why in reasons.items()} == wrong, reasons
    assert "it went another way" in str(reasons["interface"])
    assert f"{aside} carried" in str(reasons["striping"])


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_an_mpi_that_falls_back_to_shared_memory_is_caught(tmp_path: Path, mpis: tuple[Mpi, Mpi], name: str):
    loopback = local_testbed().fabrics[0].model_copy(update={"mpi": name, "condition_of": "lo"})
    wrong = loopback.model_copy(update={"name": "memory", "mpi_environment": MEMORY[name]})
    testbed = local_testbed().model_copy(update={"fabrics": (loopback, wrong), "mpis": mpis})
    run = measured(tmp_path / "run", testbed, 1 << 20)
    reasons = {launch.fabric: launch.summary.facts.invalid_because for launch in run.launches}
    assert not reasons["loopback"]
    assert "it went another way" in str(reasons["memory"])
