"""Does an import of a damaged text ever end in a traceback, or in a wrong figure without a word? Seeded.

    python -m benchmarks.mutated_imports [--count 10000] [--seed 1]

Each mutant is an output of a program that `fabricbench import` reads, with one thing damaged: tests/support/mutated_texts.py. Most
are real ones; those of programs that nobody could run here are by their grammar.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from tests.exchange.samples import SAMPLES  # noqa: E402 - found by the path above
from tests.exchange.test_mutations import BY_GRAMMAR  # noqa: E402

from support.mutated_texts import complaints  # noqa: E402


def main() -> int:
    """Print what is wrong, and how many mutants there were; 1 where something is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    begin = time.monotonic()
    texts = SAMPLES + BY_GRAMMAR
    found = complaints(texts, asked.count, asked.seed)
    for one in found:
        print(one)
    seconds = time.monotonic() - begin
    print(
        f"{asked.count} mutants of {len(texts)} texts in {seconds:.1f} s: {len(found)} tracebacks or wrong figures in silence"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
