"""What processors, MPI libraries and kernels call themselves, shortened to what people call them."""

from __future__ import annotations

import re


def short_processor(model: str) -> str:
    """Return `Xeon Gold 6148` of `Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz`."""
    bare = re.sub(r"\((?:R|TM|C)\)|@.*$|\b(?:Intel|AMD|CPU|Processor|\d+-Core)\b", " ", model, flags=re.IGNORECASE)
    return " ".join(bare.split()) or model


def short_mpi(library: str) -> str:
    """Return `Open MPI 5.0.3` of `Open MPI v5.0.3, package: ...`."""
    return re.sub(r"\bv(?=\d)", "", library.partition(",")[0]).strip()


def short_kernel(release: str) -> str:
    """Return `Linux 6.1.0-18`, without what a distribution adds in words."""
    found = re.match(r"\d[\d.]*(?:-\d+)?", release)
    return f"Linux {found.group() if found else release}"
