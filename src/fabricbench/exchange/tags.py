"""Tags that launchers put before each line of an output (`mpirun --tag-output`, `srun --label`), and time stamps of logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TAGS = (
    # Open MPI 4 `[1,0]<stdout>:`, PRRTE `[prterun-host-77@1,0]<stdout>: `, with --timestamp-output a date before it.
    re.compile(
        r"(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} ?)?(?:\[(?:[\w.@-]+@)?\d+,\d+\])?<std(?:out|err|diag)>: ?"
    ),
    # Hydra's -l and -prepend-rank, Intel MPI likewise.
    re.compile(r"\[\d+\] ?"),
    # srun --label, numbers as wide as the largest.
    re.compile(r" *\d+: ?"),
    # Logs of batch systems and of continuous integration.
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? "),
)


@dataclass(frozen=True)
class Untagged:
    """A text without its tags, `tag` being the first of them."""

    text: str
    tag: str


def without_tags(text: str) -> Iterator[Untagged]:
    """Yield a text without the tags of each kind that any of its lines begins with; lines without a tag stay as they are."""
    lines = text.split("\n")
    for kind in TAGS:
        found = [kind.match(line) for line in lines]
        first = next((one for one in found if one is not None), None)
        if first is not None:
            stripped = [line if one is None else line[one.end() :] for line, one in zip(lines, found, strict=True)]
            yield Untagged("\n".join(stripped), first[0].strip())
