"""How long `fabricbench import` takes over many texts: `python benchmarks/import_scale.py [--texts 1000] [--lines 100]`.

Writes tables of osu_latency of so many lines each into a temporary folder, imports each as a launch by the whole command in a
process of its own, and prints the seconds that passed, those of the processors, and peak memory.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.osu_texts import osu_text  # noqa: E402

HEAD_LINES = 3
SEED = 5


def main() -> None:
    """Write the texts, import them, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = ",".join(map(str, _written(folder, asked.texts, asked.lines - HEAD_LINES)))
        command = [
            str(Path(sys.executable).with_name("fabricbench")),
            "import",
            "--fabric",
            f"ib={texts}",
            "-o",
            str(folder / "run"),
        ]
        begin = time.monotonic()
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
    if status != 0:
        sys.exit(f"it ended with {os.waitstatus_to_exitcode(status)}")
    print(
        f"{asked.texts:,} texts of {asked.lines} lines: {seconds:.1f} s, {usage.ru_utime + usage.ru_stime:.1f} s of processors, "
        f"{usage.ru_maxrss / 1024:.0f} MiB"
    )


def _written(folder: Path, texts: int, rows: int) -> list[Path]:
    """Write texts of so many rows, whose times scatter, and return their paths."""
    scatter = random.Random(SEED)
    sizes = [16 * number for number in range(1, rows + 1)]
    paths = [folder / f"{number:04d}.txt" for number in range(texts)]
    for path in paths:
        values = [20.0 + 0.05 * row + scatter.uniform(0.0, 5.0) for row in range(rows)]
        path.write_text(osu_text(values=values, sizes=sizes))
    return paths


if __name__ == "__main__":
    main()
