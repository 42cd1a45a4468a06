"""MPIs of a testbed: where they are, what loading them changes, and what of ours is built with them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.launch import building, installation, mpi
from fabricbench.launch.building import ABOUT, BuildRequest, all_builds, build, find_build
from fabricbench.launch.installation import Installation, find_installation
from fabricbench.launch.library import mpich, openmpi
from fabricbench.launch.mpi import MpiStarter, check_fits, find_starter, programs_of, starter_of
from fabricbench.launch.starter import hydra
from fabricbench.launch.starting import Placement
from fabricbench.native import build_info, native_file
from fabricbench.testbed.model import Fabric, LauncherKind, Mpi, Node, Testbed
from support.calling import Call
from support.scripts import script


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    caches = (installation._find, mpi.find_starter, mpi.programs_of)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An Open MPI that tells of itself and can do nothing."""
    (tmp_path / "mpi/bin").mkdir(parents=True)
    script(tmp_path / "mpi/bin/mpicxx", 'test "$1" = --showme:version && echo "mpicxx: Open MPI 5.1.0 (Language: C++)"')
    script(tmp_path / "mpi/bin/mpiexec", 'echo "mpiexec (Open MPI) 5.1.0"; echo PRRTE')
    return tmp_path / "mpi"


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for builds that is the test's own."""
    monkeypatch.setattr(building, "build_folders", lambda: [tmp_path / "builds"])
    return tmp_path / "builds"


def test_programs_are_found_below_the_prefix_beside_each_other_or_on_the_path(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
):
    below = find_installation(Mpi(name="site", prefix=str(prefix)))
    beside = find_installation(Mpi(name="site", mpicxx=str(prefix / "bin/mpicxx")))
    monkeypatch.setenv("PATH", str(prefix / "bin"), prepend=os.pathsep)
    on_path = find_installation(Mpi(name="site"))
    assert {(one.mpicxx, one.mpiexec) for one in (below, beside, on_path)} == {
        (str(prefix / "bin/mpicxx"), str(prefix / "bin/mpiexec"))
    }
    with pytest.raises(EnvironmentLacks, match=r"\[\[mpi\]\] gone: no mpicxx or mpic\+\+ in /nowhere/bin"):
        find_installation(Mpi(name="gone", prefix="/nowhere"))


