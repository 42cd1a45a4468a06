"""The frequency governor of all processors: read and written below /sys, by `tee`, as no other program is everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import Field

from fabricbench.model import Model
from fabricbench.settings.setting import CannotSetError, Setting, SettingsHost, Write
from fabricbench.testbed.model import Fabric

CPUS = "sys/devices/system/cpu"
FILE = f"/{CPUS}/cpu{{}}/cpufreq/scaling_governor"


class GovernorTable(Model):
    """What a condition sets of the processors."""

    governor: str | None = Field(default=None, pattern=r"^[a-z_]+$")


class GovernorKind:
    """The governor. Where processors have several, a value names each: `performance 0 1, powersave 2 3`."""

    NAME = "governor"

    OUTLIVES_BOOT = False

    def is_of_host(self, setting: Setting) -> bool:
        """Tell whether it is the whole machine's."""
        del setting
        return True

    def asked(self, table: GovernorTable, fabric: Fabric) -> Iterator[Setting]:
        """Yield what is asked; a fabric has no part in it."""
        del fabric
        if table.governor is not None:
            yield Setting(kind=self.NAME, name=self.NAME, value=table.governor)

    def read(self, setting: Setting, host: SettingsHost) -> str:
        """Return the governor of all processors. Raises CannotSetError where there is none, or not the one that is wished."""
        found: dict[str, list[int]] = {}
        for folder in (host.root / CPUS).glob("cpu[0-9]*"):
            if (folder / "cpufreq/scaling_governor").exists():
                governor = (folder / "cpufreq/scaling_governor").read_text().strip()
                found.setdefault(governor, []).append(int(folder.name.removeprefix("cpu")))
        if not found:
            raise CannotSetError(
                "no frequency governor (no cpufreq below /sys/devices/system/cpu)",
                "a machine whose system sets its clock: most virtual ones leave that to their host",
                "leave `governor` out",
            )
        self._check_available(setting, host, min(min(cpus) for cpus in found.values()))
        if len(found) == 1:
            return next(iter(found))
        return ", ".join(f"{governor} {' '.join(map(str, sorted(cpus)))}" for governor, cpus in sorted(found.items()))

    def _check_available(self, setting: Setting, host: SettingsHost, cpu: int) -> None:
        try:
            there = host.text(f"{CPUS}/cpu{cpu}/cpufreq/scaling_available_governors").split()
        except OSError:
            return
        wished = [part.split()[0] for part in (setting.value or "").split(", ") if part]
        if strange := [one for one in wished if one not in there]:
            raise CannotSetError(
                f"no governor {', '.join(strange)}", f"one of {', '.join(there)}", "correct `governor`"
            )

    def writes(self, settings: Sequence[Setting], device: str) -> Iterator[Write]:
        """Yield a command for each governor, with all the processors that get it."""
        del device
        for part in (part for one in settings for part in str(one.value).split(", ")):
            governor, *cpus = re.split(r"\s+", part)
            yield Write(("tee", *(FILE.format(cpu) for cpu in cpus or "*")), governor, has_pattern=not cpus)
