"""Makes a PVM of the nodes of a launch, on the fabric, for one program: `python -I -S pvm_machine.py PROGRAM...` on every rank.

Its ranks have met (`meeting`, with `--keep`). Rank 0 starts PVM's first daemon, on its address on the fabric, with a host file of
the others' addresses there. That daemon starts the others through what PVM_RSH names: this file, which hands the command on to the
rank with that address. So no ssh is needed, every daemon is a descendant of a rank, and is ended with it. Then rank 0 runs the
program; the others wait. The program's file is put beside each daemon, where `pvm_spawn` finds it by its name.

PVM_ROOT says where PVM is (default Debian's). What lies in a folder of this launch's own on each node: PVM's sockets and logs, the
program. Only the standard library.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = "/usr/lib/pvm3"

ROOT_VARIABLE = "PVM_ROOT"

DAEMON, CONSOLE = "lib/pvmd", "lib/pvm"
"""Below its folder."""

RSH, SOCKET = "rsh", "orders"
"""Of the folder of rank 0: what PVM starts daemons with, and where that hands on what it was told."""

START_SECONDS = 20.0
"""All daemons; PVM itself gives each one as long."""

END_SECONDS = 5.0
"""What a daemon has to halt before it is killed."""

MOST_OF_A_LOG = 2000

CANNOT_START = 69

LOOPBACK = "127."

READY = "ddpro<"
"""How what a daemon says begins when it has joined; until then it may print anything."""


class NoMachineError(Exception):
    """Why there is no PVM."""


def root() -> str:
    """Return the folder of PVM."""
    return os.environ.get(ROOT_VARIABLE) or ROOT


class PvmChannel:
    """A connection to another rank: one line of JSON at a time."""

    def __init__(self, descriptor: int) -> None:
        self._file = socket.socket(fileno=descriptor).makefile("rwb")

    def send(self, message: dict[str, Any]) -> None:
        """Say something; OSError where the other rank is gone."""
        self._file.write(json.dumps(message).encode() + b"\n")
        self._file.flush()

    def receive(self) -> dict[str, Any] | None:
        """Return what the other rank said; None where it is gone."""
        try:
            line = self._file.readline()
        except OSError:
            return None
        found = json.loads(line) if line.endswith(b"\n") else None
        return found if isinstance(found, dict) else None

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a message; nothing where the other rank is gone."""
        self.send(message)
        return self.receive() or {}


def daemon_tokens(arguments: list[str]) -> list[str]:
    """Return the tokens that start a daemon."""
    return [str(Path(root()) / DAEMON), *arguments]


