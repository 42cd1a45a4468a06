"""Runs a program and writes down what happened around it.

`python -I -S counted.py FILE [--in FOLDER] [--fabric WHERE] [--set A=B] [--inherited A=B] [--build JSON] [--front JSON] --
PROGRAM...`

For MPI programs that know nothing of fabricbench: on rank 0, and on one rank of every other host, this counts what the network
interfaces carry around the whole program, start and end included; on every other rank it becomes the program. Before that it
enters the directory where the launch's files lie (rank 0 must find it, others need not), sets variables, and writes to stdout a
line of where each rank is, with its interface in the fabric (`--fabric` is that by name, or the subnet), on rank 0 one of the MPI
library, and in the end one of what another host counted: stdout reaches rank 0's host from every node, files need not. `--build`
are tokens that make the program, on rank 0 and before anything is counted; `--front` are tokens in front of it, which start it in
the end. Only the standard library, and every descriptor stays open: some MPI starters talk to their ranks through one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run by its path, without the packages of this installation
    sys.path.append(str(Path(__file__).parents[2]))

from fabricbench.preload import PRELOAD, joined
from fabricbench.testbed.own_interface import interface_of

AROUND = "around.json"
"""The file in a launch's directory that `main` writes."""
MOST_AROUND_BYTES = 1024 * 1024
"""Of that: an interface takes a hundred."""

Counters = dict[str, tuple[int, ...]]
"""Bytes sent and received, by the counter's name."""

BEGUN = "around.begun"
"""The file beside it that says that the program has been started, whatever becomes of it."""

RANK_VARIABLES = (
    "PMIX_RANK",
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)
"""Where a starter tells a process its rank before MPI_Init; a batch job's own last, which is there beside another starter's."""

SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE")
"""Where it tells how many there are; a batch job's own number is that of the job, not of the launch."""

RANK = "FABRICBENCH_RANK"
"""What every program finds its rank in, whichever starter there is."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""What programs and their libraries take their number of threads from."""

CLOCKS_APART = 0.001
"""What the clocks of a program and ours may differ in: one that is being brought to the right time is 0.05 % fast at most."""

CANNOT_START = 127
CANNOT_WRITE = 74
"""EX_IOERR of sysexits.h."""

RANK_LINE, MPI_LINE, TRAFFIC_LINE = "fabricbench-rank: ", "fabricbench-mpi: ", "fabricbench-traffic: "
"""How lines of a rank (JSON), of the MPI library's version and of what a host counted (JSON) begin."""

MOST_COUNTERS = 16
"""Of those that a host other than rank 0's tells of, which carried most: a line that is longer than what a pipe takes at once may
come in pieces, and a host of many containers has hundreds."""

LIBRARY = re.compile(r"^\s*libmpi(?:ch)?\.so\S* => (?P<path>/\S+)", re.MULTILINE)
"""Of what the loader lists: MPICH's, Open MPI's, Intel's."""

ASK_VERSION = """
import ctypes, sys
text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace").splitlines()[0])
"""
"""Run in a process of its own: a library that is loaded for this only must not be able to end the launch."""

ASK_SECONDS = 10.0

