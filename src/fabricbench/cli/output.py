"""Where a command's data goes, stdout or the file of `--output`, which appears whole or not at all, and how values are written.

Formats of all commands with a table (`fabricbench.table` writes those), shares, units.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from textwrap import fill, wrap
from typing import Any, BinaryIO

from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.printable import printable, shortened
from fabricbench.quantity import format_bit_s, format_message_s, format_seconds, format_work, parse_share
from fabricbench.record.atomic import error_number, explained, replaced
from fabricbench.record.integrity import JOURNAL, LAUNCHES, MANIFEST, PLAN
from fabricbench.table import markdown_text, rows_csv

WIDEST_TEXT, NARROWEST_TEXT = 110, 60


def text_width() -> int:
    """Return how wide prose is: as the terminal, or COLUMNS says, between what is read with ease and what its words need."""
    return max(NARROWEST_TEXT, min(WIDEST_TEXT, shutil.get_terminal_size((WIDEST_TEXT, 0)).columns))


def output_width(output: Path | None, otherwise: int) -> int:
    """Return how wide a command's tables may be: as the terminal, or COLUMNS says; `otherwise` in files and pipes."""
    if output is not None and str(output) != "-":
        return otherwise
    is_shown = sys.stdout.isatty() or "COLUMNS" in os.environ
    return max(NARROWEST_TEXT, shutil.get_terminal_size((otherwise, 0)).columns) if is_shown else otherwise


def prose(lines: Iterable[str], form: OutputFormat, width: int | None = None, *, hanging: int = 2) -> str:
    """Return sentences in a format for people: in Markdown an item each, which lines that follow one another are not.

    Text is wrapped to a `width` that is given.
    """
    if form is OutputFormat.MARKDOWN:
        return "\n".join(f"- {markdown_text(line)}" for line in lines)
    return "\n".join(lines if width is None else wrapped(lines, width, hanging=hanging))


def wrapped(lines: Iterable[str], width: int, *, hanging: int = 2) -> list[str]:
    """Return prose as lines of so many columns, a word or a path always whole; what goes on is set in from its line's beginning."""
    return [
        part
        for line in lines
        for part in wrap(
            line,
            width,
            subsequent_indent=" " * (len(line) - len(line.lstrip()) + hanging),
            break_on_hyphens=False,
            break_long_words=False,
        )
        or [""]
    ]


REPEAT = "repeat the command"
STDOUT = Path("-")


def check_output(path: Path | None, *, may_replace: bool = True) -> None:
    """Raise UsageError where nothing may be written to a path: before the work whose result is to stand there.

    A file that is there, or a link of that name, is refused unless it `may_replace` it. EnvironmentLacks for a folder that may not
    be written to.
    """
    if is_file_name(path) and path is not None:
        _check_replaceable(path)
        _check_folder(path)
        if not may_replace:
            check_new(path)


def is_file_name(path: Path | None) -> bool:
    """Whether a path stands for a file, there or not: not for stdout, a descriptor that the shell has opened, a device of /dev."""
    if path is None or str(path) == "-" or _descriptor(path) is not None:
        return False
    return not (_kind(path) == stat.S_IFCHR and path.absolute().parent == DEVICES)


@contextmanager
def opened_output(path: Path | None) -> Iterator[BinaryIO]:
    """Yield the binary stream to write to; without a path, or with `-`, stdout.

    A file, or a link of that name, is replaced: `check_output` says whether it may be. Written to are only descriptors that the
    shell has opened (`/dev/stdout`, `/dev/fd/N`) and character devices of `/dev` (`/dev/null`). EnvironmentLacks where the disk is
    full or may not be written to, UsageError for a path that cannot be: a pipe, a disk.
    """
    if path is None or str(path) == "-":
        written: AbstractContextManager[BinaryIO] = _standard_output()
    elif (descriptor := _descriptor(path)) is not None:
        written = _open_descriptor(descriptor)
    elif _kind(path) == stat.S_IFCHR and path.absolute().parent == DEVICES:
        written = path.open("wb")
    else:
        _check_replaceable(path)
        with replaced(path) as stream:
            yield stream
        return
    try:
        with written as stream:
            yield stream
    except Exception as error:
        where = Path("standard output") if path is None or str(path) == "-" else path
        raise explained(error, where, way_on=REPEAT) from error


