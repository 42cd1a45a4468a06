"""Reads the record of a kernel's run: every line that is whole, and exactly what could not be used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from fabricbench.record.kernel_lines import KERNEL_LINE_ADAPTER, KernelFooter, KernelHeader, KernelRun
from fabricbench.record.reading import Damage


@dataclass
class KernelRecord:
    """Everything usable in one record, and what was not."""

    header: KernelHeader | None = None
    runs: list[KernelRun] = field(default_factory=list)
    footer: KernelFooter | None = None
    damage: list[Damage] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the record has its beginning and its end and nothing in it is damaged."""
        return self.header is not None and self.footer is not None and not self.damage

    @property
    def is_verified(self) -> bool:
        """Whether there are runs, and the result of each was right."""
        return bool(self.runs) and all(run.verified for run in self.runs)


def read_kernel_record(path: Path) -> KernelRecord:
    """Read the record at `path`; damage is in the result, only an OSError is raised."""
    with path.open("rb") as lines:
        return parse_kernel_record(lines)


def parse_kernel_record(lines: Iterable[bytes]) -> KernelRecord:
    """Read a record from its lines; never raises on what they hold."""
    record = KernelRecord()
    number = 0
    for number, line in enumerate(lines, 1):
        problem = _take(record, line)
        if problem is not None:
            record.damage.append(Damage(line=number, reason=problem))
    if record.header is None:
        record.damage.append(Damage(line=1, reason="the record has no header"))
    if record.footer is None:
        record.damage.append(Damage(line=number, reason="the record has no footer: it was cut short"))
    elif record.footer.runs != len(record.runs):
        reason = f"the footer counts {record.footer.runs} runs, {len(record.runs)} were read"
        record.damage.append(Damage(line=number, reason=reason))
    return record


def _take(record: KernelRecord, line: bytes) -> str | None:
    """Add a line to the record; return why it cannot be used, None if it can."""
    if not line.endswith(b"\n"):
        return "the file ends in the middle of this line"
    try:
        parsed = KERNEL_LINE_ADAPTER.validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"not a line of a kernel's record: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
    match parsed:
        case KernelHeader():
            if record.header is not None:
                return "a second header"
            record.header = parsed
        case KernelRun():
            record.runs.append(parsed)
        case KernelFooter():
            record.footer = parsed
    return None
