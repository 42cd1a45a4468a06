"""What the shell offers when TAB is pressed: campaigns, testbeds, fabrics, patterns, labs, run directories.

Each function that offers takes the word as far as it is typed. None of them may fail or write: a shell would show it within the
line.

Bash takes words apart before it asks: readline ends one at `:` and `=` (COMP_WORDBREAKS), so `--testbed=lab:my` comes as five
words, and what is offered replaces the last of them only. The words are joined here, and what readline keeps is cut off the
answer. Where somebody took `:` out of COMP_WORDBREAKS nothing is in pieces, and nothing is done.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path


def campaigns(incomplete: str) -> list[str]:
    """Return the presets and the TOML files."""
    from fabricbench.campaign.presets import PRESETS  # noqa: PLC0415 - keeps the start of the program fast

    return [*_beginning(PRESETS, incomplete), *_files(incomplete)]


def testbeds(incomplete: str) -> list[str]:
    """Return `local`, the running labs, the fabrics of a lab to be built (after a comma the next), and the TOML files."""
    if not incomplete.startswith("lab:"):
        return [
            *_beginning(("local", *(f"lab:{name}" for name in (*_running(), *_presets()))), incomplete),
            *_files(incomplete),
        ]
    listed, comma, last = incomplete.removeprefix("lab:").rpartition(",")
    taken = listed.split(",") if listed else []
    names = [name for name in _presets() if name not in taken] if comma else [*_running(), *_presets()]
    return [f"lab:{listed}{comma}{name}" for name in _beginning(names, last)]


def fabrics(incomplete: str) -> list[str]:
    """Return the fabrics that a lab can have."""
    return _beginning(_presets(), incomplete)


def measurable(incomplete: str) -> list[str]:
    """Return the patterns, operations and layers, the kinds of workload and applications, and the words for all of them."""
    from fabricbench.model import Layer, Pattern  # noqa: PLC0415
    from fabricbench.workload.application import shipped  # noqa: PLC0415
    from fabricbench.workload.registry import WORKLOADS  # noqa: PLC0415

    words = (*map(str, Pattern), *map(str, Layer), *WORKLOADS, *shipped(), "workloads", "mpis")
    return _beginning(dict.fromkeys(words), incomplete)


def quantities(incomplete: str) -> list[str]:
    """Return what can stand on the axis of a figure."""
    from fabricbench.analysis.findings.plot import PlotY  # noqa: PLC0415

    return _beginning(PlotY, incomplete)


def labs(incomplete: str) -> list[str]:
    """Return the running labs."""
    return _beginning(_running(), incomplete)


def run_directories(incomplete: str) -> list[str]:
    """Return the run directories and the folders on the way to them."""
    folders = (path for path in _entries(incomplete) if path.is_dir())
    return [str(path) if (path / "manifest.json").exists() else f"{path}/" for path in folders]


def _presets() -> list[str]:
    from fabricbench.lab.presets import PRESETS  # noqa: PLC0415

    return list(PRESETS)


def _running() -> list[str]:
    from fabricbench.errors import FabricbenchError  # noqa: PLC0415
    from fabricbench.lab import running_labs  # noqa: PLC0415

    try:
        return list(running_labs())
    except (FabricbenchError, OSError):
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    return [
        str(path) for path in _entries(incomplete) if path.suffix == ".toml" or (path.is_dir() and "/" in incomplete)
    ]


def _entries(incomplete: str) -> list[Path]:
    """Return what lies in the folder that is typed and begins as its last part does; hidden files where a dot is typed."""
    folder, start = os.path.split(incomplete)
    try:
        names = sorted(os.listdir(folder or "."))  # noqa: PTH208 - a name, not a path with ./ before it
    except OSError:
        return []
    return [Path(folder) / name for name in names if name.startswith(start) and (start or not name.startswith("."))]


ASKED = "_FABRICBENCH_COMPLETE"
BREAKS = ":="


@contextmanager
def mended() -> Iterator[None]:
    """Let a question of bash for completions be answered as if its words were whole; anything else passes."""
    if os.environ.get(ASKED) != "complete_bash":
        yield
        return
    words, current = _words(os.environ.get("COMP_WORDS", "")), int(os.environ.get("COMP_CWORD", "0"))
    words, current, kept = joined(words, current)
    os.environ |= {"COMP_WORDS": "\n".join(map(shlex.quote, words)), "COMP_CWORD": str(current)}
    answer = io.StringIO()
    try:
        with redirect_stdout(answer):
            yield
    finally:
        sys.stdout.writelines(f"{line.removeprefix(kept)}\n" for line in answer.getvalue().splitlines())


def joined(words: Sequence[str], current: int) -> tuple[list[str], int, str]:
    """Return the words up to the current one, joined, the index of that one, and what readline keeps of it.

    `current` beyond the last word means that a new one begins. Of `--option=value` only the value counts as kept.
    """
    whole: list[str] = []
    kept, is_open = "", False
    for word in words[: current + 1]:
        is_break = bool(word) and not word.strip(BREAKS)
        if whole and (is_break or is_open):
            kept = whole[-1] + (word if is_break else "")
            whole[-1] += word
        else:
            whole.append(word)
            kept = ""
        is_open = is_break
    if current >= len(words):
        return [*whole, ""], len(whole), ""
    return whole, len(whole) - 1, kept.partition("=")[2] if kept.startswith("-") else kept


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed yet
        return text.split()
