"""Does a hostile run directory ever reach out of itself, or end a command in anything but a clear answer? Seeded, resumable.

    python -m benchmarks.hostile [--count 10000] [--first 0] [--seed 1] [--results build/hostile.jsonl]

Each mutant is a small run (2 fabrics, 2 blocks, a journal with hashes, a plan) in which one to three things were done by somebody
who means harm: links in place of any name that a command reads or writes, pipes, sockets, devices, hard links, files without end,
Parquet files that unpack to gigabytes, JSON without end, launches renamed or exchanged, folders for files, modes that forbid; or
one of the random damages of `benchmarks.damage`, with the hashes made right again. `verify`, `show`, `compare`, `runs` and `resume`
read each, every tenth is reported in HTML and every fifth in Markdown.

A command is a fork of this process, in which all modules are loaded, without root's right to read everything. It may take 30 s and
1 GiB more than this process has. Counted as failures: a traceback, an exit code that is none of ours (1 of anything but `verify`),
a signal, more time or memory, any change to the folders beside the run directory (names, contents, modes and times), and figures of
`show` that are not those of the whole run where nothing is said on stderr. Where hashes were made to fit, nothing can be said.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib
import json
import os
import pkgutil
import random
import resource
import select
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import typer
from benchmarks.hostile.attacks import ATTACKS, Attack, make_bombs, write_run

import fabricbench
from fabricbench import cli
from fabricbench.record import decoding

SECONDS, MEMORY_BYTES = 30.0, 1024**3
ADDRESS_SPACE = 12 * 1024**3
"""What stops a command that would take all memory; what it took is measured. The engine that draws figures reserves gigabytes."""

ENDS = {0, 2, 3, 4, 5}
ALTERED = 1
"""Of `verify`, a gate."""
COMMANDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "verify": (1, ("verify", "RUN")),
    "show": (1, ("show", "RUN", "--summary", "--format", "json")),
    "compare": (1, ("compare", "RUN")),
    "runs": (1, ("runs", "FOLDER")),
    "resume": (1, ("resume", "RUN", "--no-preflight")),
    "markdown": (5, ("report", "RUN", "--format", "markdown")),
    "html": (10, ("report", "RUN")),
}
"""How every which mutant is read, and by what."""


def state_of(folder: Path) -> str:
    """Return a hash of everything in a folder: names, kinds, modes, times, contents; hard links may be added to."""
    whole = hashlib.sha256()
    for path in sorted((folder, *folder.rglob("*"))):
        found = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
        whole.update(repr((path.name, found.st_mode, found.st_size, found.st_mtime_ns, content)).encode())
    return whole.hexdigest()


@dataclass
class Counts:
    """What came of the mutants; `failures` are what must not be."""

    mutants: int = 0
    commands: int = 0
    attacks: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    most_seconds: float = 0.0
    most_bytes: int = 0
    forged: int = 0
    """Those of which `show` has other figures, as their data and their hashes were made to fit, and the journal was taken away."""
    failures: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: a signal), how long it took, what it took, what it wrote."""

    code: int
    seconds: float
    bytes: int
    out: str
    said: str


