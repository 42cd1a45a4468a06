"""What workloads over our shared memory (`native/kernel/shared/memory.hpp`) have in common: pages, and what one costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from fabricbench.quantity import parse_bytes
from fabricbench.workload.pace import Pace
from fabricbench.workload.parameters import Argument

LEAST_PAGE_BYTES, MOST_PAGE_BYTES = 256, 1 << 20

PAGE_SECONDS = 0.2e-3
"""For a page to be asked for and answered, by a rank that may be computing and share its processor."""


def _power_of_two(page_bytes: int) -> int:
    if page_bytes & (page_bytes - 1):
        raise ValueError(f"found {page_bytes}, needed a power of two; take {1 << page_bytes.bit_length()}")
    return page_bytes


PageBytes = Annotated[
    int,
    Field(ge=LEAST_PAGE_BYTES, le=MOST_PAGE_BYTES),
    BeforeValidator(parse_bytes),
    AfterValidator(_power_of_two),
]
PAGE = Argument("what is fetched at once, a power of two")


def fetching_seconds(pages: float, page_bytes: int, ranks: int, pace: Pace) -> float:
    """Return how long a rank waits for so many pages that the others have."""
    return pages * (ranks - 1) / ranks * (PAGE_SECONDS + 8 * page_bytes / pace.line_rate_bit_s)
