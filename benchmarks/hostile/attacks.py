"""What somebody who means harm does to a run directory: each attack by its function, drawn from a seed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks import damage

from fabricbench.record.integrity import LAUNCHES

NAMES = (
    *("dossier.html", "dossier.md", "figures", ".lock", "journal.jsonl", "manifest.json", "plan.json", "plan.seal"),
    *("submission.json", "launches", "map-confirmation", "notes"),
)
OF_A_LAUNCH = (
    *(
        "launch.json",
        "cells.parquet",
        "samples.parquet",
        "channels.parquet",
        "plan.json",
        "records.jsonl",
        "kernel.jsonl",
    ),
    *("stdout.log", "stderr.log", "attempt-1", ".staged", ".collected", "texts", "around.json", "potentials"),
)
LONG = (
    "\x1b[2J\x1b]0;x\x07",
    "../../../canary/new",
    "<script>alert(1)</script>",
    "\u202egnp",
    "x" * 100_000,
    "a\nb",
    "",
)
HUGE = (10**400, -1, 2**63, 1e308, float("nan"), float("inf"), 10**18, 0)


def write_run(path: Path) -> None:
    """Write the run that is attacked: as that of `damage`, with a plan, of a lab that does not run."""
    from fabricbench.campaign.plan import plan_run  # noqa: PLC0415 - only in the child that writes it
    from fabricbench.campaign.run_directory import RunDirectory, StoredPlan  # noqa: PLC0415
    from fabricbench.campaign.specification import Campaign  # noqa: PLC0415
    from fabricbench.campaign.venue import Standing  # noqa: PLC0415
    from support.synthetic_run import synthetic_testbed  # noqa: PLC0415

    damage.write_run(path)
    testbed = synthetic_testbed(dict.fromkeys(("a", "b")))
    experiment = {"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [64]}
    campaign = Campaign.model_validate({"name": "synthetic", "blocks": damage.BLOCKS, "experiments": [experiment]})
    plan = plan_run(campaign, testbed, seed=1)
    RunDirectory(path).write_plan(StoredPlan(campaign=campaign, plan=plan, venue=Standing(given=testbed)))


@dataclass
class Attack:
    """A copy of the run, the folder beside it that nothing may touch, and what decides what is done."""

    run: Path
    canary: Path
    draw: random.Random

    def by(self, done: list[Callable[[Attack], None]]) -> None:
        """Do it all; what an earlier one has made impossible is left out."""
        for one in done:
            with suppress(OSError):
                one(self)

    def launch(self) -> Path:
        found = sorted(path for path in (self.run / LAUNCHES).glob("*") if path.is_dir() and not path.is_symlink())
        return self.draw.choice(found) if found else self.run

    def name(self) -> Path:
        """Return a name that some command reads or writes; whatever has it is gone."""
        draw = self.draw
        path = self.launch() / draw.choice(OF_A_LAUNCH) if draw.random() < 0.5 else self.run / draw.choice(NAMES)
        removed(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def file(self) -> Path | None:
        found = damage.files_of(self.run, self.draw)
        return found[0] if found else None

    def json(self) -> Path | None:
        found = [path for path in damage.files_of(self.run, self.draw) if path.suffix == ".json"]
        return found[0] if found else None


def removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def link(one: Attack) -> None:
    path = one.name()
    targets = (
        *(one.canary / "file", one.canary / "folder", one.canary / "new", one.canary / "folder/new", one.canary.parent),
        *(
            Path("/dev/zero"),
            Path("/dev/full"),
            Path("/dev/stdin"),
            Path("/proc/self/mem"),
            Path(path.name),
            Path(".."),
        ),
        *(one.run, one.run / "manifest.json", one.launch(), one.launch() / "samples.parquet"),
    )
    target = one.draw.choice(targets)
    path.symlink_to(
        os.path.relpath(target, path.parent) if target.is_absolute() and one.draw.random() < 0.5 else target
    )


def links_of_temporaries(one: Attack) -> None:
    """Plant what versions that could be guessed would have written to."""
    for name in ("dossier.html", "journal.jsonl", "manifest.json", "dossier.md"):
        for number in range(os.getpid(), os.getpid() + 20):
            with suppress(FileExistsError):
                (one.run / f".{name}.{number}.tmp").symlink_to(one.canary / "file")


def hard_link(one: Attack) -> None:
    path = one.name()
    os.link(one.draw.choice((one.canary / "file", one.run / "manifest.json", one.canary / "file")), path) if (
        one.run / "manifest.json"
    ).is_file() else os.link(one.canary / "file", path)


def special(one: Attack) -> None:
    path = one.name()
    match one.draw.choice(("pipe", "socket", "zero", "folder", "file")):
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as end, suppress(OSError):
                end.bind(os.fspath(path))
        case "zero":
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
            except OSError:
                os.mkfifo(path)
        case "folder":
            (path / "launches" / "launches").mkdir(parents=True)
        case _:
            path.write_bytes(one.draw.choice(damage.WHOLE_FILES))


def sparse(one: Attack) -> None:
    path = one.file()
    if path is not None:
        os.truncate(path, one.draw.choice((1, 3, 5, 50)) * 1024**3 + one.draw.randrange(1000))
        if one.draw.random() < 0.3 and path.suffix == ".parquet":
            with path.open("r+b") as file:
                file.seek(-8, os.SEEK_END)
                file.write(b"\x10\x00\x00\x00PAR1")


def bomb(one: Attack) -> None:
    """Put a Parquet file made beforehand, which unpacks to gigabytes, in the place of one, with the right hash and number."""
    launch = one.launch()
    name, kind = one.draw.choice((("samples", "rows"), ("samples", "few"), ("channels", "rows"), ("cells", "texts")))
    made = one.canary.parent / "bombs" / f"{name}-{kind}.parquet"
    if not made.exists() or not (launch / "launch.json").is_file():
        return
    removed(launch / f"{name}.parquet")
    shutil.copy(made, launch / f"{name}.parquet")
    told = json.loads((made.parent / f"{made.stem}.json").read_text())
    rows = {"table_rows": {name: told["rows"]}} if name == "channels" else {name: told["rows"]}
    edit(launch / "launch.json", lambda data: data.update(rows))
    rehash(one)


def endless(one: Attack) -> None:
    """Put JSON without end in a file: deep, wide or of one text."""
    path = one.file()
    if path is None:
        return
    size = one.draw.choice((10_000, 1_000_000, 20_000_000))
    pieces = (b"[" * size, b'{"a":' * (size // 5), b"[" + b"[]," * (size // 3) + b"1]", b'{"a":"' + b"x" * size + b'"}')
    text = one.draw.choice((*pieces, b"9" * size, b"{" + b",".join(b'"%d":{}' % n for n in range(size // 10)) + b"}"))
    if path.suffix == ".jsonl" and one.draw.random() < 0.5:
        with path.open("ab") as file:
            file.write(text + b"\n")
    else:
        path.write_bytes(text)


def edit(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change a file of JSON, where it is one still, and not without end."""
    if not path.is_file() or path.stat().st_size > 10**8:
        return
    try:
        data = json.loads(path.read_text())
        if isinstance(data, dict):
            change(data)
            path.unlink()
            path.write_text(json.dumps(data))
    except (OSError, ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return


def places(data: object) -> Iterator[tuple[dict[str, object], str]]:
    """Yield every value of JSON by its parent and key."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield data, key
            yield from places(value)
    elif isinstance(data, list):
        for value in data:
            yield from places(value)


def put_value(one: Attack) -> None:
    """Put a text that leads out or acts, or a number that no one can hold, in the place of any value, often with right hashes."""
    path = one.json()
    if path is None:
        return

    def change(data: dict[str, object]) -> None:
        found = list(places(data))
        if found:
            parent, key = one.draw.choice(found)
            parent[key] = one.draw.choice((*LONG, *HUGE, None, [], {}, [[]], {"": ""}, "x" * 20_000_000))

    edit(path, change)
    if one.draw.random() < 0.8:
        rehash(one)


def rehash(one: Attack) -> None:
    """Make the hashes right again, and take the journal away: who sends a run can."""
    (one.run / "journal.jsonl").unlink(missing_ok=True)
    for launch in sorted((one.run / LAUNCHES).glob("*")):
        if (
            launch.is_symlink()
            or not (launch / "launch.json").is_file()
            or (launch / "launch.json").stat().st_size > 10**8
        ):
            continue

        def change(data: dict[str, object], launch: Path = launch) -> None:
            hashes = {}
            for name in ("cells.parquet", "samples.parquet", "channels.parquet"):
                path = launch / name
                if path.is_file() and not path.is_symlink() and path.stat().st_size < 10**8:
                    hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            data["sha256"] = hashes

        edit(launch / "launch.json", change)


def shuffle_launches(one: Attack) -> None:
    launches = one.run / LAUNCHES
    found = sorted(path for path in launches.glob("*") if path.is_dir())
    if len(found) < 2:
        return
    first, second = one.draw.sample(found, 2)
    match one.draw.choice(("rename", "copy", "swap", "nest", "many")):
        case "rename":
            first.rename(
                launches / one.draw.choice(("b99-a", "b00-zz", "x", "..x", "b0-a", " ", "\x1b[31m", "b00-" + "y" * 200))
            )
        case "copy":
            shutil.copytree(
                first, launches / one.draw.choice(("b02-a", "attempt-1", ".hidden")), symlinks=True, dirs_exist_ok=True
            )
        case "swap":
            first.rename(launches / "aside")
            second.rename(first)
            (launches / "aside").rename(second)
        case "nest":
            deep = first / "attempt-1" / "/".join(["attempt-1"] * one.draw.choice((3, 40)))
            deep.mkdir(parents=True, exist_ok=True)
        case _:
            for number in range(500):
                (launches / f"b{number:02d}-a").mkdir(exist_ok=True)


def forbid(one: Attack) -> None:
    found = sorted((path for path in one.run.rglob("*") if not path.is_symlink()), key=lambda path: path.as_posix())
    if found:
        one.draw.choice([*found, one.run]).chmod(one.draw.choice((0, 0o200, 0o400, 0o444)))


def damaged(one: Attack) -> None:
    """Do one of the random damages, and make the hashes right again in half of the cases."""
    if damage.files_of(one.run, random.Random(0)):
        with suppress(OSError):
            one.draw.choice(damage.DAMAGES)(one.run, one.draw)
    if one.draw.random() < 0.5:
        rehash(one)


ATTACKS: tuple[Callable[[Attack], None], ...] = (
    *(link, link, link, links_of_temporaries, hard_link, special, special, sparse, bomb, endless),
    *(put_value, put_value, put_value, shuffle_launches, forbid, damaged, damaged, damaged),
)


def make_bombs(folder: Path) -> None:
    """Write the Parquet files that `bomb` puts in place."""
    import polars as pl  # noqa: PLC0415 - only in the child that writes them

    from fabricbench.record.decoding import MOST_SAMPLES  # noqa: PLC0415
    from fabricbench.record.frames import CELL_SCHEMA, CHANNEL_SCHEMA, SAMPLE_SCHEMA  # noqa: PLC0415

    folder.mkdir()
    kinds = (
        ("samples-rows", SAMPLE_SCHEMA, MOST_SAMPLES + 1_000_000, {}),
        ("samples-few", SAMPLE_SCHEMA, 3_000_000, {}),
        ("channels-rows", CHANNEL_SCHEMA, 5_000_000, {}),
        ("cells-texts", CELL_SCHEMA, 300, {"variant": "x" * 2_000_000}),
    )
    for name, schema, rows, texts in kinds:
        columns = []
        for column, kind in schema.items():
            value: object = texts.get(column, 1)
            if isinstance(kind, pl.Enum):
                value = kind.categories[0]
            elif kind == pl.Boolean:
                value = False
            elif kind == pl.String and column not in texts:
                value = "{}"
            one = pl.lit(None, dtype=kind) if isinstance(kind, pl.List) else pl.lit(value).cast(kind)
            columns.append(pl.repeat(one, rows, eager=False).alias(column))
        pl.select(*columns).lazy().sink_parquet(folder / f"{name}.parquet", compression="zstd")
        (folder / f"{name}.json").write_text(json.dumps({"rows": rows}))