DEVICES = Path("/dev")
STREAMS = {DEVICES / "stdout": 1, DEVICES / "stderr": 2}
DESCRIPTORS = (DEVICES / "fd", Path("/proc/self/fd"))


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor that a path names: what a shell writes for `>(command)` does."""
    path = path.absolute()
    if path.parent in DESCRIPTORS and path.name.isdecimal():
        return int(path.name)
    return STREAMS.get(path)


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return None


def write_files(files: Mapping[Path, bytes], named: Path) -> list[Path]:
    """Write files, none before all of them may be, and return what to tell: a folder once, stdout not.

    `named` is what the user named, a file or a folder: what is deeper is in folders that are made.
    """
    for path in filter(is_file_name, files):
        _check_replaceable(path)
    for folder in dict.fromkeys(path.parent for path in files if path.parent != named.parent):
        _make_folder(folder)
    for path, content in files.items():
        with opened_output(path) as stream:
            stream.write(content)
    told = dict.fromkeys(path if path.parent == named.parent else path.parent for path in files)
    return [path for path in told if path != STDOUT]


def _make_folder(folder: Path) -> None:
    """Make a folder for files, or take the one that is there; UsageError for a link, behind which is somebody else's."""
    what = "a link" if folder.is_symlink() else "a file" if folder.is_file() else ""
    if what:
        raise UsageError(
            f"{folder} is {what}, and a folder of figures is to be there", hint="remove it, or name another"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explained(error, folder) from error


def check_new(path: Path) -> None:
    """Raise UsageError where something has a name that is to be a new file's or folder's, or a part of a run would have it.

    And, as `check_output`, where nothing may be written there.
    """
    _check_is_no_part_of_a_run(path)
    _check_folder(path)
    if os.path.lexists(path):
        hint = "give a new folder, or remove it" if path.is_dir() else "name another file, or replace it with --force"
        raise UsageError(f"{path} is there already", hint=hint)


def _check_folder(path: Path) -> None:
    """Raise what writing to a path would raise where its folder is none, or may not be written to."""
    code = None
    if not path.parent.is_dir():
        code = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        code = errno.EACCES
    if code is not None:
        raise explained(OSError(code, os.strerror(code)), path)


def _check_replaceable(path: Path) -> None:
    """Raise UsageError where a name stands for something that nothing is written to, or for a part of a run."""
    _check_is_no_part_of_a_run(path)
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFBLK: "a disk",
        stat.S_IFCHR: "a device",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    kind = kinds.get(_kind(path) or 0)
    if kind is not None:
        raise UsageError(
            f"{path} is {kind}, and output is written to files only",
            hint="name a file, or write to stdout and let the shell lead it on: `-o - > ...`",
        )


def _check_is_no_part_of_a_run(path: Path) -> None:
    """Raise UsageError for what is a part of a run, or would be taken for one; a report in its folder is none."""
    own = (MANIFEST, JOURNAL, PLAN, Path(PLAN).with_suffix(".seal").name, LAUNCHES)
    whole = Path(os.path.realpath(path.parent), path.name)
    for folder in whole.parents:
        first = whole.relative_to(folder).parts[0]
        if first in own and any((folder / name).exists() for name in (MANIFEST, JOURNAL, PLAN)):
            raise UsageError(
                f"{path} is a part of the run in {folder}, and nothing is written over what was measured",
                hint=f"name another file, {folder / 'report'}{path.suffix} say",
            )


@contextmanager
def _open_descriptor(descriptor: int) -> Iterator[BinaryIO]:
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        yield stream


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Yield stdout; a reader that has seen enough and closes the pipe (`| head`) is no error."""
    sys.stdout.flush()
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except Exception as error:
        if error_number(error) != errno.EPIPE:
            raise
        # Python flushes stdout once more at its end, and would report the closed pipe there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_output(text: str, path: Path | None, *, has_colour: bool = False) -> None:
    """Write text as a command's data, printable; text that `has_colour` comes from a `PrintableConsole` and is."""
    with opened_output(path) as stream:
        stream.write((text if has_colour else printable(text)).encode())


def say(text: str) -> None:
    """Tell people something on stderr, printable and no line of it endless: it may quote what others wrote."""
    lines = (shortened(line, MOST_OF_A_LINE) for line in text.split("\n"))
    sys.stderr.write(printable("\n".join(lines)) + "\n")


MOST_OF_A_LINE = 8000
"""A command with all of its variables has some thousands."""


class OutputFormat(StrEnum):
    """The formats that every command with a table writes."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as CSV with a header, without the last line's end; None becomes an empty field."""
    return rows_csv(rows, columns).rstrip("\n")


def as_json(value: Any) -> str:
    """Return JSON for programs that people also look at."""
    return json.dumps(value, indent=2)


def share_option(text: str, option: str) -> float:
    """Return the share that an option was given as `2%` or `0.02`; UsageError names the option."""
    try:
        return parse_share(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint="a share is written as 2% or as 0.02") from None


def value_text(value: float, metric: Metric, unit: str) -> str:
    """Return a number of a metric with the unit that suits it; `unit`, which it is stored in, is that of a rate of work."""
    if metric is Metric.WORK_RATE:
        return format_work(value, unit=unit)
    if metric.is_time:
        return format_seconds(value * 1e-9)
    return (format_message_s if metric is Metric.MESSAGE_RATE else format_bit_s)(value)


def bounded_text(value: str, low: str | None, high: str | None) -> str:
    """Return `value (low to high)`, or the value alone."""
    return value if low is None or high is None else f"{value} ({low} to {high})"


def entry(what: str, text: str) -> str:
    """Return a line of a detail: what is told, and the text about it."""
    return hanging(f"  {what:11}", text)


def hanging(head: str, text: str) -> str:
    """Return a head with its text, wrapped and hanging below it."""
    return fill(text, text_width(), initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
