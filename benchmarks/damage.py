"""Does a damaged run directory ever end in a traceback, or its altered samples in a number? Seeded, in one process.

    python -m benchmarks.damage [--count 10000] [--seed 1] [--keep build/damage]

Each case copies a small run (2 fabrics, 2 blocks, three tests, one of them with channels, a journal with hashes), damages one to
four of its files, and then does what a reader does: the API opens it, takes every frame and compares; the command line verifies and
shows; every tenth time it reports as well. Counted as failures: an exception that is no FabricbenchError, a panic of the Parquet
reader, a launch that is used with other samples than were measured, and a `verify` that calls an altered run whole. `--keep` keeps
the numbers of the cases that failed, each of which `--first NUMBER --count 1` repeats.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import polars as pl
import typer

from fabricbench import cli
from fabricbench.api import compare, load, verify
from fabricbench.errors import FabricbenchError
from fabricbench.model import Layer, Pattern
from fabricbench.record.integrity import LAUNCHES, data_hash
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.launch import scan_channels, scan_samples
from fabricbench.record.store import Run
from support.synthetic_run import SyntheticCell, write_synthetic_run

Found = TypeVar("Found")

CELLS = (
    SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=30, values={"overlap": 0.5}),
    SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, {"a": 90e6, "b": 80e6}, samples=30, messages_per_sample=16),
    SyntheticCell(
        Layer.TCP,
        Pattern.INCAST,
        1024,
        {"a": 90e6, "b": 90e6},
        samples=30,
        ranks=(0, 1, 2),
        channels=2,
        channel_shares={(1, 0, 0): 0.5, (2, 0, 0): 0.5},
    ),
)
BLOCKS = 2
REPORT_EVERY = 10

NUMBERS = (
    "-1",
    "0",
    "1e999",
    "NaN",
    "null",
    '"x"',
    "9" * 25,
    "9" * 5000,
    "[]",
    "{}",
    "true",
    "-0.0",
    "18446744073709551616",
)
TEXTS = ("", "\x1b[31m", "<script>", "../../x", "é" * 3, "\\u0000", "a" * 5000)
WHOLE_FILES = (
    b"",
    b"[" * 100_000,
    b"{}",
    b"null",
    b"\xff\xfe{}",
    b"9" * 5000,
    b'{"schema":"fabricbench/run/' + b"9" * 5000 + b'"}',
    b"PAR1",
)


def write_run(path: Path) -> None:
    """Write the run that is damaged, as a run is written: with a journal that has the hashes."""
    run = write_synthetic_run(path, cells=CELLS, blocks=BLOCKS)
    journal = Journal(path)
    journal.append(JournalEvent.DESCRIBED, sha256=journal.hashes(path / "manifest.json"))
    for launch in run.launches:
        journal.append(JournalEvent.STARTED, launch.launch_id, attempt=1)
        journal.append(JournalEvent.FINISHED, launch.launch_id, sha256=journal.hashes(launch.directory / "launch.json"))


def files_of(run: Path, draw: random.Random) -> list[Path]:
    """Return the files of a run in an order that depends on nothing but the draw."""
    found = sorted(path for path in run.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl", ".parquet"))
    draw.shuffle(found)
    return found


def flip_bit(run: Path, draw: random.Random) -> None:
    path = files_of(run, draw)[0]
    data = bytearray(path.read_bytes())
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)


def cut_short(run: Path, draw: random.Random) -> None:
    path = files_of(run, draw)[0]
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data) + 1)])


def splice(run: Path, draw: random.Random) -> None:
    path = files_of(run, draw)[0]
    data = bytearray(path.read_bytes())
    at = draw.randrange(len(data) + 1)
    data[at : at + draw.randrange(200)] = draw.randbytes(draw.randrange(50))
    path.write_bytes(data)


def delete(run: Path, draw: random.Random) -> None:
    files_of(run, draw)[0].unlink()


def swap_files(run: Path, draw: random.Random) -> None:
    """Swap two files of a name between launches."""
    name = draw.choice(("samples.parquet", "cells.parquet", "channels.parquet", "launch.json"))
    found = sorted(path for path in run.glob(f"{LAUNCHES}/*/{name}") if path.is_file())
    if len(found) > 1:
        one, other = draw.sample(found, 2)
        kept = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(kept)


def add(run: Path, draw: random.Random) -> None:
    """Add a launch, a file, a folder or a pipe where none belongs."""
    launches = sorted(path for path in (run / LAUNCHES).glob("*") if path.is_dir())
    if not launches:
        return
    launch, word = draw.choice(launches), draw.choice(("launch", "file", "folder", "pipe"))
    match word:
        case "launch":
            copy = run / LAUNCHES / draw.choice(("b99-copy", "b03-a", "x"))
            copy.mkdir(exist_ok=True)
            for path in sorted(launch.iterdir()):
                if path.is_file() and copy != launch:
                    shutil.copy(path, copy)
        case "file":
            (run / LAUNCHES / "a file").write_bytes(draw.choice(WHOLE_FILES))
        case _:
            path = launch / draw.choice(("samples.parquet", "channels.parquet", "launch.json"))
            if path.is_dir():
                return
            path.unlink(missing_ok=True)
            path.mkdir() if word == "folder" else os.mkfifo(path)


def change_text(run: Path, draw: random.Random, pattern: str, by: Callable[[], str]) -> None:
    texts = [path for path in files_of(run, draw) if path.suffix != ".parquet"]
    if texts:
        text = texts[0].read_text(errors="replace")
        found = list(re.finditer(pattern, text))
        if found:
            at = draw.choice(found)
            texts[0].write_text(text[: at.start()] + by() + text[at.end() :])


def change_number(run: Path, draw: random.Random) -> None:
    change_text(run, draw, r"-?\d+\.?\d*", lambda: draw.choice(NUMBERS))


def change_word(run: Path, draw: random.Random) -> None:
    change_text(run, draw, r'(?<=")[^"\n]*(?=")', lambda: draw.choice(TEXTS))


def drop_line(run: Path, draw: random.Random) -> None:
    change_text(run, draw, r"(?m)^.*\n", lambda: draw.choice(("", "\n", "}{\n")))


def replace_file(run: Path, draw: random.Random) -> None:
    files_of(run, draw)[0].write_bytes(draw.choice(WHOLE_FILES))


def rewrite_column(run: Path, draw: random.Random) -> None:
    """Write a Parquet file anew with a column that is not what it was, and forget the hash of it: what a foreign program may do."""
    files = [path for path in files_of(run, draw) if path.suffix == ".parquet"]
    if not files:
        return
    path = files[0]
    try:
        frame = pl.read_parquet(path)
        name = draw.choice(frame.columns)
        other = draw.choice(
            (
                pl.lit("not json"),
                pl.lit(None),
                pl.lit(-1),
                pl.lit(0).cast(frame.schema[name]) if frame.schema[name].is_integer() else pl.lit(0),
                pl.lit(1e300),
                pl.lit("{}"),
                pl.lit('{"x": "y"}'),
                pl.lit([1]),
                pl.col(name).reverse(),
            )
        )
        changed = frame.drop(name) if draw.random() < 0.2 else frame.with_columns(other.alias(name))
        changed.write_parquet(path)
        summary = path.parent / "launch.json"
        if not summary.is_file():
            return
        told = json.loads(summary.read_text())
        if isinstance(told, dict) and told.pop("sha256", None) is not None:
            summary.write_text(json.dumps(told))
    except (OSError, ValueError, TypeError, RecursionError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return  # it was damaged before


def forge(run: Path, draw: random.Random) -> None:
    """Rewrite a column and take the journal away: nothing is left to notice it by, and still it must not end in a traceback."""
    (run / "journal.jsonl").unlink(missing_ok=True)
    rewrite_column(run, draw)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    flip_bit,
    flip_bit,
    flip_bit,
    cut_short,
    splice,
    delete,
    swap_files,
    add,
    change_number,
    change_number,
    change_word,
    drop_line,
    replace_file,
    rewrite_column,
    forge,
)


@dataclass
class Counts:
    """What came of the cases. `failures` are what must not be, each with the case and what was seen."""

    cases: int = 0
    damages: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    altered_samples: int = 0
    forged_samples: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)


@contextmanager
def heard_below() -> Iterator[Callable[[], str]]:
    """Catch what is written to the descriptor of stderr itself: Rust tells of a panic there."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def heard() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield heard
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class Damage:
    """One run that is copied, damaged and read again and again."""

    def __init__(self, folder: Path, seed: int, keep: Path | None = None) -> None:
        self._whole = folder / "whole"
        self._case = folder / "case"
        self._seed = seed
        self._keep = keep
        self.counts = Counts()
        write_run(self._whole)
        run = load(self._whole)
        self._samples = {one.launch_id: scan_samples(one.directory).collect() for one in run.launches}
        self._channels = {one.launch_id: scan_channels(one.directory).collect() for one in run.launches}
        self._hash = data_hash(self._whole)

    def case(self, number: int) -> None:
        """Damage a copy in a way that depends on seed and number alone, and read it."""
        draw = random.Random(f"{self._seed}/{number}")
        shutil.rmtree(self._case, ignore_errors=True)
        shutil.copytree(self._whole, self._case)
        done = [draw.choice(DAMAGES) for _ in range(draw.choice((1, 1, 1, 2, 4)))]
        for damage in done:
            if files_of(self._case, random.Random(0)):
                damage(self._case, draw)
        self.counts.cases += 1
        self.counts.damages.update(damage.__name__ for damage in done)
        before = len(self.counts.failures)
        with heard_below() as heard:
            self._read(number, is_forged=forge in done)
            below = heard()
        if "panicked" in below:
            self._fail(number, f"a panic: {below.splitlines()[0][:200]}")
        if self._keep is not None and len(self.counts.failures) > before:
            (self._keep / f"case-{number}").mkdir(parents=True, exist_ok=True)
            (self._keep / f"case-{number}" / "damages.txt").write_text("\n".join(damage.__name__ for damage in done))

    def _fail(self, number: int, what: str) -> None:
        self.counts.failures.append((number, what))

    def _read(self, number: int, *, is_forged: bool) -> None:
        run = self._guarded(number, "load", lambda: load(self._case))
        if isinstance(run, Run):
            self._guarded(number, "frames", lambda: self._frames(number, run, is_forged=is_forged))
            self._guarded(number, "compare", lambda: compare(run))
        is_same = self._hash == data_hash_or_none(self._case)
        verified = self._command(number, "verify", str(self._case), "--format", "json")
        if not is_same and verified == 0:
            self._fail(number, "verify calls an altered run whole")
        self._command(number, "show", str(self._case), "--summary", "--format", "json")
        if number % REPORT_EVERY == 0:
            self._guarded(number, "verify", lambda: verify(self._case))
            self._command(number, "report", str(self._case), "--format", "markdown", "-o", "-")

    def _frames(self, number: int, run: Run, *, is_forged: bool) -> None:
        frames = run.samples().collect()
        run.cells(), run.channels().collect(), run.launch_quantiles()
        for launch in run.launches:
            used = frames.filter(pl.col("launch_id") == launch.launch_id).drop("launch_id")
            channels = scan_channels(launch.directory).collect()
            known = self._samples.get(launch.launch_id), self._channels.get(launch.launch_id)
            if known[0] is None or known[1] is None or not used.equals(known[0]) or not channels.equals(known[1]):
                if is_forged:
                    self.counts.forged_samples += 1
                else:
                    self._fail(number, f"altered samples of {launch.launch_id} are used")
        unused = set(self._samples) - {launch.launch_id for launch in run.launches}
        self.counts.altered_samples += len(unused)

    def _guarded(self, number: int, what: str, act: Callable[[], Found]) -> Found | None:
        try:
            found = act()
        except FabricbenchError as error:
            self.counts.ended[f"{what}: {type(error).__name__}"] += 1
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of polars is no Exception
            place = traceback.extract_tb(error.__traceback__)[-1]
            self._fail(
                number,
                f"{what}: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {str(error)[:200]}",
            )
            return None
        self.counts.ended[f"{what}: done"] += 1
        return found

    def _command(self, number: int, *arguments: str) -> int:
        """Call the program as its main does, and return its exit code; SystemExit is its only way out."""
        code = 0
        sys.argv = ["fabricbench", *arguments]
        out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
        name = f"fabricbench {arguments[0]}"
        try:
            with redirect_stdout(out), redirect_stderr(err):
                cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001
            place = traceback.extract_tb(error.__traceback__)[-1]
            self._fail(
                number,
                f"{name}: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {str(error)[:200]}",
            )
        if "Traceback" in err.getvalue():
            self._fail(number, f"{name}: a traceback")
        self.counts.ended[f"{name}: exit {code}"] += 1
        return code


