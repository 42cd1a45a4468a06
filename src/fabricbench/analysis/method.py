"""The method in words, with sources, as a dossier prints it, and what somebody needs to measure the same again.

That is command, version, seed and the hash of the data: the one that `fabricbench verify` tells, which can be recomputed by
sha256sum (docs/run-directory.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from shlex import join

from fabricbench.analysis.findings import Replication
from fabricbench.analysis.instrument import LATE_SHARE, LATE_STRETCH, MESSAGES_OF_A_TRIP
from fabricbench.analysis.wording import percent
from fabricbench.quantity import count, format_seconds_between
from fabricbench.record.integrity import data_hash
from fabricbench.record.manifest import Manifest
from fabricbench.record.provenance import Origin
from fabricbench.record.store import Run
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, FEWEST_PAIRS

LAUNCHES = """
A launch, one start of the measuring program on the nodes, is the unit of replication; every sample is kept, warm-up
apart, and no outlier is dropped. Fabrics follow each other within a block in an order drawn with seed {seed}, balanced
over blocks; where the order of launches is shown to matter, its effect is fitted and taken out of ratios. After Hoefler
and Belli, "Scientific Benchmarking of Parallel Computing Systems" (SC'15), and Hunold and Carpen-Amarie, "Reproducible
MPI Benchmarking Is Still Not as Easy as You Think" (IEEE TPDS, 2016).
"""

PAUSES = """
Between two launches nothing was measured for {pause}, drawn anew for each, so that a launch resembles the one before it less.
"""

IMPORTED = """
Imported launches were measured by another program, and what it printed is all that is known of them: the warnings say which
program, and what its numbers are. A launch, one file or folder that was imported, is the unit of replication. The n-th launches of
all fabrics make a block, as whoever imported them put them; in which order they were measured, and how close in time, nobody told.
"""

OF_SAMPLES = """
A launch's value is the median of its round trips, or its total payload over its total time for a throughput (windows of
a stream arrive in bursts, so their median can exceed the wire).
"""

OF_TEXTS = """
The value of an imported launch is the number that its program told, as a whole round trip or in bit/s; where it told several, their
median, or of rates their mean.
"""

FAILED_NODES = """
Nodes that fail: a run that goes on without them ({nodes}) measures all of a block on the same nodes. A block that was
not whole when they failed was begun again on the rest, and what it had measured before is kept aside and enters nothing.
Rank i is on node i modulo the nodes that are left: a test whose ranks are on other nodes since then is another test,
with blocks and verdicts of its own, and a test of all nodes has fewer ranks; a test whose ranks stayed where they were
goes on as the same.
"""

SUMMARIES = """
{values} What stands for a
fabric alone (curves, ladder, operations) is the median of these values over launches, with its {level} interval from
order statistics, interpolated (Hettmansperger and Sheather, 1986); what is compared (the first screen, the tables of
sizes) is their geometric mean over the launches that both fabrics share, so that levels divide to the ratio; quantiles
pool the samples of all launches. Times are averaged arithmetically, rates as total bits over total time (the harmonic
mean), ratios geometrically.
"""

PAIRED = """
Two fabrics are compared within blocks, so that drift they share cancels: the ratio is the geometric mean over blocks of
the ratio of launches' values; its {level} interval and p-value come from Student's t on the logarithms, so that they
agree. Simulation chose it over the exact signed-rank test, which six blocks cannot make significant once many cells are
corrected for.
"""

RUNS = """
Several runs a side are compared by their means: the run is the unit of replication, since runs differ from each other
by more than their launches do (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). The ratio is
that of geometric means over runs, its {level} interval and p-value come from Welch's t on the logarithms. A side of one or two runs
against three or more is taken to differ from run to run as the other does; of one run alone nothing is clear.
"""

UNPAIRED = """
One run a side: the ratio is that of geometric means over launches, its {level} interval and p-value in tables come from
Welch's t on the logarithms of launches' values. They hold for these two sessions. What else differed between the sessions
is in the ratio and cannot be told from a change: no rate of error is promised, and rows of the first screen have no
interval. Three runs a side or more, or both settings in one run, can tell.
"""

OF_ONE = """
One fabric is compared with nothing. A level of the first screen is the geometric mean over launches with its {level} interval from
Student's t on the logarithms, of tails the median; each interval is of its row alone. A share of the line rate is that of the
payload in what the wire carries, all headers and gaps included. The rows are chosen by what was measured, not by what came out.
"""

CORRECTION = """
Tables: all comparisons of a report, of cells and of curves, of every two fabrics, are one family; p-values of "no
difference" and of "no more than the margin" are adjusted for the false discovery rate (Benjamini and Hochberg, 1995):
of what they name, at most {error} is expected to be wrong. "Equivalent" is corrected so that the chance of any wrong
one is at most {error} (Hochberg, 1988). Memory cells, the control, are adjusted among themselves as well. The intervals
in tables are of each comparison alone.
"""

OF_TWO_SESSIONS = """
With one run a side these are rates of error about the two sessions: a difference that something else made between them counts
as a right finding there, whatever the fabrics are.
"""

FIRST_SCREEN = """
First screen: its intervals hold together. The error of {error} is shared out by Bonferroni: 70 % of it to the leading
rows, 20 % to all other comparisons of the report, from which exceptions and counts are taken, 10 % to the claim that a
fabric is slower nowhere (for which each size must show it, so that none is corrected). If all intervals hold their
ratios, no statement there is wrong; so the chance of any wrong one is at most {error}. The rows are chosen by what was
measured, not by what came out. Levels are geometric means over the launches compared, so that their ratio is the ratio
shown, of three fabrics and more where no launch is missing (levels are then over the blocks that all have); of tails (p99,
p99.9) medians, and where a few launches are far worse the interval of the ratio is that of the others.
A row counts for its fabric only where the other sizes of its curve bear it out, by their number and by their geometric mean.
A ratio that is a row there has the verdict of that row in every table.
"""

LOOKS = """
Looking again: a run to which blocks may be added spends four fifths of its error at its first look, and half of what
is left at each later one (after Lan and DeMets, 1983), so that all its looks together keep {error}. A run that was
declared final spends it all at once.
"""

VERDICTS = """
Verdicts: "faster" if a difference of at most {margin}, the margin that matters, is rejected; "ahead" if only "no
difference" is: then it may be by less than matters; "equivalent" if a difference of the margin or more is rejected on
both sides (two one-sided tests, Schuirmann, 1987), the interval lies within the margin, and {equivalent} launches or more would
have met a slow mode of one launch in ten; else "not enough data", with the number of further blocks that would settle
it with 80 % probability, over what ratio and noise may be after the blocks so far. Fewer than {pairs} pairs
of launches decide nothing, and a side of which more than a tenth of the launches, or of the starts, gave nothing wins nothing.
"""

GRADES = """
Grades: a row is clear if its verdict would be the same whatever speaks against it, doubtful if the same side would lead by an
amount that is open, or if something speaks against it that no number bounds; an alarm if who leads would be open. Two groups of
launches count by the ratio in each of them, blocks that resemble each other by 1.5 times the range of their ratios, or by 4 times
that of the middle half of them where that is less, a late switch by what the slower side may have been delayed, a start that died
as the slowest launch of its side or as two launches, a launch better than its wire allows by what all of its side may be too good.
Blocks of several sessions (an hour or more apart) count by the ratio of each session as one value, and intervals and verdicts
hold what sessions differ by. Within one, intervals take blocks as independent of each other; a clear row of 12 blocks or
more withstands a correlation of 0.3, unless the blocks exclude so much. Six blocks cannot test that, twelve seldom miss a
correlation of 0.9, thirty-two one of 0.6.
"""

CROSSOVERS = """
A crossover lies between two neighbouring sizes at which opposite sides are shown to lead: these two sizes are what is known of it.
A point with an interval is given where Hockney's model, t = latency + bytes / rate, fitted to each launch at the sizes around, has
earned it: a launch's other sizes predict each size within a quarter of the larger difference at the two sizes and within 5 %, at
the {level} level. The interval is Student's over blocks, widened by 1.5 times that misfit of the ratio.
"""

LADDER = """
The ladder sets the smallest message that all network layers share side by side; what a layer adds is the median over
launches of its difference to the layer below in the same launch. A layer's throughput is the best over message sizes.
Memory is the control: no fabric changes it.
"""

INSTRUMENT = """
The emulated switch tells how much later than computed it released each frame. A time is in doubt where the 99th percentile of
that is more than {late_share} of its typical sample (the median of a round trip where the 90th is more than {late_trip}), a rate
where it is more than {late_stretch} of the time that was measured, a workload where some frame was held that should have left (the
union over all frames) for more than {late_stretch} of its time, or the switch lost frames itself; each in half of the launches or
more. By more than a workload's held time nothing can have been delayed but by such losses.
"""


def method(
    margin: float,
    confidence: float,
    *,
    replications: Sequence[Replication],
    seed: int,
    more: Iterable[str] = (),
    origins: Collection[Origin] = (Origin.MEASURED,),
    lost_nodes: Collection[str] = (),
    pause: str = "",
) -> tuple[str, ...]:
    """Return the paragraphs for what is repeated, and for where launches come from; `more` are those of its chapters.

    `replications` has nothing where nothing is compared; `lost_nodes` are those that a run went on without, `pause` how long it
    waited between launches.
    """
    is_imported = Origin.IMPORTED in origins
    is_ours = any(origin is not Origin.IMPORTED for origin in origins) or not origins
    values = OF_SAMPLES * is_ours + OF_TEXTS * is_imported
    facts = {
        "values": " ".join(values.split()),
        "level": percent(confidence),
        "error": percent(1.0 - confidence),
        "margin": percent(margin),
        "seed": seed,
        "nodes": ", ".join(sorted(lost_nodes)),
        "pause": pause,
        "equivalent": EQUIVALENT_LAUNCHES,
        "pairs": FEWEST_PAIRS,
        "late_share": percent(LATE_SHARE),
        "late_trip": percent(LATE_STRETCH / MESSAGES_OF_A_TRIP),
        "late_stretch": percent(LATE_STRETCH),
    }
    launches = (LAUNCHES,) * is_ours + (IMPORTED,) * is_imported
    texts = (
        *launches,
        *((PAUSES,) if pause else ()),
        *((FAILED_NODES,) if lost_nodes else ()),
        SUMMARIES,
        *(_of_comparing(replications) if replications else (OF_ONE,)),
        LADDER,
        *((INSTRUMENT,) if Origin.EMULATED in origins else ()),
        *more,
    )
    return tuple(" ".join(text.split()).format(**facts) for text in texts)


def _of_comparing(replications: Collection[Replication]) -> tuple[str, ...]:
    """Return how fabrics, before and after, or configurations are compared and judged."""
    ways = {Replication.BLOCKS: PAIRED, Replication.RUNS: RUNS, Replication.LAUNCHES: UNPAIRED}
    compared = (text for way, text in ways.items() if way in replications)
    promise = () if Replication.LAUNCHES in replications else (FIRST_SCREEN,)
    correction = CORRECTION + (OF_TWO_SESSIONS if Replication.LAUNCHES in replications else "")
    return *compared, *promise, correction, LOOKS, VERDICTS, GRADES, CROSSOVERS


def pause_of(manifest: Manifest) -> str:
    """Return how long nothing was measured between two launches of a run; empty where it did not wait."""
    match manifest.campaign.get("pause"):
        case [int() | float() as least, int() | float() as most] if most > 0:
            return format_seconds_between(least, most)
    return ""


NEW_DIRECTORY = "RUNDIR"
"""Stands for the output: the same folder is not empty any more."""


SHORT_HASH = 12
"""Digits of a hash that tell runs apart where one is read; the whole stands where it is compared."""


MOST_REPRODUCED = 4


def reproduction(runs: Sequence[Run], *, is_brief: bool = False) -> dict[str, tuple[str, ...]]:
    """Return what a `Headline` tells of how to measure runs again, and the hash of each one's data.

    If brief, a line a run, of MOST_REPRODUCED at most.
    """
    hashes = tuple(data_hash(run.path) for run in runs)
    of_runs = [reproduce(run, data) for run, data in zip(runs, hashes, strict=True)]
    lines = [line for lines in of_runs for line in lines]
    if is_brief:
        versions = dict.fromkeys(run.manifest.versions.get("fabricbench", "of unknown version") for run in runs)
        commands = [f"{Path(run.path).name}: {told[0]}" for run, told in zip(runs, of_runs, strict=True)]
        if len(commands) > MOST_REPRODUCED:
            left = len(commands) - MOST_REPRODUCED
            commands[MOST_REPRODUCED:] = [f"and {left} more: `command` in the manifest.json of each run"]
        lines = [*commands, f"fabricbench {', '.join(versions)}"]
    return {"reproduce": tuple(lines), "data_sha256": hashes}


def reproduce(run: Run, data: str) -> tuple[str, ...]:
    """Return the lines: how to measure it again, with what it was measured, what its data hash to (`data`)."""
    manifest = run.manifest
    versions = manifest.versions
    version = versions.get("fabricbench", "of unknown version")
    is_imported = bool(run.launches) and all(launch.origin is Origin.IMPORTED for launch in run.launches)
    others = [
        f"{name} {versions[name]}" for name in ("mpi", "compiler") if versions.get(name) not in (None, "", "none")
    ]
    return (
        _command(manifest),
        ", ".join(
            [
                f"fabricbench {version}",
                *([] if is_imported else [f"seed {manifest.seed}"]),
                *others,
                f"data {data[:SHORT_HASH]} (`fabricbench verify`)",
            ]
        ),
    )


def again(command: Sequence[str], seed: int, blocks: int, blocks_in_campaign: int | None) -> tuple[str, ...]:
    """Return a stored `fabricbench run` as it can be given again: another output, the seed drawn, the blocks there are.

    Any other command is returned as it was.
    """
    if len(command) < 2 or command[1] != "run":
        return tuple(command)
    rest, has_seed, has_blocks = list(_without_output(command)), False, False
    for index, token in enumerate(rest):
        name = token.partition("=")[0]
        has_seed |= name == "--seed"
        has_blocks |= name in ("--blocks", "--budget")
        if name == "--blocks" and blocks:  # a run that was extended has more than its command said
            rest[index : index + 2] = [f"--blocks={blocks}"] if "=" in token else ["--blocks", str(blocks)]
    if not has_seed:
        rest += ["--seed", str(seed)]
    if not has_blocks and blocks and blocks_in_campaign not in (None, blocks):
        rest += ["--blocks", str(blocks)]
    return (*rest, "-o", NEW_DIRECTORY)


def testbed_arguments(manifest: Manifest) -> tuple[str, ...]:
    """Return the arguments that named the testbed when the run was started; empty where the command was not recorded."""
    found: list[str] = []
    tokens = iter(manifest.command)
    for token in tokens:
        name, equals, _ = token.partition("=")
        if name in ("--testbed", "--nodes"):
            found += [token] if equals else [token, next(tokens, "")]
    return tuple(found)


def _command(manifest: Manifest) -> str:
    blocks = len({launch.block for launch in manifest.planned})
    stored = manifest.campaign.get("blocks")
    if manifest.command:
        return join(again(manifest.command, manifest.seed, blocks, stored if isinstance(stored, int) else None))
    names = ", ".join(fabric.name for fabric in manifest.testbed.fabrics)
    return (
        f"campaign {manifest.campaign_name} in {count(blocks, 'block')} with seed {manifest.seed} on testbed "
        f"{manifest.testbed.name} ({names}); its command was not recorded"
    )


def _without_output(command: Sequence[str]) -> Iterator[str]:
    """Yield the tokens but those that say where the run directory and the dossier go."""
    tokens = iter(command)
    for token in tokens:
        if token in ("-o", "--output"):
            next(tokens, None)
        elif not token.startswith(("--output=", "--report")) and not (
            token.startswith("-o") and not token.startswith("--")
        ):
            yield token