def test_loading_is_what_a_login_shell_changes_and_lists_are_added_to_as_they_are_here(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TAKEN_AWAY", "here")
    lines = (f"export PATH={prefix}/bin:$PATH", "export OPAL_PREFIX='a b'", "unset TAKEN_AWAY", "echo loaded")
    found = find_installation(Mpi(name="site", load=lines))
    assert found.mpicxx == str(prefix / "bin/mpicxx")
    assert found.loading["OPAL_PREFIX"] == "a b"
    assert found.loading["TAKEN_AWAY"] is None
    assert str(found.loading["PATH"]).startswith(f"{prefix}/bin:")
    assert str(found.loading["PATH"]).endswith(os.environ["PATH"])
    tokens = found.loaded(["mpiexec"])
    assert tokens[:3] == ["env", "-u", "TAKEN_AWAY"]
    assert "OPAL_PREFIX=a b" in tokens
    assert tokens[-1] == "mpiexec"


@pytest.mark.parametrize("line", ["false", "no-such-module load x", "exit 3"])
def test_a_line_of_load_that_fails_is_named(line: str):
    with pytest.raises(EnvironmentLacks, match=r"\[\[mpi\]\] site: it cannot be loaded: the shell ended with"):
        find_installation(Mpi(name="site", load=(line,)))


def test_starter_and_ranks_get_what_is_loaded_and_ranks_run_inside(prefix: Path):
    lines = (f"export PATH={prefix}/bin:$PATH", "export SITE=1")
    testbed = Testbed(
        name="t",
        launcher=LauncherKind.LOCAL,
        nodes=(Node(name="n0"),),
        fabrics=(Fabric(name="usual", mpi="usual"), Fabric(name="other", mpi="site", mpi_environment={"SITE": "2"})),
        mpis=(
            Mpi(name="usual", mpicxx=build_info().mpicxx, mpiexec=build_info().mpiexec),
            Mpi(
                name="site",
                load=lines,
            ),
        ),
    )
    starter = starter_of(testbed)
    placement = Placement(2)
    tokens = starter.tokens(placement, testbed.fabrics[1], ["probe"])
    assert tokens[0] == "env"
    assert "SITE=1" in tokens[: tokens.index(str(prefix / "bin/mpiexec"))]
    assert tokens[tokens.index("SITE=2") - 1] == "-x"  # what the testbed sets wins in the ranks
    assert starter.conditions(placement, testbed.fabrics[1])["mpi"] == "Open MPI 5.1.0"
    assert starter.tokens(placement, testbed.fabrics[0], ["probe"])[0] == build_info().mpiexec
    inside = replace(starter.others["site"].installation, inside=("apptainer", "exec", "image.sif"))
    ranks = replace(starter.others["site"], installation=inside).tokens(placement, testbed.fabrics[1], ["probe"])
    assert ranks[-4:] == ["apptainer", "exec", "image.sif", "probe"]


def test_a_starter_of_another_mpi_is_refused(prefix: Path):
    with pytest.raises(
        UsageError, match=r"hydra starts MVAPICH2, MVAPICH, MPICH; MPI site is Open MPI 5\.1\.0"
    ) as raised:
        find_starter("hydra", Mpi(name="site", prefix=str(prefix)))
    assert raised.value.hint == "leave `starter` out, or write one of prterun, orterun, srun"


def test_an_mpi_without_a_build_says_which_command_makes_one_and_ours_needs_none(prefix: Path, builds: Path):
    site = Mpi(name="site", prefix=str(prefix))
    with pytest.raises(EnvironmentLacks, match=r"not built for MPI site, Open MPI 5\.1\.0") as raised:
        programs_of(site)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("run `fabricbench build --mpi site --testbed FILE`")
    assert programs_of(None) is None
    assert programs_of(Mpi(name="usual", mpicxx=build_info().mpicxx)) is None
    assert not builds.exists()


def test_a_build_is_found_for_the_mpi_that_it_was_made_with_and_for_no_other(prefix: Path, builds: Path):
    site = find_installation(Mpi(name="site", prefix=str(prefix)))
    folder = builds / f"site-{building.key_of(site, 'Open MPI 5.1.0')}"
    folder.mkdir(parents=True)
    assert find_build(site, "Open MPI 5.1.0") is None  # of a folder that is not whole
    about = {"mpi": "site", "library": "Open MPI 5.1.0", "mpicxx": site.mpicxx, "fabricbench": "1", "sources": "old"}
    (folder / ABOUT).write_text(json.dumps(about))
    assert find_build(site, "Open MPI 5.1.0") == folder
    assert find_build(site, "Open MPI 5.2.0") is None
    assert find_build(replace(site, mpicxx="/elsewhere/mpicxx"), "Open MPI 5.1.0") is None
    (known,) = all_builds()
    assert not known.is_current


def test_a_build_that_fails_says_why_and_leaves_nothing(prefix: Path, builds: Path):
    site = find_installation(Mpi(name="site", prefix=str(prefix)))
    with pytest.raises(EnvironmentLacks, match=r"configuring with .*mpicxx failed") as raised:
        build(site, "Open MPI 5.1.0", BuildRequest())
    assert "MPI" in raised.value.message
    assert list(builds.iterdir()) == []


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ((), "CMake is missing"),
        (("cmake",), "neither make nor ninja"),
        (("cmake", "make"), "no C\\+\\+ compiler"),
    ],
)
def test_each_tool_that_is_missing_gets_its_own_message(
    prefix: Path, builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], said: str
):
    site = find_installation(Mpi(name="site", prefix=str(prefix)))
    (tmp_path / "path").mkdir()
    for name in there:
        script(tmp_path / "path" / name, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(building, "find_spec", lambda _: None)
    monkeypatch.setattr(building.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(EnvironmentLacks, match=said):
        build(site, "Open MPI 5.1.0", BuildRequest())
    assert not builds.exists()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("echo 'Open MPI v5.1.0, package: x'", r"runs with Open MPI 5\.1\.0.*, and prog starts ranks of MPICH 5\.0\.2"),
        ("echo 'x: error while loading shared libraries: libmpi.so.40' >&2; exit 127", "does not start with MPICH"),
        ("echo 'MPICH Version: 5.0.2'", None),
        ("exit 2", None),
    ],
)
def test_a_program_of_another_mpi_is_refused_before_anything_starts(tmp_path: Path, answers: str, said: str | None):
    program = script(tmp_path / "fabricbench-probe", answers)
    starter = MpiStarter("prog", hydra, "5.0.2", mpich, "5.0.2", Installation("site", "mpicxx", "prog"))
    if said is None:
        check_fits(starter, program)
        return
    with pytest.raises(EnvironmentLacks, match=said) as raised:
        check_fits(starter, program)
    assert raised.value.hint == "run `fabricbench build --mpi site --testbed FILE --again`"