def start_daemon(arguments: list[str]) -> str:
    """Start a daemon that another one has asked for; return the line that it says when it is there, or what it said instead."""
    daemon = subprocess.Popen(
        daemon_tokens(arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    said = []
    for line in daemon.stdout or ():
        said.append(line)
        if line.startswith(READY):
            return line
    return "".join(said)


def follow(folder: Path, first: PvmChannel) -> int:
    """Do on another rank what rank 0 asks for, until it is gone."""
    while (order := first.receive()) is not None:
        if "file" in order:
            path = folder / Path(order["file"]).name
            path.write_bytes(base64.b64decode(order["content"]))
            path.chmod(0o700)
            first.send({"folder": str(folder)})
        elif "start" in order:
            first.send({"said": start_daemon(order["start"])})
        else:
            break
    return 0


def serve_orders(server: socket.socket, others: dict[str, PvmChannel]) -> None:
    """Hand on what PVM's first daemon wants to be started on other nodes: one at a time, as it asks."""
    while True:
        connection, _ = server.accept()
        with connection, connection.makefile("rw") as file:
            host, arguments = json.loads(file.readline())
            other = others.get(host)
            answer = {} if other is None else other.ask({"start": arguments})
            file.write(answer.get("said") or f"no rank is at {host}\n")


def rsh(arguments: list[str]) -> int:
    """Do as rsh does for PVM: `HOST [-l USER] [-n] COMMAND`; the answer goes to stdout."""
    host, *rest = arguments
    words = " ".join(rest).split()
    # The command is a shell's line that names the daemon below PVM_ROOT.
    start = next((index for index, word in enumerate(words) if word.strip("'\"").endswith("pvmd")), None)
    if start is None:
        return 1  # what PVM tries once a daemon did not start
    daemon = [word.strip("'\"") for word in words[start + 1 :]]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(Path(os.environ["PVM_TMP"]) / SOCKET))
        with connection.makefile("rw") as file:
            file.write(json.dumps([host, daemon]) + "\n")
            file.flush()
            sys.stdout.write(file.readline())
    return 0


def console(command: str) -> str:
    """Return what PVM's console answers."""
    program = Path(root()) / CONSOLE
    asked = subprocess.run(
        [program], input=f"{command}\nquit\n", capture_output=True, text=True, errors="replace", timeout=START_SECONDS, check=False
    )  # fmt: skip
    return asked.stdout


def lead(folder: Path, addresses: list[str], others: list[PvmChannel], command: list[str]) -> int:
    """Start PVM, run the program on it, and halt it; return the program's exit code. NoMachineError: there is no PVM."""
    program = shutil.which(command[0])
    if program is None:
        raise NoMachineError(f"there is no program {command[0]}")
    if len(set(addresses)) < len(addresses):
        raise NoMachineError(f"PVM takes one rank on a node, and these are at {', '.join(addresses)}")
    if any(address.startswith(LOOPBACK) for address in addresses):
        raise NoMachineError(
            f"PVM takes no address of the loopback, {addresses[0]}; needed a fabric with an interface of its own"
        )
    shipped = Path(program).name
    content = base64.b64encode(Path(program).read_bytes()).decode()
    shutil.copy(program, folder / shipped)
    folders = [other.ask({"file": shipped, "content": content}).get("folder") for other in others]
    if None in folders:
        raise NoMachineError(f"rank {folders.index(None) + 1} has gone")
    hosts = folder / "hosts"
    # `&`: not started yet, but that is where its programs are once it is added.
    added = "".join(f"& {address} ep={where}\n" for address, where in zip(addresses[1:], folders, strict=True))
    hosts.write_text(f"{addresses[0]} ep={folder}\n{added}")
    script = folder / RSH
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} --{RSH} "$@"\n')
    script.chmod(0o700)
    os.environ["PVM_RSH"] = str(script)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / SOCKET))
    server.listen()
    known = dict(zip(addresses[1:], others, strict=True))
    threading.Thread(target=serve_orders, args=(server, known), daemon=True).start()
    log = folder / "pvmd.log"
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            daemon_tokens([f"-n{addresses[0]}", str(hosts)]), stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        add_hosts(daemon, addresses[1:], folder)
    except (NoMachineError, OSError, subprocess.SubprocessError):
        daemon.kill()
        raise
    code = subprocess.run([str(folder / shipped), *command[1:]], check=False).returncode
    halt(daemon)
    return code


def add_hosts(daemon: subprocess.Popen[bytes], addresses: list[str], folder: Path) -> None:
    """Add all other nodes to the first daemon's; NoMachineError, with what PVM said, where one of them does not join in time."""
    deadline = time.monotonic() + START_SECONDS
    while not any(folder.glob("pvmd.[0-9]*")) and daemon.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if daemon.poll() is None:
        found = console(f"add {' '.join(addresses)}\nconf" if addresses else "conf")
        if f"\n{1 + len(addresses)} host" in found:
            return
    else:
        found = f"its daemon ended with {daemon.returncode}"
    logs = [one.read_text(errors="replace").strip() for one in sorted(folder.glob("pvm[dl].*")) if one.is_file()]
    said = " ".join(" ".join([found, *logs]).split())
    raise NoMachineError(
        f"PVM has not joined {1 + len(addresses)} nodes within {START_SECONDS:g} s: {said[:MOST_OF_A_LOG]}"
    )


def halt(daemon: subprocess.Popen[bytes]) -> None:
    """Halt PVM on all nodes; what does not follow is killed with its rank."""
    try:
        console("halt")
        daemon.wait(END_SECONDS)
    except (OSError, subprocess.SubprocessError):
        daemon.kill()


def main(arguments: list[str]) -> int:
    """Be one rank of the machine; return the program's exit code on rank 0, 128 + N for a signal N."""
    if arguments[0] == f"--{RSH}":
        return rsh(arguments[1:])
    addresses = os.environ["FABRICBENCH_ADDRESSES"].split(",")
    channels = [PvmChannel(int(one)) for one in os.environ.pop("FABRICBENCH_MEETING").split(",") if one]
    os.environ[ROOT_VARIABLE] = root()
    os.environ["PVM_ALLOW_ROOT"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="fabricbench-pvm-"))
    os.environ["PVM_TMP"] = str(folder)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        if os.environ["FABRICBENCH_RANK"] != "0":
            return follow(folder, channels[0])
        code = lead(folder, addresses, channels, arguments)
    except (NoMachineError, OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"fabricbench: {error}\n")
        return CANNOT_START
    else:
        return code if code >= 0 else 128 - code
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