def data_hash_or_none(path: Path) -> str | None:
    """Return the hash of the data; None where a file cannot be read."""
    try:
        return data_hash(path)
    except OSError:
        return None


def told(counts: Counts, seed: int, seconds: float) -> str:
    """Return the counts as text."""
    lines = [
        f"{counts.cases:,} damaged run directories (seed {seed}) in {seconds:,.0f} s, {sum(counts.damages.values()):,} damages:"
    ]
    lines += [f"  {name.replace('_', ' ')}: {number:,}" for name, number in sorted(counts.damages.items())]
    lines += [f"  {name}: {number:,}" for name, number in sorted(counts.ended.items())]
    lines += [
        f"launches left out because of the damage: {counts.altered_samples:,}",
        f"launches used with forged content (hash and journal taken away): {counts.forged_samples:,}",
        f"failures: {len(counts.failures):,}",
    ]
    lines += [f"  case {number}: {what}" for number, what in counts.failures[:40]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    began = time.monotonic()
    cli.app = typer.main.get_command(cli.app)  # type: ignore[assignment] - once, not in each of ten thousand calls
    with tempfile.TemporaryDirectory() as folder:
        damage = Damage(Path(folder), options.seed, options.keep)
        for number in range(options.first, options.first + options.count):
            if time.monotonic() - began > options.seconds:
                break
            damage.case(number)
    print(told(damage.counts, options.seed, time.monotonic() - began))
    return 1 if damage.counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