class Hostile:
    """A run that is copied, attacked and read again and again."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self._seed = folder, seed
        self._canary, self._case = folder / "canary", folder / "case"
        self.counts = Counts()
        load_everything()
        self._within(lambda: (write_run(folder / "whole"), make_bombs(folder / "bombs")))
        self._restore_canary()
        (folder / "home").mkdir()
        self._figures = figures_of(self.command(arguments_of("show", folder / "whole")).out)
        if not self._figures:
            raise RuntimeError("the run to attack has no figures")

    def mutant(self, number: int) -> None:
        """Attack a copy in a way that depends on seed and number alone, and read it by all commands."""
        draw = random.Random(f"hostile {self._seed}/{number}")
        self.clear()
        self._restore_canary()
        run = self._case / "run"
        shutil.copytree(self.folder / "whole", run)
        attack = Attack(run, self._canary, draw)
        done = [draw.choice(ATTACKS) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
        self._within(lambda: attack.by(done))
        self._before = state_of(self._canary)  # one attack may go through a hard link that another one made
        self.counts.mutants += 1
        self.counts.attacks.update(one.__name__ for one in done)
        for name, (every, _) in COMMANDS.items():
            if number % every == 0:
                self._read(number, name, run)

    def _read(self, number: int, name: str, run: Path) -> None:
        ended = self.command(arguments_of(name, run))
        counts = self.counts
        counts.commands += 1
        counts.ended[f"{name}: {ended.code}"] += 1
        counts.most_seconds = max(counts.most_seconds, ended.seconds)
        counts.most_bytes = max(counts.most_bytes, ended.bytes)
        wrong = []
        if ended.code not in ENDS and not (name == "verify" and ended.code == ALTERED):
            wrong.append(f"ended with {ended.code}")
        if name == "show" and self._is_silent(ended, run):
            wrong.append("figures changed without a word")
        if "Traceback" in ended.said or "panicked" in ended.said:
            wrong.append("a traceback")
        if ended.seconds > SECONDS:
            wrong.append(f"took {ended.seconds:.0f} s")
        if ended.bytes > MEMORY_BYTES:
            wrong.append(f"took {ended.bytes / 2**20:,.0f} MiB")
        if state_of(self._canary) != self._before:
            wrong.append("wrote outside of the run directory")
            self._restore_canary()
        for what in wrong:
            counts.failures.append((number, f"{name}: {what}: {ended.said[-400:]!r}"))

    def _is_silent(self, ended: Ended, run: Path) -> bool:
        """Tell whether other figures are shown than were measured, nothing is said of it, and something could be."""
        if ended.code != 0 or ended.said or figures_of(ended.out) == self._figures:
            return False
        whole = self.folder / "whole"
        changed = {path.name for path in whole.rglob("*.json*") if not is_same(path, run / path.relative_to(whole))}
        can_be_noticed = "journal.jsonl" not in changed or not changed & {"launch.json", "manifest.json"}
        self.counts.forged += not can_be_noticed
        return can_be_noticed

    def command(self, arguments: list[str]) -> Ended:
        """Run a command in a fork of this process."""
        base = resident_bytes()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            began = time.monotonic()
            child = os.fork()
            if not child:
                be_the_command(arguments, out.fileno(), said.fileno(), self.folder / "home")
            with_end = os.pidfd_open(child)
            try:
                waiting = select.poll()
                waiting.register(with_end, select.POLLIN)
                if not waiting.poll((SECONDS + 2) * 1e3):
                    os.kill(child, signal.SIGKILL)
                _, status, used = os.wait4(child, 0)
            finally:
                os.close(with_end)
            seconds = time.monotonic() - began
            out.seek(0)
            said.seek(0)
            written, told = (file.read(10**6).decode(errors="replace") for file in (out, said))
        taken = max(0, used.ru_maxrss * 1024 - base)
        return Ended(os.waitstatus_to_exitcode(status), seconds, taken, written, told)

    def _within(self, act: Callable[[], object]) -> None:
        """Do something in a fork, so that polars starts no threads here, which later forks would lack and wait for."""
        child = os.fork()
        if not child:
            code = 1
            try:
                act()
                code = 0
            except BaseException:  # noqa: BLE001 - told, for this process ends at once
                traceback.print_exc()
            finally:
                os._exit(code)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the run to attack, or a mutant of it, could not be written")

    def clear(self) -> None:
        """Remove the mutant, whatever its modes are."""
        if self._case.exists():
            for path, folders, _ in os.walk(self._case):
                for name in folders:
                    if not (Path(path) / name).is_symlink():
                        (Path(path) / name).chmod(0o700)
            shutil.rmtree(self._case)
        self._case.mkdir()

    def _restore_canary(self) -> None:
        shutil.rmtree(self._canary, ignore_errors=True)
        (self._canary / "folder").mkdir(parents=True)
        (self._canary / "file").write_text("precious\n")
        (self._canary / "folder" / "file").write_text("precious\n")
        self._before = state_of(self._canary)


def load_everything() -> None:
    """Import every module, so that a fork need not."""
    for module in pkgutil.walk_packages(fabricbench.__path__, "fabricbench."):
        if ".lab.guest_entry" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    if isinstance(cli.app, typer.Typer):
        cli.app = typer.main.get_command(cli.app)  # type: ignore[assignment] - once, not in each of fifty thousand calls


def resident_bytes() -> int:
    """Return what this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def arguments_of(name: str, run: Path) -> list[str]:
    """Return the command line of one of COMMANDS."""
    return [str({"RUN": run, "FOLDER": run.parent}.get(word, word)) for word in COMMANDS[name][1]]


