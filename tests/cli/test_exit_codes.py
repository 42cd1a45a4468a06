"""The table of docs/exit-codes.md, line by line: each of its cases is run here, and no case is missing on either side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fabricbench.campaign import preflight as campaign_preflight
from fabricbench.campaign.failure import LaunchesFailed
from fabricbench.campaign.preparing import prepare
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.cli import doctor as cli_doctor
from fabricbench.cli import explain as cli_explain
from fabricbench.cli import map as cli_map
from fabricbench.cli import resume as cli_resume
from fabricbench.cli import run as cli_run
from fabricbench.cli import testbed as cli_testbed
from fabricbench.cli.testbed_check import CheckedTestbed, Clocks
from fabricbench.errors import EnvironmentLacks, Interrupted, RunIncomplete
from fabricbench.model import Layer, Pattern
from fabricbench.record.farm_lines import FarmFooter, FarmRecord
from fabricbench.record.integrity import HOLES_FROM_BYTES, JOURNAL
from fabricbench.record.lines import FailureCode
from fabricbench.record.store import Run
from fabricbench.testbed.preflight_result import Finding, Preflight
from support.calling import Call
from support.lost_runs import farm_record, lost_run, trip
from support.stamps import Stamped
from support.synthetic_run import (
    WAY,
    SyntheticCell,
    forget_hashes,
    stamped_cells_run,
    stamped_run,
    synthetic_testbed,
    write_synthetic_run,
)
from support.tiny_campaign import tiny_campaign

PAGE = Path(__file__).parents[2] / "docs" / "exit-codes.md"
TESTBED = """
[testbed]
name = "here"
launcher = "local"
nodes = ["localhost"]

