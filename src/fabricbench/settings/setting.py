"""What a setting of a host is, what writes it, and what a kind of setting knows: one file beside this one for each kind.

A kind says what a condition asks of it, how a setting is read on a node (by anybody: /sys, /proc, netlink), and the exact command
that writes it. Values are texts in the form in which the kind reads them, so that what is wished and what is found can be compared.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from subprocess import run as run_program
from typing import Any, Protocol

from fabricbench.model import Model
from fabricbench.testbed.model import Fabric

SECONDS = 10.0
"""How long a program that reads or writes one setting may take."""

TOOLS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where `ip`, `ethtool` and `sysctl` are, which the PATH of a user often lacks."""


class Setting(Model):
    """One thing of a host that can be read and written, and the value that is wished (None: none).

    `interface` or `subnet` names the fabric's interface where it is a setting of one; `read` and `write` are the tokens of one of
    the user's own.
    """

    kind: str
    name: str
    value: str | None = None
    interface: str | None = None
    subnet: IPv4Network | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What tells it from every other setting of a node, in words: `mtu of eth0`, `net.core.busy_poll`."""
        if self.interface is not None:
            return f"{self.name} of {self.interface}"
        return self.name if self.subnet is None else f"{self.name} of the interface in {self.subnet}"

    @property
    def device(self) -> str:
        """The interface as a command names it, where only the nodes know which it is: DEV."""
        return self.interface or "DEV"

    def with_value(self, value: str | None) -> Setting:
        """Return the setting with another value."""
        return self.model_copy(update={"value": value})


class CannotSetError(Exception):
    """A setting that a node does not have, or that cannot be read or written there: what was found, needed, and what to do."""

    def __init__(self, found: str, needed: str, action: str) -> None:
        super().__init__(found)
        self.found, self.needed, self.action = found, needed, action


@dataclass(frozen=True)
class Write:
    """A command that writes settings, and what it reads from its standard input. `has_pattern`: a token stands for many files."""

    tokens: tuple[str, ...]
    stdin: str = ""
    has_pattern: bool = False

    def expanded(self) -> Write:
        """Return the command as it is run, each file by its name."""
        if not self.has_pattern:
            return self
        tokens = [name for token in self.tokens for name in _files(token)]
        return Write(tuple(tokens), self.stdin)

    def words(self, *, with_sudo: bool) -> str:
        """Return a line that a shell would take."""
        tokens = (*(SUDO if with_sudo else ()), *self.tokens)
        line = " ".join(tokens) if self.has_pattern else shlex.join(tokens)
        return f"echo {shlex.quote(self.stdin)} | {line}" if self.stdin else line


def sudo_rule(tokens: Sequence[str], user: str = "USER") -> str:
    """Return the line of sudoers(5) that allows one command with these very arguments, and nothing else.

    No wildcard: a `*` there stands for blanks and further arguments as well.
    """
    path = shutil.which(tokens[0], path=f"{os.environ.get('PATH', '')}:{TOOLS}") or f"/PATH/OF/{tokens[0]}"
    arguments = " ".join(re.sub(r"([\\,:=*?\[\]!#\"])", r"\\\1", one) for one in tokens[1:])
    return f"{user} ALL=(root) NOPASSWD: {path} {arguments}".rstrip() + ("" if arguments else ' ""')


SUDO = ("sudo", "-n")
"""Without a question: who is asked for a password would hang."""


def _files(token: str) -> list[str]:
    """Return the files that a token with a `*` stands for; any other token as it is."""
    return sorted(map(str, Path("/").glob(token[1:]))) if "*" in token else [token]


class SettingsHost:
    """This machine as kinds of settings see it: its files below `root`, its interfaces, its programs."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self.handed_on: tuple[int, ...] = ()
        """Descriptors that programs inherit: a lock that holds until the last of them has ended."""
        self._ethtool: Any = None

    def text(self, path: str) -> str:
        """Return what a file below the root holds, stripped. Raises OSError."""
        return (self.root / path).read_text().strip()

    @property
    def ethtool(self) -> Any:
        """The ethtool calls of the kernel; made when they are first needed."""
        if self._ethtool is None:
            from pyroute2.ethtool import Ethtool  # noqa: PLC0415 - takes longer to import than most settings to read

            self._ethtool = Ethtool()
        return self._ethtool

    def device(self, setting: Setting) -> str:
        """Return the name of the interface that a setting is of. Raises CannotSetError."""
        if setting.interface is not None:
            if not (self.root / "sys/class/net" / setting.interface).exists():
                raise CannotSetError(
                    f"no interface {setting.interface}", "the fabric's interface", "correct `interface` in the testbed"
                )
            return setting.interface
        for name, address in interface_addresses():
            if setting.subnet is not None and address in setting.subnet:
                return name
        raise CannotSetError(
            f"no interface with an address in {setting.subnet}",
            "the fabric's interface",
            "correct `subnet` in the testbed",
        )

    def run(self, tokens: Sequence[str], stdin: str = "") -> str:
        """Run a program and return what it printed, stripped. Raises CannotSetError."""
        environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:{TOOLS}", "LC_ALL": "C"}
        line = shlex.join(tokens)
        try:
            done = run_program(
                tokens,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                env=environment,
                pass_fds=self.handed_on,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotSetError(f"{tokens[0]}: {reason}", f"`{line}`", f"install {tokens[0]} there") from None
        except Exception as error:
            raise CannotSetError(f"`{line}` took over {SECONDS:g} s", "an answer", f"run `{line}` there") from error
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise CannotSetError(f"`{line}` failed: {last}", "that command to succeed", f"run `{line}` there and see")
        return done.stdout.strip()


def interface_addresses() -> Iterator[tuple[str, IPv4Address]]:
    """Yield the interfaces of this machine with each of their IPv4 addresses."""
    from pyroute2 import IPRoute  # noqa: PLC0415

    with IPRoute() as network:
        names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in network.get_links()}
        for found in network.get_addr(family=2):
            yield names[found["index"]], IPv4Address(found.get_attr("IFA_LOCAL") or found.get_attr("IFA_ADDRESS"))


class SettingKind(Protocol):
    """One kind of setting."""

    NAME: str

    OUTLIVES_BOOT: bool
    """Whether a value may still be there after the machine was started anew."""

    def is_of_host(self, setting: Setting) -> bool:
        """Tell whether it is the whole machine's, so that an emulated node would set it for all others."""

    def asked(self, table: Any, fabric: Fabric) -> Iterator[Setting]:
        """Yield what a condition's table asks of this kind on a fabric. Raises UsageError."""

    def read(self, setting: Setting, host: SettingsHost) -> str:
        """Return the value on this host. Raises CannotSetError or OSError."""

    def writes(self, settings: Sequence[Setting], device: str) -> Iterator[Write]:
        """Yield the commands that write these settings of this kind, all of one interface (`device`) or of none."""


def as_json(model: Model) -> str:
    """Return a model on one line, as it is handed to a node."""
    return json.dumps(model.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"))
