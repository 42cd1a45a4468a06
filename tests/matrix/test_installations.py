"""The main job where things are other than in the tests' own environment: the newest Python, a user with the oldest, Open MPI.

Each has an environment or a build of its own, and measures over the loopback and in a lab.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nlohmann_json
import pytest

from fabricbench.native import FOLDER_VARIABLE, build_info
from support import openmpi
from support.another_user import BECOME, NOBODY, need_another_user
from support.scripts import script

pytestmark = [pytest.mark.matrix, pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parents[2]
INSTALL_SECONDS, RUN_SECONDS = 240, 120
OLDEST = (3, 11)
ENVIRONMENT_LACKS = 3

CAMPAIGN = """\
[campaign]
blocks = 2
unfit = "leave out"

[[experiment]]
layers = ["memory", "frame", "ip", "udp", "tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["64B"]
maximum_seconds = "50ms"

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "bistream"
message_bytes = ["1KiB"]
maximum_seconds = "50ms"
"""

PURE = (
    "tests/testbed",
    "tests/record",
    "tests/published",
    "tests/report/test_words.py",
    "tests/launch/test_merging.py",
)
"""Tests that need nothing built."""
OF_CHILDREN = tuple(f"tests/record/test_{name}.py" for name in ("account", "bounds", "channel_batches", "integrity"))
"""Those of them that start a child to decode files, as the report of a campaign does here."""


@dataclass(frozen=True)
class Python:
    """An interpreter on this machine."""

    program: Path
    version: tuple[int, ...]

    @property
    def is_for_everybody(self) -> bool:
        """Whether any user may start it."""
        path = self.program.resolve()
        return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))


@dataclass(frozen=True)
class Installation:
    """How fabricbench is called, and what every line of its records says of it."""

    program: tuple[str, ...]
    folder: Path
    mpi_library: str = "MPICH"
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Path | None = None

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return ran(*self.program, *arguments, folder=self.folder, is_checked=False, variables=self.variables)


def ran(
    *tokens: str | Path,
    folder: Path,
    seconds: float = RUN_SECONDS,
    is_checked: bool = True,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command at home in a folder, with nothing of the environment that the tests run in."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        tokens,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=folder,
        env={**environment, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), **(variables or {})},
    )
    if is_checked:
        assert done.returncode == 0, (
            f"{tokens} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
        )
    return done


def pythons() -> list[Python]:
    """Every Python here that fabricbench may run on, the oldest first: on the PATH, the system's, those of pyenv."""
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 30)]
    candidates = [
        *map(Path, filter(None, named)),
        *Path("/usr/bin").glob("python3.*"),
        *of_pyenv.glob("3.*/bin/python3"),
    ]
    found = {}
    for program in candidates:
        asked = [program, "-I", "-c", "import sys, venv; print(sys._base_executable, *sys.version_info[:3])"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            base, *numbers = done.stdout.split()
            found[Path(base).resolve()] = Python(Path(base), tuple(map(int, numbers)))
    return sorted((one for one in found.values() if one.version >= OLDEST), key=lambda one: one.version)


def install(python: Path, environment: Path, *packages: str | Path) -> None:
    """Make an environment with packages and what they need, in the versions that the project pins."""
    folder = environment.parent
    ran(python, "-m", "venv", "--without-pip", environment, folder=folder)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "-q")
    home = {"HOME": str(Path.home())}  # pip keeps what it has downloaded there
    ran(*pip, "-c", REPOSITORY / "constraints.txt", *packages, folder=folder, seconds=INSTALL_SECONDS, variables=home)


def install_carried(python: Path, environment: Path, wheel: Path) -> None:
    """Do as `install` does, without any network: from a folder of wheels that was filled where there is one."""
    folder, carried = environment.parent, environment.with_name("carried")
    ran(python, "-m", "venv", "--without-pip", environment, folder=folder)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    home = {"HOME": str(Path.home())}
    download = ("download", "-q", "-d", carried, "-c", REPOSITORY / "constraints.txt", wheel)
    ran(*pip, *download, folder=folder, seconds=INSTALL_SECONDS, variables=home)
    alone = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--net")
    settings = (f"--unset={name}" for name in os.environ if name.startswith("PIP_"))
    offline = ("install", "-q", "--no-compile", "--no-index", "--find-links", carried, "fabricbench")
    ran(*alone, "env", *settings, *pip, *offline, folder=folder, seconds=INSTALL_SECONDS)
    shutil.rmtree(carried)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that every user may enter: pytest's own are this user's alone."""
    path = Path(tempfile.mkdtemp(prefix="fabricbench-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def newest(wheel: Path, folder: Path) -> Installation:
    """The wheel and what tests need, by the newest Python here."""
    python = pythons()[-1]
    if python.version[:2] == sys.version_info[:2]:
        pytest.skip(f"no Python here is newer than that of the tests, {sys.version.split()[0]}")
    own = folder / "newest"
    own.mkdir()
    install(python.program, own / "environment", wheel, "pytest", "pytest-timeout", "hypothesis", "jsonschema")
    programs = own / "environment" / "bin"
    return Installation((str(programs / "fabricbench"),), own, python=programs / "python")


@pytest.fixture(scope="module")
def user(wheel: Path, folder: Path) -> Installation:
    """The wheel, carried by hand, by the oldest Python that everybody may start, called by a user without privileges."""
    become: tuple[str, ...] = ()
    if os.geteuid() == 0:
        need_another_user(build_info().mpiexec)
        become = BECOME
    startable = [python for python in pythons() if python.is_for_everybody or not become]
    if not startable:
        pytest.skip("another user may start no Python here: all are in folders of this user's own")
    environment, home = folder / "of-all", folder / "home"
    install_carried(startable[0].program, environment, wheel)
    home.mkdir()
    if become:
        os.chown(home, NOBODY, NOBODY)
    return Installation((*become, str(environment / "bin" / "fabricbench")), home)


@pytest.fixture(scope="module")
def open_mpi(folder: Path) -> Installation:
    """This source tree's Python part with native programs built with the Open MPI of a wheel."""
    home = folder / "open-mpi"
    home.mkdir()
    program = Path(sys.executable).parent / "fabricbench"
    return Installation((str(program),), home, "Open MPI", {FOLDER_VARIABLE: str(openmpi.open_mpi().programs)})


