"""Brings what a launch needs to the node of rank 0 and what it wrote back, where that node does not see the run directory.

Only rank 0 reads and writes files, so its node is the only one that gets any: one folder a launch, removed when all of it is here.
Which node and which folder stands in the launch's own directory (STAGED) before anything is sent: who goes on with the run after a
crash finds there what is still to be fetched.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import folder
from fabricbench.launch.asking import ask_one
from fabricbench.record.atomic import replace_text, synced
from fabricbench.record.confinement import ATTEMPT
from fabricbench.record.integrity import read_file

STAGED = ".staged"
"""In a launch's directory: on which node its folder is, and the folder's name."""

COMING, COME = ".collecting", ".collected"
"""Folders in a launch's directory: what is being unpacked, and what is all there and is being moved to its place."""

NONCE = ".nonce"

ASK_SECONDS = 30.0
TRANSFER_SECONDS = 600.0
"""For what a launch wrote: 1 GB at 2 MB/s."""

TRIES, PAUSE_SECONDS = 3, 2.0
"""What was measured is worth more than one try."""


class NotStaged(EnvironmentLacks):
    """The node of rank 0 could not be given a launch's files, or they could not be brought back."""


class _GoneError(NotStaged):
    """There is nothing to be had any more."""


class Staging:
    """Files between here and these nodes. `in_node` gives the tokens that run others on one, with stdin and stdout handed on."""

    def __init__(self, nodes: Collection[str], in_node: Callable[[str, Sequence[str]], list[str]]) -> None:
        self._nodes = nodes
        self._in_node = in_node
        self._is_shared: dict[str, bool] = {}

    def stage(self, directory: Path, node: str) -> Path:
        """Return a launch's directory as rank 0 sees it, which is on that node, with all that is in it. Raises NotStaged."""
        if self._sees(node, directory):
            return directory
        token = secrets.token_hex(8)
        replace_text(directory / STAGED, json.dumps({"node": node, "token": token}) + "\n")
        with TemporaryFile() as packed:
            folder.pack(directory, packed, without=ATTEMPT)  # no earlier one has any use there
            size = packed.tell()
            answer = self._ask(node, "put", token, str(size), given=packed)
        return Path(str(_of(node, answer, "folder")))

    def collect(self, directory: Path, *, tries: int = TRIES) -> None:
        """Bring back what a launch left on the node, whole or not at all, and remove it there; nothing if it was not staged.

        Raises NotStaged where it cannot be had: it stays on the node, and STAGED in the directory.
        """
        staged = directory / STAGED
        if not staged.exists():
            return
        _move_to_its_place(directory)
        node, token = self._told(staged)
        for left in reversed(range(tries)):
            try:
                self._take(node, token, directory)
                break
            except _GoneError:
                staged.unlink()
                raise
            except NotStaged:
                if not left:
                    raise
                time.sleep(PAUSE_SECONDS)
        with suppress(NotStaged):  # all of it is here: a folder that stays there costs space only
            self._ask(node, "drop", token)
        staged.unlink()

    def silent_seconds(self, directory: Path, paths: Iterable[Path]) -> float | None:
        """Return how long none of a launch's files has grown on the node; None where none has begun to, or nobody can tell."""
        staged = directory / STAGED
        if not staged.exists():
            return None
        try:
            node, token = self._told(staged)
            names = (path.relative_to(directory).as_posix() for path in paths)
            seconds = _of(node, self._ask(node, "silent", token, *names), "seconds")
        except NotStaged:
            return None
        return None if seconds is None else float(seconds)

    def _told(self, staged: Path) -> tuple[str, str]:
        try:
            found = json.loads(read_file(staged))
            node, token = str(found["node"]), str(found["token"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise NotStaged(f"{staged} cannot be read: {error}") from error
        if node not in self._nodes:
            raise NotStaged(f"what it wrote is on {node}, which is no node of the testbed now")
        return node, token

    def _sees(self, node: str, directory: Path) -> bool:
        """Tell whether a node sees a file that is written here now: tried once, whatever anybody believes."""
        if node not in self._is_shared:
            content = secrets.token_hex(16)
            nonce = directory / NONCE
            replace_text(nonce, content)
            try:
                self._is_shared[node] = bool(_of(node, self._ask(node, "sees", str(nonce), content), "is_seen"))
            finally:
                nonce.unlink(missing_ok=True)
        return self._is_shared[node]

    def _take(self, node: str, token: str, directory: Path) -> None:
        with TemporaryFile(dir=directory) as taken:
            answer = self._ask(node, "take", token, taken=taken)
            if answer.get("is_gone"):
                raise _GoneError(f"what it wrote is not on {node} any more: its temporary files were removed")
            size, begin = int(_of(node, answer, "size")), taken.tell()
            found = taken.seek(0, 2) - begin
            if found < size:
                raise NotStaged(f"{found} of {size} bytes came back from {node}")
            taken.seek(begin)
            if folder.sha256_of(taken) != _of(node, answer, "sha256"):
                raise NotStaged(f"what came back from {node} is damaged: it stays there")
            taken.seek(begin)
            shutil.rmtree(directory / COMING, ignore_errors=True)
            (directory / COMING).mkdir()
            try:
                folder.unpack(taken, directory / COMING)
            except ValueError as error:  # OSError is this machine's own: its disk is full, say
                raise NotStaged(f"what came back from {node} cannot be read: {error}") from error
        (directory / COMING).rename(directory / COME)
        synced(directory)
        _move_to_its_place(directory)

    def _ask(
        self, node: str, action: str, *arguments: str, given: BinaryIO | None = None, taken: BinaryIO | None = None
    ) -> dict[str, Any]:
        """Return the node's answer; what follows it is left in `taken`, which stands behind the answer's line then."""
        tokens = self._in_node(node, [sys.executable, "-I", "-S", folder.__file__, action, *arguments])
        seconds = TRANSFER_SECONDS if action in ("put", "take") else ASK_SECONDS
        with TemporaryFile() as spare:
            out = spare if taken is None else taken
            if given is not None:
                given.seek(0)
            answer = ask_one(tokens, seconds, given=given, taken=out)
            line = _after_mark(out)
            if answer.exit_code == 0 and line is not None:
                return _read(node, line)
        said = answer.problem or answer.last_words
        what = {"sees": "asked whether it sees the run directory", "put": "given what a launch needs"}
        raise NotStaged(
            f"{node} could not be {what.get(action, 'asked for what a launch wrote')}: {said}",
            hint=f"make a command on {node} work from here, with its stdin and stdout: `{tokens[0]} ...`",
        )


def _read(node: str, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise NotStaged(f"the answer of {node} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise NotStaged(f"the answer of {node} cannot be read: {line[:80]!r}")
    return found


def _of(node: str, answer: dict[str, Any], what: str) -> Any:
    if what not in answer:
        raise NotStaged(f"the answer of {node} lacks {what!r}: another version of fabricbench is there")
    return answer[what]


def _after_mark(file: BinaryIO) -> bytes | None:
    """Return the rest of the line that begins with the mark, and leave the file behind it; None where there is none."""
    file.seek(0)
    for line in file:
        _, mark, rest = line.partition(folder.MARK)  # a shell may have printed without ending its line
        if mark:
            return rest
    return None


def _move_to_its_place(directory: Path) -> None:
    """Move what has come, all of it, into the launch's directory; also what a crash left half moved."""
    come = directory / COME
    if not come.is_dir():
        return
    for path in sorted(come.rglob("*"), key=lambda one: (not one.is_dir(), one)):
        target = directory / path.relative_to(come)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)
    synced(directory)
    shutil.rmtree(come)