def test_our_own_programs_fit_the_mpi_that_they_were_built_with():
    check_fits(find_starter(), native_file("fabricbench-probe"))
    other = openmpi if find_starter().library is mpich else mpich
    with pytest.raises(EnvironmentLacks, match="starts ranks of"):
        check_fits(replace(find_starter(), library=other), native_file("fabricbench-probe"))


TESTBED = '[testbed]\nname = "t"\nlauncher = "local"\nnodes = "n0"\n[[fabric]]\nname = "f"\n'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "either --testbed or --mpicxx"),
        (("--testbed", "FILE", "--mpicxx", "mpicxx"), "either --testbed or --mpicxx"),
        (("--mpi", "x", "--mpicxx", "mpicxx"), "--mpi is a name of a testbed"),
        (("--testbed", "FILE"), "names no [[mpi]]"),
        (("--testbed", "NAMED", "--mpi", "y"), "there are site"),
    ],
)
def test_it_is_said_which_mpi_to_build_with(tmp_path: Path, fabricbench: Call, arguments: tuple[str, ...], said: str):
    (tmp_path / "FILE").write_text(TESTBED)
    (tmp_path / "NAMED").write_text(f'{TESTBED}[[mpi]]\nname = "site"\n')
    code, _, err = fabricbench("build", *(tmp_path / one if one.isupper() else one for one in arguments))
    assert code == 2
    assert said in err


def test_builds_are_listed_and_one_that_is_there_is_not_made_again(prefix: Path, builds: Path, fabricbench: Call):
    site = find_installation(Mpi(name="site", prefix=str(prefix)))
    folder = builds / f"site-{building.key_of(site, 'Open MPI 5.1.0')}"
    folder.mkdir(parents=True)
    about = {"mpi": "site", "library": "Open MPI 5.1.0", "mpicxx": site.mpicxx, "fabricbench": "1", "sources": "old"}
    (folder / ABOUT).write_text(json.dumps(about))
    (folder / "fabricbench-npb").touch()
    code, _, err = fabricbench("build", "--mpicxx", prefix / "bin/mpicxx", "--name", "site")
    assert code == 0
    assert f"MPI site: built already with Open MPI 5.1.0, in {folder}" in err
    code, out, _ = fabricbench("list", "mpis")
    assert code == 0
    assert f"site: Open MPI 5.1.0, {site.mpicxx}; from other sources: build it again" in out
    code, out, _ = fabricbench("list", "mpis", "--json")
    assert [one["mpi"] for one in json.loads(out)["mpis"]] == ["", "site"]
    code, _, err = fabricbench("build", "--mpicxx", build_info().mpicxx)
    assert code == 0
    assert "nothing to do" in err