[[fabric]]
name = "loopback"
interface = "lo"
subnet = "127.0.0.0/8"
mtu = 65536
"""
EVERY = [f"b{block:02d}-{fabric}" for block in range(6) for fabric in ("slow", "fast")]
Line = tuple[str, int, str]
UNREADABLE = "the journal of the run cannot be read: it has holes, or is no file"


class Place:
    """A folder with a campaign and a testbed, in which commands are called; what measures is replaced by what it leaves."""

    def __init__(self, folder: Path, call: Call, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.call, self.patch, self.said = folder, call, patch, ""
        self.campaign, self.testbed, self.run = folder / "c.toml", folder / "t.toml", folder / "run"
        self.campaign.write_text(tiny_campaign(("memory", "tcp"), blocks=3))
        self.testbed.write_text(TESTBED)

    def code(self, *arguments: object) -> int:
        code, _, err = self.call(*arguments)
        if code not in (0, 70, 130):
            assert (
                err.startswith(("fabricbench: ", "LOST: ", "note: ", "warning: ", "\n", "with 80"))
                or "fabricbench: " in err
            )
        return code

    def measuring(self, leaves: Callable[[Path], object] | None = None, ends: BaseException | None = None) -> int:
        """Call `run`; the measuring leaves this run directory, and ends so."""

        def start_run(path: Path, *_: object, **__: object) -> None:
            if leaves is not None:
                leaves(path)
            if ends is not None:
                raise ends

        self.patch.setattr(cli_run, "start_run", start_run)
        return self.code("run", self.campaign, "--testbed", self.testbed, "-o", self.run)

    def resuming(self, ends: BaseException | None = None) -> int:
        """Call `resume` on the run that is there; nothing more is measured."""

        def resume_run(*_: object, **__: object) -> None:
            if ends is not None:
                raise ends

        self.patch.setattr(cli_resume, "resume_run", resume_run)
        return self.code("resume", self.run)

    def gate(self, new: Run, old: Run | None = None, allowed: str = "20%") -> int:
        """Call `check` against a run that lost nothing."""
        before = old or lost_run(self.folder / "old", blocks=12)
        return self.code("check", "--baseline", before.path, new.path, "--max-regression", allowed)

    def mapping(self, leaves: Callable[[Path], object]) -> int:
        """Call `map --testbed`, of which the measuring leaves this run directory."""
        self.patch.setattr(cli_map, "_measure", lambda *arguments: leaves(arguments[-1]))
        return self.code("map", self.run, "--testbed", "lab:fast-ethernet")

    def explaining(self, **lost: Sequence[str]) -> int:
        """Call `explain --testbed`, of which the measuring leaves this run directory."""
        self.patch.setattr(cli_explain, "measure", lambda *arguments: stamped_run(arguments[-1], **lost))
        return self.code("explain", self.run, "--testbed", "lab:fast-ethernet")

    def confirming(self) -> int:
        """Call `explain --confirm` on a run with a cause that has no plan."""
        cell = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, samples=60)
        stamped_cells_run(self.run, (cell, {"net": Stamped(WAY, WAY, apart_ns=0, waits=0.3)}))
        return self.code("explain", self.run, "--confirm", self.folder / "confirmed")

    def checking(self, *findings: Finding) -> int:
        """Call `testbed check`, which finds this."""
        found = CheckedTestbed(testbed="here", preflight=Preflight(), clocks=Clocks(), fabrics=(), findings=findings)
        self.patch.setattr(cli_testbed, "find_place", lambda _: None)
        self.patch.setattr(cli_testbed, "check_testbed", lambda *_: found)
        return self.code("testbed", "check", self.testbed)

    def submitting(self, ends: BaseException) -> int:
        """Call `run --submit` of a job that ends so."""

        def run_submitted(*_: object) -> None:
            raise ends

        self.patch.setattr(cli_run, "prepare_for_job", lambda *_: None)
        self.patch.setattr(cli_run, "run_submitted", run_submitted)
        return self.code("run", self.campaign, "--testbed", self.testbed, "-o", self.run, "--submit")

    def broken(self) -> int:
        """Call `run`, in which something breaks that nobody expected."""
        return self.measuring(ends=ZeroDivisionError("of nobody's making"))


def whole_farm() -> FarmRecord:
    """The record of the farm in which the job that was lost was done in the end."""
    record = farm_record()
    assert record.footer is not None
    record.footer = FarmFooter.model_validate({**record.footer.model_dump(), "done": 4, "lost": 0})
    record.attempts = [one.model_copy(update={"is_last": one.is_last and one.is_done}) for one in record.attempts]
    return record


FAILED = LaunchesFailed("1 of 12 launches failed", "  the end of its log", hint="resume it")
LACKS = EnvironmentLacks("n1 does not answer", hint="bring it back")
ERROR = Finding(node="n1", subject="MTU", found="1400", needed="1500", action="set it")


def altered(place: Place) -> int:
    run = lost_run(place.run, blocks=3)
    (run.launches[0].directory / "samples.parquet").write_bytes(b"other")
    return place.code("verify", place.run)


def without_hashes(place: Place) -> int:
    for launch in lost_run(place.run, blocks=3).launches:
        forget_hashes(launch.directory)
    (place.run / JOURNAL).unlink()
    return place.code("verify", place.run)


def without_journal(place: Place, *arguments: object) -> int:
    """Call a command on a run whose journal is mostly a hole, and then on one whose journal is a folder."""
    lost_run(place.run, blocks=3)
    prepared = prepare(str(place.campaign), str(place.testbed), None, None, None, 1, None)
    stored = StoredPlan(campaign=prepared.campaign, plan=prepared.plan, venue=prepared.venue)
    RunDirectory(place.run).write_plan(stored)
    os.truncate(place.run / JOURNAL, 2 * HOLES_FROM_BYTES)
    sparse = place.code(*arguments)
    (place.run / JOURNAL).unlink()
    (place.run / JOURNAL).mkdir()
    assert place.code(*arguments) == sparse
    return sparse


def written(place: Place, *arguments: object, **lost: list[str]) -> int:
    lost_run(place.run, **lost)  # type: ignore[arg-type]
    return place.code(*arguments)


def with_pairs(place: Place) -> int:
    """Call `map` on a run that has a matrix."""
    medians = {(0, 1): 1e5, (0, 2): 1e5, (1, 2): 1e5}
    cell = SyntheticCell(
        Layer.TCP, Pattern.PAIRS, 1024, {"net": 1e5}, samples=30, ranks=(0, 1, 2), pair_medians=medians
    )
    write_synthetic_run(place.run, cells=[cell], blocks=3, testbed=synthetic_testbed({"net": 100e6}, nodes=3))
    return place.code("map", place.run)


def not_in_new(place: Place) -> int:
    return place.gate(lost_run(place.folder / "new", blocks=11, again=[f"b{n:02d}-fast" for n in range(6)]))


def gave_up(place: Place) -> int:
    return place.measuring(lambda path: lost_run(path, failed=["b05-fast"]), FAILED)


def imported(place: Place) -> int:
    text = "\n# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1                       2.50\n"
    for name, digit in (("a", "2.50"), ("b", "2.75")):
        (place.folder / f"{name}.txt").write_text(text.replace("2.50", digit))
    return place.code(
        "import", "--fabric", f"a={place.folder}/a.txt", "--fabric", f"b={place.folder}/b.txt", "-o", place.run
    )


def unknown_import(place: Place) -> int:
    (place.folder / "a.txt").write_text("nothing\n")
    return place.code("import", "--fabric", f"a={place.folder}/a.txt", "-o", place.run)


def otherwise(place: Place, *arguments: object) -> int:
    """Call a command on nodes that are not as the testbed says."""
    found = Preflight(testbed="here", findings=(ERROR,))
    for module in (campaign_preflight, cli_doctor):
        place.patch.setattr(module, "examine_venue", lambda *_: found)
    return place.code(*arguments, "--testbed", place.testbed)


def slower(place: Place) -> int:
    cell = trip()
    worse = type(cell)(**{**vars(cell), "medians": {name: 2 * value for name, value in cell.medians.items()}})
    return place.gate(lost_run(place.folder / "new", blocks=12, cells=[worse]))


CASES: dict[Line, Callable[[Place], int]] = {
    ("run", 0, "every result is there"): lambda p: p.measuring(lost_run),
    ("run", 0, "a launch failed, and its next start was measured"): lambda p: p.measuring(
        lambda path: lost_run(path, again=["b00-fast"])
    ),
    ("run", 0, "a job of a farm failed once, and was done when it was tried again"): lambda p: p.measuring(
        lambda path: lost_run(path, farm=whole_farm())
    ),
    ("run", 0, "a test cannot be measured here at all: a permission is missing, or it is not supported"): lambda p: (
        p.measuring(lambda path: lost_run(path, cannot=[FailureCode.PERMISSION, FailureCode.UNSUPPORTED]))
    ),
    ("run", 2, "the campaign, the testbed or an option cannot be used"): lambda p: p.code(
        "run", "nosuch", "--testbed", p.testbed, "-o", p.run
    ),
    ("run", 2, "the directory is not empty"): lambda p: p.code(
        "run", p.campaign, "--testbed", p.testbed, "-o", lost_run(p.run, blocks=2).path
    ),
    ("run", 3, "a node, a program or a permission is not there, before the run or in its middle"): lambda p: (
        p.measuring(ends=LACKS)
    ),
    ("run", 3, "nodes are not as the testbed says: an interface is down, or has another MTU"): lambda p: otherwise(
        p, "run", p.campaign, "-o", p.run
    ),
    ("run", 4, "a launch is invalid"): lambda p: p.measuring(lambda path: lost_run(path, invalid=["b00-fast"])),
    ("run", 4, "a launch failed at each of its starts"): gave_up,
    ("run", 4, "a test could not be measured in a launch"): lambda p: p.measuring(
        lambda path: lost_run(path, cells=[trip(), trip(1024, fails_in=(0,))])
    ),
    ("run", 4, "no launch gave anything"): lambda p: p.measuring(lambda path: lost_run(path, invalid=EVERY)),
    ("run", 4, "jobs of a farm failed for good"): lambda p: p.measuring(
        lambda path: lost_run(path, farm=farm_record())
    ),
    ("run", 4, "the job of Slurm that measures it ended before it did"): lambda p: p.submitting(
        RunIncomplete("job 7 ended before the run did", hint="resume it")
    ),
    ("run", 70, "an error that nobody expected"): Place.broken,
    ("run", 130, "the user interrupted"): lambda p: p.measuring(ends=Interrupted("interrupted")),
    ("resume", 0, "every result is there"): lambda p: (lost_run(p.run), p.resuming())[1],
    ("resume", 2, "the directory holds no run"): lambda p: p.code("resume", p.run),
    ("resume", 2, UNREADABLE): lambda p: without_journal(p, "resume", p.run, "--no-preflight"),
    ("resume", 3, "a node, a program or a permission is not there, before the run or in its middle"): lambda p: (
        lost_run(p.run),
        p.resuming(LACKS),
    )[1],
    ("resume", 4, "a result was lost, now or before"): lambda p: (lost_run(p.run, invalid=["b00-fast"]), p.resuming())[
        1
    ],
    ("resume", 130, "the user interrupted"): lambda p: (lost_run(p.run), p.resuming(Interrupted("interrupted")))[1],
    ("report", 0, "it is written, and stderr says what the run had lost"): lambda p: written(
        p, "report", p.run, "-o", p.folder / "x.md", invalid=["b00-fast"]
    ),
    ("report", 2, "the directory holds no run, or one of which nothing can be analysed"): lambda p: p.code(
        "report", p.run
    ),
    ("report", 2, UNREADABLE): lambda p: without_journal(p, "report", p.run),
    ("report", 3, "the file cannot be written"): lambda p: written(p, "report", p.run, "-o", "/sys/x.html"),
    ("figure", 0, "it is drawn, and stderr says what the runs had lost"): lambda p: written(
        p, "figure", p.run, "--y", "round-trip", invalid=["b00-fast"]
    ),
    ("figure", 2, "a directory holds no run, or nothing that was asked for, or an axis is none of its own"): lambda p: (
        written(p, "figure", p.run, "--y", "seconds")
    ),
    ("figure", 2, UNREADABLE): lambda p: without_journal(p, "figure", p.run, "--y", "round-trip"),
    ("figure", 3, "the file cannot be written"): lambda p: written(
        p, "figure", p.run, "--y", "round-trip", "-o", "/sys/x.svg"
    ),
    ("compare", 0, "it is written, and says first what the run had lost"): lambda p: written(p, "compare", p.run),
    ("compare", 2, "the directory holds no run, or one of which nothing can be analysed"): lambda p: written(
        p, "compare", p.run, invalid=EVERY
    ),
    ("compare", 2, UNREADABLE): lambda p: without_journal(p, "compare", p.run),
    ("show", 0, "it is written, and says first what the run had lost"): lambda p: written(
        p, "show", p.run, "--summary"
    ),
    ("show", 2, "the directory holds no run"): lambda p: p.code("show", p.run),
    ("show", 2, UNREADABLE): lambda p: without_journal(p, "show", p.run, "--summary"),
    ("export", 0, "it is written, and stderr says what the run had lost"): lambda p: written(
        p, "export", p.run, "--format", "junit", invalid=["b00-fast"]
    ),
    ("export", 2, "the directory holds no run"): lambda p: p.code("export", p.run, "--format", "csv"),
    ("export", 2, UNREADABLE): lambda p: without_journal(p, "export", p.run, "--format", "csv"),
    ("export", 2, "nothing of the run counts, and the format cannot mark that"): lambda p: written(
        p, "export", p.run, "--format", "bencher", invalid=EVERY
    ),
    ("export", 2, "the file is there already"): lambda p: written(
        p, "export", p.run, "--format", "csv", "-o", p.testbed
    ),
    ("export", 3, "the file cannot be written"): lambda p: written(
        p, "export", p.run, "--format", "csv", "-o", "/sys/x.csv"
    ),
    ("runs", 0, "they are listed, each with what it lost"): lambda p: written(p, "runs", p.folder, invalid=EVERY),
    ("runs", 2, "there is no such folder"): lambda p: p.code("runs", p.run),
    ("runs", 2, "a date is none"): lambda p: p.code("runs", p.folder, "--since", "yesterday"),
    ("trend", 0, "it is shown, whatever changed"): lambda p: written(p, "trend", p.folder),
    ("trend", 2, "there is no such folder, or no run or test of what was asked for in it"): lambda p: p.code(
        "trend", p.folder
    ),
    ("check", 0, "the gate is passed"): lambda p: p.gate(lost_run(p.folder / "new", blocks=11)),
    ("check", 1, "a test became slower by more than allowed"): slower,
    ("check", 2, "a directory holds no run"): lambda p: p.code("check", "--baseline", p.run, p.run),
    ("check", 2, UNREADABLE): lambda p: without_journal(p, "check", "--baseline", p.run, p.run),
    ("check", 5, "the intervals are too wide"): lambda p: p.gate(lost_run(p.folder / "new", blocks=3), allowed="0.1%"),
    (
        "check",
        5,
        "what is left passes, and a side lost a fabric, a test, or more than a tenth of the starts of one",
    ): not_in_new,
    (
        "check",
        5,
        "with `--last-good`: no earlier run of the same campaign and testbed is complete and proven",
    ): lambda p: written(p, "check", p.run, "--last-good", p.folder),
    ("selfcheck", 2, "the directory holds no run"): lambda p: p.code("selfcheck", p.run),
    ("selfcheck", 2, UNREADABLE): lambda p: without_journal(p, "selfcheck", p.run, "--fabric", "fast"),
    ("selfcheck", 5, "there are too few launches"): lambda p: (
        lost_run(p.run, blocks=3),
        p.code("selfcheck", p.run, "--fabric", "fast"),
    )[1],
    ("verify", 0, "every file is as it was written"): lambda p: written(p, "verify", p.run),
    ("verify", 1, "a file was altered"): altered,
    ("verify", 2, UNREADABLE): lambda p: without_journal(p, "verify", p.run),
    ("verify", 4, "nothing was altered, and planned launches are missing"): lambda p: written(
        p, "verify", p.run, failed=["b00-fast"]
    ),
    ("verify", 5, "no hashes were written down"): without_hashes,
    ("import", 0, "the run directory is written"): imported,
    ("import", 2, "no importer knows the file"): unknown_import,
    ("map", 0, "the matrix is shown"): with_pairs,
    ("map", 2, "the directory holds no run"): lambda p: p.code("map", p.run),
    ("map", 2, UNREADABLE): lambda p: without_journal(p, "map", p.run),
    ("map", 2, "no matrix was measured in the run"): lambda p: written(p, "map", p.run),
    ("map", 4, "with `--testbed`: a result was lost"): lambda p: p.mapping(
        lambda path: lost_run(path, invalid=["b00-fast"])
    ),
    ("explain", 0, "the stages are shown"): lambda p: p.explaining(),
    ("explain", 2, "the directory holds no run"): lambda p: p.code("explain", p.run),
    ("explain", 2, "no stages were measured in the run"): lambda p: written(p, "explain", p.run),
    ("explain", 2, "with `--confirm`: the run has no plan, or compares conditions of its fabrics"): lambda p: (
        p.confirming()
    ),
    ("explain", 4, "with `--testbed`: a result was lost"): lambda p: p.explaining(invalid=["b00-net"]),
    ("testbed check", 0, "the testbed is as its file says"): lambda p: p.checking(),
    ("testbed check", 2, "the file cannot be used"): lambda p: p.code("testbed", "check", p.folder / "none.toml"),
    ("testbed check", 3, "the testbed is not as its file says"): lambda p: p.checking(ERROR),
    ("doctor", 0, "the host is described"): lambda p: p.code("doctor"),
    ("doctor", 2, "the testbed cannot be used"): lambda p: p.code("doctor", "--testbed", p.folder / "none.toml"),
    ("doctor", 3, "with `--testbed`: nodes are not as the testbed says"): lambda p: otherwise(p, "doctor"),
    ("plan", 0, "the plan is shown"): lambda p: p.code("plan", p.campaign, "--testbed", p.testbed),
    ("plan", 2, "the campaign, the testbed or an option cannot be used"): lambda p: p.code(
        "plan", p.campaign, "--testbed", p.testbed, "--budget", "1e999s"
    ),
    ("list", 0, "it is listed"): lambda p: p.code("list"),
    ("list", 2, "there is nothing of that name"): lambda p: p.code("list", "nosuchthing"),
    ("version", 0, "it is told"): lambda p: p.code("version"),
}


def lines_of_page() -> list[Line]:
    """The lines of the page's table of commands."""
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [(command.strip("`"), int(code), when) for command, code, when in rows]


def test_the_page_and_the_cases_here_are_the_same_lines():
    assert lines_of_page() == list(CASES)


@pytest.mark.parametrize("line", CASES, ids=lambda line: f"{line[0]}-{line[1]}-{line[2][:40]}")
def test_a_command_ends_as_the_page_says(
    line: Line, tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    place = Place(tmp_path, fabricbench, monkeypatch)
    assert CASES[line](place) == line[1], place.said
