"""How often is a clear row wrong, and how often is a true difference clear? Simulated campaigns, through the first screen.

    python -m benchmarks.verdicts RESULTS [--campaigns 1000] [--blocks 5 6 12 18 32] [--noise NAME ...] [--workers 2] [--folded]
                                  [--scale CONSTANT FACTOR] [--through-commands N]

A row a noise, a column a truth and a number of blocks; `--folded` has all numbers of blocks together, with the campaigns that
there are. What is done is kept in the file RESULTS, a line for each ten campaigns, and not done again: an interrupted run goes on
where it was, and more campaigns are added to those there are. The table is printed at the end, or at once with `--campaigns 0`.
Wrong: of neither the usual launch nor the mean is it true. Intervals hold: those of all rows together hold the mean ratio; how
much wider they are than that needs, at the level of the rows, is what all of them could be narrowed by to hold it just so often.
`--through-commands` instead stores so many campaigns of each noise as runs of 12 blocks, without a difference and with a true
2 times, and asks `fabricbench report` and `compare`. `--scale` makes a constant of the grades so many
times as large: into RESULTS of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from typer.testing import CliRunner

from fabricbench.analysis import grading
from fabricbench.analysis import headline as first_screen
from fabricbench.analysis.effects import LEADING_SHARE
from fabricbench.analysis.findings import Grade, Headline, Verdict
from fabricbench.cli import app
from fabricbench.model import Metric
from fabricbench.statistics import skew
from support.verdict_campaigns import NOISES, WRITTEN, WrittenCampaign, run_campaign, write_campaign

CHUNK = 10
BLOCKS = (5, 6, 12, 18, 32)
TRUTHS = {"equal": 1.0, "1.9 %": 1.019, "10 %": 1.1, "2 times": 2.0}
WRONG, CLEAR, HELD = ("equal", "1.9 %"), ("10 %", "2 times"), "equal"
LEVEL = 1.0 - LEADING_SHARE * 0.04
"""Of the intervals of all leading rows together: a first look spends 0.8 of 5 %."""
FEWEST_TAILS = 10
"""Campaigns beyond a level below which it says nothing of a width."""
REACH = "reach "
Job = tuple[str, int, str, int, int]
"""A noise, a number of blocks, a truth, which chunk of campaigns, and the seed of all."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(BLOCKS))
    parser.add_argument("--noise", nargs="+", choices=list(NOISES), default=list(NOISES))
    parser.add_argument("--truth", nargs="+", choices=list(TRUTHS), default=list(TRUTHS))
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--folded", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scale", nargs=2, metavar=("CONSTANT", "FACTOR"))
    parser.add_argument("--through-commands", type=int, metavar="N")
    options = parser.parse_args()
    if options.through_commands:
        _through_commands(
            [one for one in options.noise if one in WRITTEN], options.through_commands, options.seed, options.workers
        )
        return
    if options.scale:
        _scale(options.scale[0], float(options.scale[1]))
    found = _stored(options.results)
    chunks = -(-options.campaigns // CHUNK)
    wanted: list[Job] = [
        (noise, blocks, truth, chunk, options.seed)
        for chunk, noise, blocks, truth in product(range(chunks), options.noise, options.blocks, options.truth)
    ]
    missing = [job for job in wanted if job not in found]
    _measure(missing, options.results, found, options.workers)
    (_print_folded if options.folded else _print)(found, options.noise, options.blocks)


def _through_commands(noises: Sequence[str], campaigns: int, seed: int, workers: int) -> None:
    """Print for each noise how many campaigns have a clear row that is wrong, and in how many all rows are clear for b."""
    print("Clear, and faster: of campaigns with every block on the right side.\n")
    print(
        "| noise | equal, `report`: clear and wrong | `compare`: wrong | 2 times, `report`: clear | `compare`: faster |"
    )
    print("| --- | --: | --: | --: | --: |", flush=True)
    with multiprocessing.Pool(workers) as pool:
        for noise in noises:
            jobs = ((noise, seed, campaign) for campaign in range(campaigns))
            told = np.array(pool.map(_ask_commands, jobs, chunksize=1))
            *counts, one_sided = told.sum(axis=0)
            of = (campaigns, campaigns, one_sided, one_sided)
            cells = (f"{number} of {all_of}" for number, all_of in zip(counts, of, strict=True))
            print(f"| {noise} | {' | '.join(cells)} |", flush=True)


def _ask_commands(job: tuple[str, int, int]) -> tuple[bool, ...]:
    """Return of a campaign: clear and wrong, wrong in the table; with a true 2 times clear, faster in the table, one-sided."""
    noise, seed, campaign = job
    random = np.random.default_rng([seed, crc32(noise.encode()), campaign])
    headline, rows, truth = _asked(random, noise, 1.0)
    clear = [one for one in headline.effects if one.is_typical and one.grade is Grade.CLEAR]
    is_clear_and_wrong = any(truth.is_wrong(one.pairs[0].verdict, is_trip=one.metric.is_lower_better) for one in clear)
    is_wrong_in_table = any(truth.is_wrong(verdict, is_trip=is_trip) for verdict, is_trip in rows)
    headline, rows, truth = _asked(random, noise, 2.0)
    is_clear = all(one.grade is Grade.CLEAR for one in headline.effects if one.is_typical)
    is_clear &= truth.is_one_sided and "b is faster" in headline.sentence
    is_faster = truth.is_one_sided and all(verdict is Verdict.B_FASTER for verdict, _ in rows)
    return is_clear_and_wrong, is_wrong_in_table, is_clear, is_faster, truth.is_one_sided


def _asked(
    random: np.random.Generator, noise: str, faster: float
) -> tuple[Headline, list[tuple[Verdict, bool]], WrittenCampaign]:
    """Return the first screen of a stored campaign, the verdicts of its table, whether of round trips, and the truth."""
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        truth = write_campaign(run, random, noise, 12, faster)
        told = []
        for command in ("report", "compare"):
            output = Path(folder, command)
            asked = CliRunner().invoke(app, [command, str(run), "--format", "json", "-o", str(output)])
            if asked.exit_code:
                raise RuntimeError(asked.output)
            told.append(json.loads(output.read_text()))
    rows = [(Verdict(row["verdict"]), row["metric"] == Metric.ROUND_TRIP_TIME) for row in told[1]]
    return Headline.model_validate(told[0]["headline"]), rows, truth


def _scale(constant: str, factor: float) -> None:
    """Make a constant so many times as large: of BETWEEN its distances from a half, of TIMES_OF_DEAD what is beside one launch."""
    if constant == "DEPENDENT_REACH":
        grading.DEPENDENT_REACH *= factor
        grading.DEPENDENT_REACH_OF_HALF *= factor
    elif constant == "UNTESTED_CORRELATION":
        grading.UNTESTED_CORRELATION *= factor
        first_screen.UNTESTED_CORRELATION *= factor  # type: ignore[attr-defined]
    elif constant == "TIMES_OF_DEAD":
        grading.TIMES_OF_DEAD = 1.0 + factor * (grading.TIMES_OF_DEAD - 1.0)  # type: ignore[attr-defined]
    elif constant == "BETWEEN":
        skew.BETWEEN = (0.5 - factor * (0.5 - skew.BETWEEN[0]), 0.5 + factor * (skew.BETWEEN[1] - 0.5))
    else:
        raise SystemExit(f"{constant}: DEPENDENT_REACH, UNTESTED_CORRELATION, TIMES_OF_DEAD or BETWEEN")


def _measure(jobs: Sequence[Job], results: Path, found: dict[Job, Counter[str]], workers: int) -> None:
    begun = time.monotonic()
    with multiprocessing.Pool(workers) as pool, results.open("a") as file:
        for done, (job, counts) in enumerate(pool.imap_unordered(_chunk, jobs), 1):
            found[job] = counts
            file.write(json.dumps({"job": job, "counts": counts}) + "\n")
            file.flush()
            left = (time.monotonic() - begun) / done * (len(jobs) - done)
            print(f"\r{done} of {len(jobs)} chunks, {left / 60:.0f} minutes left ", end="", file=sys.stderr, flush=True)


def _chunk(job: Job) -> tuple[Job, Counter[str]]:
    noise, blocks, truth, chunk, seed = job
    random = np.random.default_rng([seed, crc32(noise.encode()), blocks, crc32(truth.encode()), chunk])
    counts: Counter[str] = Counter()
    for _ in range(CHUNK):
        one = run_campaign(random, noise, blocks, TRUTHS[truth])
        counts.update(
            campaigns=1,
            wrong=int(one.is_wrong),
            one_sided=int(one.is_one_sided),
            clear=int(one.is_clear),
            both=int(one.is_clear and one.is_one_sided),
            held=int(one.is_held),
        )
        counts[f"{REACH}{one.reach:.3f}"] += 1
        counts.update(one.of_samples)
    return job, counts


def _stored(results: Path) -> dict[Job, Counter[str]]:
    """Return what was simulated before; a line that was cut short is done again."""
    found: dict[Job, Counter[str]] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            continue
        noise, blocks, truth, chunk, seed = one["job"]
        found[noise, blocks, truth, chunk, seed] = Counter(one["counts"])
    return found


def _print(found: dict[Job, Counter[str]], noises: Sequence[str], blocks: Sequence[int]) -> None:
    sums: dict[tuple[str, int, str], Counter[str]] = {}
    for (noise, number, truth, _, _), counts in found.items():
        sums.setdefault((noise, number, truth), Counter()).update(counts)
    heads = [f"{truth}: wrong, {number}" for truth in WRONG for number in blocks]
    heads += [f"{truth}: clear, {number}" for truth in CLEAR for number in blocks]
    heads += [f"{HELD}: intervals hold, {number}" for number in blocks]
    heads += [f"{HELD}: wider than needed, {number}" for number in blocks]
    print(f"\n| noise | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for noise in noises:
        shares = [
            _share(sums.get((noise, number, truth)), "wrong", "campaigns") for truth in WRONG for number in blocks
        ]
        shares += [
            _share(sums.get((noise, number, truth)), "both", "one_sided") for truth in CLEAR for number in blocks
        ]
        shares += [_share(sums.get((noise, number, HELD)), "held", "campaigns") for number in blocks]
        shares += [_excess(sums.get((noise, number, HELD), Counter())) for number in blocks]
        print(f"| {noise} | {' | '.join(shares)} |")


def _print_folded(found: dict[Job, Counter[str]], noises: Sequence[str], blocks: Sequence[int]) -> None:
    sums: dict[tuple[str, str], Counter[str]] = {}
    for (noise, number, truth, _, _), counts in found.items():
        if number in blocks:
            sums.setdefault((noise, truth), Counter()).update(counts)
    heads = (
        [f"{truth}: wrong" for truth in WRONG] + [f"{truth}: clear" for truth in CLEAR] + [f"{HELD}: intervals hold"]
    )
    print(f"\n| noise | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for noise in noises:
        shares = [(sums.get((noise, truth)), "wrong", "campaigns") for truth in WRONG]
        shares += [(sums.get((noise, truth)), "both", "one_sided") for truth in CLEAR]
        shares.append((sums.get((noise, HELD)), "held", "campaigns"))
        told = [
            f"{_share(*one)} of {one[0][one[2]]}" if one[0] is not None and one[0][one[2]] else "-" for one in shares
        ]
        print(f"| {noise} | {' | '.join(told)} |")


def _excess(counts: Counter[str]) -> str:
    """Return by how much the intervals are wider than they need be to hold together at LEVEL."""
    seen = {float(name.removeprefix(REACH)): count for name, count in counts.items() if name.startswith(REACH)}
    reaches = np.repeat(list(seen), np.array(list(seen.values()), dtype=np.int64))
    if reaches.size * (1.0 - LEVEL) < FEWEST_TAILS:
        return "-"
    return f"{100 * (1.0 / float(np.quantile(reaches, LEVEL)) - 1.0):.0f} %"


def _share(counts: Counter[str] | None, part: str, whole: str) -> str:
    return "-" if counts is None or not counts[whole] else f"{100 * counts[part] / counts[whole]:.1f} %"


if __name__ == "__main__":
    main()