def test_a_build_that_has_less_than_is_wanted_is_made_again(
    prefix: Path, builds: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    site = find_installation(Mpi(name="site", prefix=str(prefix)))
    folder = builds / f"site-{building.key_of(site, 'Open MPI 5.1.0')}"
    folder.mkdir(parents=True)
    about = {"mpi": "site", "library": "Open MPI 5.1.0", "mpicxx": site.mpicxx, "fabricbench": "1", "sources": "old"}
    (folder / ABOUT).write_text(json.dumps({**about, "kernels": "no", "definitions": '["A=1"]'}))
    made: list[BuildRequest] = []
    monkeypatch.setattr(building, "build", lambda _site, _library, wanted, _tell: made.append(wanted) or folder)
    asked = ("build", "--mpicxx", prefix / "bin/mpicxx", "--name", "site")
    for enough in (("--without-kernels",), ("--without-kernels", "-D", "A=1")):
        assert "built already" in fabricbench(*asked, *enough)[2]
    assert not made
    for more in ((), ("--without-kernels", "-D", "A=2")):
        assert "was built with less than is wanted" in fabricbench(*asked, *more)[2]
    assert [(one.has_kernels, one.definitions) for one in made] == [(True, ()), (False, ("A=2",))]


def test_the_hint_for_a_program_that_a_build_lacks_is_a_whole_command(tmp_path: Path):
    (tmp_path / ABOUT).write_text(json.dumps({"mpicxx": "/opt/mpi/bin/mpicxx", "mpi": "site"}))
    with pytest.raises(EnvironmentLacks) as caught:
        native_file("fabricbench-npb", tmp_path)
    assert "`fabricbench build --mpicxx /opt/mpi/bin/mpicxx --name site --again`" in str(caught.value.hint)


def test_a_build_that_cannot_be_moved_into_place_leaves_the_one_before(tmp_path: Path):
    (tmp_path / "aside").mkdir()
    before = tmp_path / "site-1"
    before.mkdir()
    (before / ABOUT).touch()
    with pytest.raises(FileNotFoundError):
        building._replace(tmp_path / "aside/nothing", before)
    assert (before / ABOUT).exists()


@pytest.mark.parametrize(
    ("profile", "here", "loaded", "found"),
    [
        ("1", "4", "16", "16"),
        ("/usr/bin:/bin", "/here:/usr/bin", "/opt/bin:/usr/bin:/bin", "/opt/bin:/here:/usr/bin"),
        ("/usr/bin", "/here", "/usr/bin:/opt/bin", "/here:/opt/bin"),
        ("/usr/lib", "/here", "/usr/lib64", "/usr/lib64"),
        ("/a:/b", "/here", "/x/a:/b/y", "/x/a:/b/y"),
        (None, "/here", "/opt", "/opt"),
        ("/usr/bin", None, "/opt:/usr/bin", "/opt:/usr/bin"),
    ],
)
def test_only_whole_elements_of_a_list_are_replaced_by_what_is_here(
    profile: str | None, here: str | None, loaded: str, found: str
):
    assert installation._with_elements(loaded, profile, here) == found


def test_a_number_that_a_module_sets_is_what_ranks_get(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    (tmp_path / ".bash_profile").write_text("export OMP_NUM_THREADS=1\n")
    found = find_installation(Mpi(name="site", prefix=str(prefix), load=("export OMP_NUM_THREADS=16",)))
    assert found.loading["OMP_NUM_THREADS"] == "16"


QUIET = "echo \"ERROR: Unable to locate a modulefile for 'openmpi/9'\" >&2"


def test_a_load_that_prints_and_changes_nothing_is_refused_with_what_it_printed(prefix: Path):
    with pytest.raises(
        EnvironmentLacks, match="its `load` changed nothing, and printed: ERROR: Unable to locate"
    ) as raised:
        find_installation(Mpi(name="site", prefix=str(prefix), load=(QUIET,)))
    assert raised.value.exit_code == 3
    find_installation(Mpi(name="there-already", prefix=str(prefix), load=("true",)))


def test_what_load_prints_stands_among_the_conditions(prefix: Path):
    starter = find_starter(
        None, Mpi(name="site", prefix=str(prefix), load=("export SITE=1", "echo 'switched to gcc/12'"))
    )
    assert starter.conditions(Placement(1), Fabric(name="memory"))["mpi load printed"] == "switched to gcc/12"


@pytest.mark.parametrize("name", ["mpich-5", "intel-mpi", "mvapich2"])
def test_an_mpi_that_is_another_by_its_own_words_is_refused(prefix: Path, name: str):
    with pytest.raises(EnvironmentLacks, match=r"is Open MPI 5\.1\.0 by its own words, and no "):
        find_starter(None, Mpi(name=name, prefix=str(prefix)))


@pytest.mark.parametrize("name", ["openmpi", "site", "openmpi-beside-mpich", "gcc-compiler"])
def test_an_mpi_may_be_called_by_its_name_or_by_none(prefix: Path, name: str):
    assert find_starter(None, Mpi(name=name, prefix=str(prefix))).library is openmpi


def test_two_mpis_that_are_one_are_refused(prefix: Path):
    def testbed(*mpis: Mpi) -> Testbed:
        return Testbed(
            name="t", launcher=LauncherKind.LOCAL, nodes=(Node(name="n0"),), fabrics=(Fabric(name="memory"),), mpis=mpis
        )

    one = Mpi(name="one", prefix=str(prefix))
    with pytest.raises(UsageError, match=r"\[\[mpi\]\] one and \[\[mpi\]\] two are one: both are"):
        starter_of(testbed(one, Mpi(name="two", mpicxx=str(prefix / "bin/mpicxx"))))
    starter_of(testbed(one, Mpi(name="tuned", prefix=str(prefix), load=("export UCX_TUNING=1",))))