def figures_of(output: str) -> object:
    """Return what `show` wrote, as data; None where that is none."""
    try:
        return json.loads(output)
    except ValueError:
        return None


def is_same(path: Path, other: Path) -> bool:
    """Tell whether a file is there as it was."""
    try:
        return other.stat().st_size == path.stat().st_size and other.read_bytes() == path.read_bytes()
    except OSError:
        return False


def be_the_command(arguments: list[str], output: int, said: int, home: Path) -> None:
    """Become a command; never returns."""
    code = 70
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(said, 2)
        os.chdir(home)
        os.environ.update(
            XDG_STATE_HOME=str(home), HOME=str(home), TMPDIR=str(home), NO_COLOR="1", POLARS_MAX_THREADS="2"
        )
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        give_up_reading_everything()
        sys.argv = ["fabricbench", *arguments]
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - until the process ends
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        fork_the_decoder()
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 70
        except BaseException:  # noqa: BLE001 - which is what is looked for
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


@dataclass(frozen=True)
class Forked:
    """A child of this process, as much of it as the decoder needs."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:  # noqa: ARG002 - it ends once its socket is closed
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def fork_the_decoder() -> None:
    """Have a fork of this process, in which all modules are loaded, decode Parquet files; where it dies, another one is started."""
    ours, childs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        for number in (0, 1):
            os.dup2(childs.fileno(), number)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        decoding._serve()  # noqa: SLF001 - what its own program does
        os._exit(0)
    childs.close()
    ours.settimeout(decoding.PATIENCE_S)
    decoding.DECODER._child = Forked(pid), ours  # type: ignore[assignment]  # noqa: SLF001


CAPABILITY_VERSION_3 = 0x20080522
READS_EVERYTHING = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with them no mode forbids root anything."""
PR_SET_SECUREBITS, SECBIT_NOROOT = 28, 1


def give_up_reading_everything() -> None:
    """Have modes count for root as well, here and in programs that are started."""
    if os.geteuid() != 0:
        return
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    library.capget(header, data)
    for at in (0, 1, 2):
        data[at] &= ~READS_EVERYTHING & 0xFFFFFFFF
    library.capset(header, data)


def told(counts: Counts, seed: int, seconds: float) -> str:
    """Return the counts as text."""
    lines = [
        f"{counts.mutants:,} hostile run directories (seed {seed}), {counts.commands:,} commands, in {seconds:,.0f} s"
    ]
    lines += [f"  {name.replace('_', ' ')}: {number:,}" for name, number in sorted(counts.attacks.items())]
    lines += [f"  {name}: {number:,}" for name, number in sorted(counts.ended.items())]
    lines += [
        f"the longest took {counts.most_seconds:.1f} s, the largest {counts.most_bytes / 2**20:,.0f} MiB more than before it"
    ]
    lines += [f"other figures, by data and hashes that were made to fit: {counts.forged:,}"]
    lines += [f"failures: {len(counts.failures):,}"]
    lines += [f"  mutant {number}: {what}" for number, what in counts.failures[:40]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--results", type=Path, help="a line for each mutant: those that are there are not done again")
    options = parser.parse_args()
    done = set()
    if options.results is not None and options.results.exists():
        done = {json.loads(line)["mutant"] for line in options.results.read_text().splitlines()}
    numbers = [number for number in range(options.first, options.first + options.count) if number not in done]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        hostile = Hostile(Path(folder), options.seed)
        for at, number in enumerate(numbers, 1):
            if time.monotonic() - began > options.seconds:
                break
            before = len(hostile.counts.failures)
            hostile.mutant(number)
            if options.results is not None:
                line = {"mutant": number, "failures": [what for _, what in hostile.counts.failures[before:]]}
                with options.results.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            if at % 20 == 0:
                left = (time.monotonic() - began) / at * (len(numbers) - at)
                failed = len(hostile.counts.failures)
                sys.stderr.write(f"\r{at:,} of {len(numbers):,}, {failed:,} failures, {left / 60:,.0f} min left ")
                sys.stderr.flush()
        hostile.clear()
    print(told(hostile.counts, options.seed, time.monotonic() - began))
    return 1 if hostile.counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