LOCAL, LAB = ("local",), ("lab:fast-ethernet", "--nodes", "2")


@pytest.mark.parametrize(
    ("name", "testbed"),
    [("newest", LOCAL), ("newest", LAB), ("user", LAB), ("open_mpi", LAB)],
    ids=lambda one: one if isinstance(one, str) else one[0],
)
def test_a_campaign_is_planned_measured_and_reported(request: pytest.FixtureRequest, name: str, testbed: Sequence[str]):
    installation: Installation = request.getfixturevalue(name)
    (installation.folder / "tiny.toml").write_text(CAMPAIGN)
    planned = installation.call("plan", "tiny.toml", "--testbed", *testbed)
    if planned.returncode == ENVIRONMENT_LACKS and testbed != LOCAL:
        pytest.skip(f"no lab for this user: {planned.stderr}")
    assert planned.returncode == 0, planned.stderr
    run = installation.folder / testbed[0].partition(":")[0]
    measured = installation.call("run", "tiny.toml", "--testbed", *testbed, "-o", str(run))
    if measured.returncode == ENVIRONMENT_LACKS and testbed != LOCAL:
        pytest.skip(f"no lab for this user: {measured.stderr}")
    assert measured.returncode == 0, measured.stderr
    launches = [json.loads(path.read_text()) for path in run.glob("launches/*/launch.json")]
    assert len(launches) == (4 if testbed == LOCAL else 2)
    for launch in launches:
        assert launch["complete"]
        assert launch["failed"] == 0
        if testbed != LOCAL:  # whoever else is on this machine may use its loopback
            assert launch["facts"]["is_valid"], launch["facts"]["invalid_because"]
        assert installation.mpi_library in launch["header"]["mpi_library"]
    if name == "user":
        assert run.stat().st_uid != 0
    reported = installation.call("report", str(run))
    assert reported.returncode == 0, reported.stderr
    assert (run / "dossier.html").stat().st_size > 0


@pytest.mark.timeout(400)
def test_the_newest_python_passes_the_tests_that_start_nothing(newest: Installation):
    assert newest.python is not None
    options = ("-q", "-p", "no:cacheprovider", "-c", REPOSITORY / "pyproject.toml", "--rootdir", REPOSITORY)
    without = (f"--ignore={REPOSITORY / one}" for one in OF_CHILDREN)
    files = (REPOSITORY / one for one in PURE)
    done = ran(newest.python, "-m", "pytest", *options, *without, *files, folder=newest.folder)
    assert re.search(r"\d{3,} passed", done.stdout), done.stdout[-500:]


def test_cmake_alone_takes_the_mpi_that_is_named_among_several(tmp_path: Path):
    """As Debian has them: mpicc.mpich beside mpicc.openmpi, of which MPICC names one; no Python package of ours is there."""
    build, programs = tmp_path / "build", tmp_path / "programs"
    programs.mkdir()
    for name in ("mpicc", "mpicxx", "mpiexec"):
        script(programs / f"{name}.other", f'exec {Path(sys.executable).parent / name} "$@"')
    own = {"PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}", "MPICC": "mpicc.other"}
    json_header = Path(nlohmann_json.__path__[0]) / "include"
    options = (f"-DNLOHMANN_JSON_INCLUDE_DIR={json_header}", f"-DPython3_EXECUTABLE={sys._base_executable}")
    ran("cmake", "-S", REPOSITORY, "-B", build, "-G", "Ninja", *options, folder=tmp_path, variables=own)
    told = json.loads((build / "build_info.json").read_text())
    assert (told["mpicxx"], told["mpiexec"]) == (str(programs / "mpicxx.other"), str(programs / "mpiexec.other"))
    wrong = ran(
        *("cmake", "-S", REPOSITORY, "-B", tmp_path / "again", "-G", "Ninja", *options),
        folder=tmp_path,
        is_checked=False,
        variables={**own, "MPICC": "mpicc.none"},
    )
    assert wrong.returncode != 0
    assert "found MPICC=mpicc.none, needed a program" in " ".join(wrong.stderr.split())