OWN_TO_PYTHON = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that do not end a process of Python as they do others."""

MOST_HASHED = 64 * 1024 * 1024
"""Of a file that is an argument: a larger one would hold up the launch."""


def rank(inherited: dict[str, str]) -> int:
    """Return this process's rank; 0 if no starter told.

    `inherited` is what whoever asked for the launch had of these variables, within a job of its own, say: what a starter has set
    is another value, or another variable.
    """
    told = {name: os.environ[name] for name in RANK_VARIABLES if os.environ.get(name, "").isdecimal()}
    own = [value for name, value in told.items() if inherited.get(name) != value]
    return int(next(iter([*own, *told.values()]), "0"))


def size(inherited: dict[str, str]) -> int | None:
    """Return of how many ranks the starter told this process that it is one; None if it did not tell."""
    told = (
        os.environ[name] for name in SIZE_VARIABLES if os.environ.get(name, "").isdecimal() and name not in inherited
    )
    return int(next(told, "0")) or None


def set_variables(asked: dict[str, str]) -> None:
    """Set variables by the rule of `launch/starting.py`: each replaces what was set, LD_PRELOAD is joined behind it."""
    preload = joined(os.environ.get(PRELOAD), asked.get(PRELOAD))
    os.environ.update({**asked, PRELOAD: preload} if preload else asked)


def rank_line(number: int, pid: int, of_ranks: int | None = None, interface: str | None = None) -> str:
    """Return the line that tells where a rank is, of how many it is one, and its interface in the fabric, if these are known."""
    info = {"rank": number, "host": os.uname().nodename, "pid": pid, "cpus": sorted(os.sched_getaffinity(0))}
    info |= {} if of_ranks is None else {"of_ranks": of_ranks}
    info |= {"interface": interface} if interface else {}
    return f"{RANK_LINE}{json.dumps(info)}\n"


def traffic_line(carried: dict[str, dict[str, Any]], interface: str | None) -> str:
    """Return the line that tells what this host counted, without what counted nothing; the interface in the fabric always."""

    def weight(name: str) -> int:
        one = carried[name]
        return 2**64 if name == interface else int(one["sent"] + one["received"]) + (not one["is_counted"])

    told = [name for name in sorted(carried, key=weight, reverse=True) if weight(name)][:MOST_COUNTERS]
    info = {"host": os.uname().nodename, "interfaces": {name: carried[name] for name in told}}
    return f"{TRAFFIC_LINE}{json.dumps(info)}\n"


def host_turn(file: Path) -> socket.socket | None:
    """Take the part of the rank that counts for its host; None where another of the launch has it.

    Its sign is a name that the kernel gives away once in each network namespace, which is also where interfaces are counted, and
    takes back when the process ends. `file` is the launch's, the same on every rank.
    """
    mark = hashlib.sha256(f"{os.getuid()} {file}".encode()).hexdigest()
    sign = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        sign.bind(f"\0fabricbench-counted-{mark}")
    except OSError:
        sign.close()
        return None
    return sign


def mpi_library(program: str) -> str | None:
    """Return the first line of the version of the MPI library that a program loads; None where that cannot be learnt.

    MPI_Get_library_version may be called before MPI_Init.
    """
    path, loader = shutil.which(program), shutil.which("ldd")
    if path is None or loader is None:
        return None
    try:
        loads = _said([loader, path])
        found = LIBRARY.search(loads)
        version = _said([sys.executable, "-I", "-S", "-c", ASK_VERSION, found["path"]]) if found else ""
    except (OSError, subprocess.SubprocessError):
        return None
    return " ".join(version.split()) or None


def _said(command: list[str]) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=ASK_SECONDS, check=True
    ).stdout


def wrapped(
    program: list[str],
    file: Path,
    directory: Path | None = None,
    environment: dict[str, str] | None = None,
    *,
    fabric: str = "",
    build: list[str] | None = None,
    front: list[str] | None = None,
) -> list[str]:
    """Return the tokens that run a program under this, as each rank runs them; `fabric` says where a host finds its interface."""
    tokens = [sys.executable, "-I", "-S", __file__, str(file)]
    tokens += ["--in", str(directory)] if directory is not None else []
    tokens += ["--fabric", fabric] if fabric else []
    inherited = {name: os.environ[name] for name in (*RANK_VARIABLES, *SIZE_VARIABLES) if name in os.environ}
    tokens += [token for name, value in inherited.items() for token in ("--inherited", f"{name}={value}")]
    tokens += [token for name, value in (environment or {}).items() for token in ("--set", f"{name}={value}")]
    tokens += ["--build", json.dumps(build)] if build else []
    tokens += ["--front", json.dumps(front)] if front else []
    return [*tokens, "--", *program]


def write_line(line: str) -> None:
    """Write a line at once, so that lines of several ranks do not mix."""
    os.write(sys.stdout.fileno(), line.encode())


def parse_counters(text: str) -> Counters:
    """Return what each interface has carried, from the text of /proc/net/dev."""
    counters: Counters = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = numbers.split()
        counters[name.strip()] = (int(fields[8]), int(fields[0]))
    return counters


def read_traffic(root: Path = Path("/")) -> Counters:
    """Return bytes sent and received by each interface and each port of an RDMA device, -1 where a port does not tell.

    As the measurer's `core/traffic.cpp` has it, which says what the files mean.
    """
    counters = parse_counters((root / "proc/net/dev").read_text())
    for port in sorted((root / "sys/class/infiniband").glob("*/ports/*")):
        ways = (_number(port / "counters" / name) for name in ("port_xmit_data", "port_rcv_data"))
        counters[f"{port.parent.parent.name}/{port.name}"] = tuple(-1 if way is None else 4 * way for way in ways)
    return counters


def carried_since(before: Counters, root: Path = Path("/")) -> dict[str, dict[str, object]]:
    """Return what each counter has counted since, as `record.lines.InterfaceBytes` has it."""
    carried: dict[str, dict[str, object]] = {}
    for name, after in read_traffic(root).items():
        start = before.get(name, (0, 0))
        is_counted = all(0 <= first <= last for first, last in zip(start, after, strict=True))
        sent, received = (last - first if is_counted else 0 for first, last in zip(start, after, strict=True))
        above = _beside_port(root, name) if "/" in name else _above(root, {name}) - {name}
        carried[name] = {"sent": sent, "received": received, "above": sorted(above), "is_counted": is_counted}
    return carried


def _above(root: Path, names: set[str]) -> set[str]:
    """Return these interfaces and all that lie over them: sysfs has a link upper_NAME for each that does so directly."""
    found: set[str] = set()
    pending = set(names)
    while pending:
        name = pending.pop()
        found.add(name)
        uppers = (root / "sys/class/net" / name).glob("upper_*")
        pending |= {upper.name.removeprefix("upper_") for upper in uppers} - found
    return found


def _beside_port(root: Path, name: str) -> set[str]:
    device, port = name.split("/")
    folder = root / "sys/class/infiniband" / device / "ports"
    is_alone = len(list(folder.iterdir())) == 1
    beside = {
        net.name
        for net in (root / "sys/class/net").glob("*")
        if (net / "device/infiniband" / device).exists()
        and (is_alone or _number(net / "dev_port") == int(port) - 1)  # from 0, ports from 1
    }
    for index in (folder / port / "gid_attrs/ndevs").glob("*"):
        with contextlib.suppress(OSError):  # an index without a GID
            beside.add(index.read_text().strip())
    return _above(root, beside - {""})


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Around:
    """What was found around a program. `exit_code` is None where nobody saw its end."""

    interfaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    exit_code: int | None = None
    started_unix_ns: int | None = None
    finished_unix_ns: int | None = None
    program: str = ""
    program_sha256: str = ""
    arguments_sha256: tuple[str, ...] = ()
    """Of each argument that names a file which the program left as it was; empty of others."""
    threads: str = ""
    """The variables that told it how many threads to start: `OMP_NUM_THREADS=1`."""
    lasted_ns: int | None = None
    """How long it ran by a clock that nobody sets; None of earlier versions."""

    @property
    def lasted_seconds(self) -> float | None:
        """How long it ran, by whichever clock that was longer: the program may have read either."""
        if self.started_unix_ns is None or self.finished_unix_ns is None:
            return None
        return max(self.finished_unix_ns - self.started_unix_ns, self.lasted_ns or 0) * 1e-9


def read_around(path: Path) -> Around:
    """Return what `main` wrote; nothing where it wrote nothing, or something else."""
    try:
        with path.open("rb") as file:
            found = Around(**json.loads(file.read(MOST_AROUND_BYTES)))
        numbers = [found.exit_code, found.started_unix_ns, found.finished_unix_ns]
        numbers += [] if found.lasted_ns is None else [found.lasted_ns]
        texts = (found.program, found.program_sha256, found.threads, *found.arguments_sha256)
        counts = [count for each in found.interfaces.values() for count in (each["sent"], each["received"])]
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return Around()
    is_ours = all(type(one) is int and 0 <= one < 2**63 for one in (*numbers, *counts))
    is_ours = is_ours and all(isinstance(one, str) for one in texts)
    return found if is_ours else Around()


def _sha256(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _stamp(name: str) -> tuple[int, int] | None:
    """Return what changes where a file that can be hashed in no time is written; None of any other argument."""
    try:
        found = Path(name).stat()
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_HASHED else None


@dataclass
class _Asked:
    """The command line: the file to write, the directory to be in, the fabric, what to set, what was inherited, the program.

    What makes the program and what stands in front of it are empty where nothing does.
    """

    file: Path
    directory: str | None
    fabric: str
    environment: dict[str, str]
    inherited: dict[str, str]
    command: list[str]
    build: list[str]
    front: list[str]


def _asked(arguments: list[str]) -> _Asked:
    end = arguments.index("--")
    options, places = arguments[1:end], {"--in": "", "--fabric": ""}
    variables: dict[str, dict[str, str]] = {"--set": {}, "--inherited": {}}
    tokens: dict[str, list[str]] = {"--build": [], "--front": []}
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option in places:
            places[option] = value
        elif option in tokens:
            tokens[option] = json.loads(value)
        else:
            name, _, text = value.partition("=")
            variables[option][name] = text
    command = arguments[end + 1 :]
    return _Asked(
        Path(arguments[0]),
        places["--in"] or None,
        places["--fabric"],
        variables["--set"],
        variables["--inherited"],
        command,
        *tokens.values(),
    )


def _built(tokens: list[str]) -> None:
    """Make the program; OSError names what made nothing, and why."""
    made = subprocess.run(
        tokens, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    sys.stderr.write(made.stderr)
    if made.returncode != 0:
        raise OSError(0, f"ended with {made.returncode}, so the program is not built", tokens[0])


def _counted_apart(whole: list[str], interface: str | None) -> int:
    """Run the program of a rank that counts for a host other than rank 0's; end as it does, of a signal as well."""
    before = read_traffic()
    child = os.posix_spawnp(whole[0], whole, os.environ)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    write_line(traffic_line(carried_since(before), interface))
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it is the program's that tells something
        if -code in OWN_TO_PYTHON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def main(arguments: list[str]) -> int:
    """Run the program; return its exit code, 128 + N for a signal N, as a shell does."""
    asked = _asked(arguments)
    command = asked.command
    try:
        number = rank(asked.inherited)
        interface = interface_of(asked.fabric) if asked.fabric else None
        write_line(rank_line(number, os.getpid(), size(asked.inherited), interface))
        if asked.directory is not None and (number == 0 or Path(asked.directory).is_dir()):
            os.chdir(asked.directory)
        set_variables(asked.environment)
        os.environ[RANK] = str(number)
        whole = [*asked.front, *command]
        sign = host_turn(asked.file)
        if number != 0 and sign is None:
            os.execvp(whole[0], whole)  # noqa: S606 - tokens, never a shell string
        if number != 0:
            return _counted_apart(whole, interface)
        if asked.build:
            _built(asked.build)
        write_line(f"{MPI_LINE}{mpi_library(command[0]) or ''}\n")
        program = shutil.which(command[0]) or command[0]
        stamps = [_stamp(name) for name in command[1:]]
        hashes = [_sha256(name) if stamp else "" for name, stamp in zip(command[1:], stamps, strict=True)]
        about: dict[str, Any] = {
            "program": program,
            "program_sha256": _sha256(program),
            "started_unix_ns": time.time_ns(),
            "threads": " ".join(f"{name}={os.environ[name]}" for name in THREADS if name in os.environ),
        }
        before, begun = read_traffic(), time.monotonic_ns()
        child = os.posix_spawnp(whole[0], whole, os.environ)
        asked.file.with_name(BEGUN).touch()
    except OSError as error:
        sys.stderr.write(f"{error.filename or command[0]}: {error.strerror}\n")
        return CANNOT_START
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    about["lasted_ns"] = time.monotonic_ns() - begun
    carried, finished = carried_since(before), time.time_ns()
    code = code if code >= 0 else 128 - code
    about["arguments_sha256"] = [
        digest if _stamp(name) == before_it else ""  # else it is what the program writes
        for name, digest, before_it in zip(command[1:], hashes, stamps, strict=True)
    ]
    found = {**about, "finished_unix_ns": finished, "exit_code": code, "interfaces": carried}
    try:
        _write(asked.file, json.dumps(found))
    except OSError as error:
        sys.stderr.write(f"{asked.file}: {error.strerror}\n")
        return CANNOT_WRITE
    return code


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all, and on the disk: some file servers tell of a full one only then."""
    draft = path.with_name(f"{path.name}.new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
