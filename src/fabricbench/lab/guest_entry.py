"""Runs one command in a guest of a lab: `python -I -S guest_entry.py FOLDER GUEST_PID DIRECTORY COMMAND...`.

The command has this program's environment; its output and its exit code become this program's. It ends when this program is asked
to end, and some 15 seconds after this program was killed. Only the standard library, since it is started for each launch.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from types import FrameType

POLL_SECONDS = 0.02
BEAT_SECONDS = 1.0
GRACE_SECONDS = 8.0
"""The guard in the guest needs some for what it ends."""

NOT_HANDED_ON = ("TMPDIR", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_")
GUEST_GONE, ENDED_BY_SIGNAL = 255, 128


def script_of(tokens: list[str], directory: str, environment: dict[str, str]) -> str:
    """Return what the guest's shell is told."""
    told = {name: value for name, value in environment.items() if name.isidentifier() and name not in NOT_HANDED_ON}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in told.items())
    # Sockets cannot be made in a file system of the machine's.
    return f"{exports}export TMPDIR=/dev/shm\ncd {shlex.quote(directory)} || exit 126\nexec {shlex.join(tokens)}\n"


class Tail:
    """Hands on what is appended to a file. Where nobody reads it any more, the command is asked to end, as by SIGPIPE."""

    def __init__(self, path: str, target: int, asked: list[int]) -> None:
        self._path, self._target, self._asked, self._offset = path, target, asked, 0
        self._has_reader = True

    def hand_on(self) -> None:
        """Hand on what is there since the last time."""
        if not self._has_reader:
            return
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - pathlib takes as long to be imported as all the rest
                file.seek(self._offset)
                new = file.read()
        except OSError:
            return
        self._offset += len(new)
        try:
            while new:
                new = new[os.write(self._target, new) :]
        except BrokenPipeError:
            self._has_reader = False
            self._asked.append(signal.SIGPIPE)


def main(arguments: list[str]) -> int:
    """Run the command; the exit code is the command's, 255 where the guest has ended."""
    folder, guest, directory, *tokens = arguments
    base = f"{folder}/commands/{os.getpid()}.{time.monotonic_ns()}"
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ask)
    _write(f"{base}.beat", "0\n")
    _write(f"{base}.sh", script_of(tokens, directory, dict(os.environ)))
    tails = (Tail(f"{base}.out", 1, asked), Tail(f"{base}.err", 2, asked))
    code = follow(base, guest, tails, asked)
    for tail in tails:
        tail.hand_on()
    if asked and (not code or asked[0] == signal.SIGPIPE):
        return ENDED_BY_SIGNAL + asked[0]
    if code is None:
        sys.stderr.write(
            "the guest that this command ran in has ended; see `console` in its folder in the lab's directory\n"
        )
        return GUEST_GONE
    return code


def follow(base: str, guest: str, tails: tuple[Tail, ...], asked: list[int]) -> int | None:
    """Return the exit code of a command once it has ended; None where the guest has, or does not end what it is asked to."""
    beats, beat_at, deadline = 0, time.monotonic() + BEAT_SECONDS, float("inf")
    while not os.path.exists(f"{base}.rc"):  # noqa: PTH110
        now = time.monotonic()
        if asked and deadline == float("inf"):
            _write(f"{base}.end", "\n")
            deadline = now + GRACE_SECONDS
        if not os.path.exists(f"/proc/{guest}") or now > deadline:  # noqa: PTH110
            return None
        if now > beat_at:
            beats, beat_at = beats + 1, now + BEAT_SECONDS
            _write(f"{base}.beat", f"{beats}\n")
        for tail in tails:
            tail.hand_on()
        time.sleep(POLL_SECONDS)
    with open(f"{base}.rc") as file:  # noqa: PTH123
        return int(file.read())


def _write(path: str, text: str) -> None:
    with open(f"{path}.new", "w") as file:  # noqa: PTH123
        file.write(text)
    os.rename(f"{path}.new", path)  # noqa: PTH104


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
