"""Applications described in TOML: what may be said, what is started, what is read from what they wrote."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.attempt import Attempts, start_of
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, read_campaign
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.workload.adapter import Output, Parsed, Place
from fabricbench.workload.application import filled, shipped
from fabricbench.workload.command import CommandStart, CommandTable, grid, shipped_table
from fabricbench.workload.counted import AROUND, BEGUN, MPI_LINE, rank_line
from fabricbench.workload.registry import WORKLOADS
from support.applications import EXAMPLES, PRINTED, RATE, TIME, campaign, lab_of, parsed, start, starts, table
from support.fake_launcher import FakeLauncher
from support.scripts import script

OUTPUTS = Path(__file__).parent / "outputs"
VERIFIED = {"name": "value", "regex": r"^time (\S+)$"}


def test_every_combination_of_parameters_and_ranks_is_a_launch_of_its_own():
    found = starts(table(command=["echo", "{n}", "{mode}"], parameters={"n": [1, 2], "mode": ["a", "b"]}, ranks=[2, 4]))
    assert [one.name for one in found] == sorted(
        f"tiny-n{n}-mode{mode}.{ranks}" for n in (1, 2) for mode in "ab" for ranks in (2, 4)
    )
    plan = plan_run(campaign(table(command=["echo", "{n}"], parameters={"n": [1, 2]})), lab_of(), seed=1)
    assert [cell.parameters for cell in plan.cells] == [{"workload": "tiny", "n": 1}, {"workload": "tiny", "n": 2}]
    assert len(plan.launches) == 2 * 2 * 2
    assert RunPlan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan


def test_placeholders_are_filled_in_the_command_files_and_variables_and_other_braces_stay(tmp_path: Path):
    one = start(
        command=["echo", "-in", "{input}", "{rows}x{columns}", "--n={n}"],
        parameters={"n": [7]},
        files={"in.txt": "size {n} ranks {ranks} ${other} {1}"},
        environment={"OUT": "{directory}/x"},
        ranks=[4],
    )
    tokens = one.tokens(Place(tmp_path, lab_of().fabrics[0]))
    assert tokens[tokens.index("--") + 1].endswith("/echo")
    assert tokens[tokens.index("--") + 2 :] == ["-in", "in.txt", "2x2", "--n=7"]
    assert tokens[tokens.index("--in") + 1] == str(tmp_path)
    assert f"OUT={tmp_path}/x" in tokens
    assert one.files() == {"in.txt": "size 7 ranks 4 ${other} {1}"}
    assert [grid(ranks) for ranks in (1, 2, 6, 7, 16)] == [(1, 1), (1, 2), (2, 3), (1, 7), (4, 4)]
    assert filled("{a}{b}", {"a": "{b}", "b": 1}) == "{b}1"


def test_what_makes_it_this_test_is_told_as_it_was_written_and_not_as_a_fabric_fills_it_in():
    asked = {"command": ["/builds/17/solve", "{interface}", "-n {n}"], "parameters": {"n": [7, 8]}}
    asked |= {"environment": {"NET": "{interface}"}, "files": {"in.txt": "{n}"}}
    one, other = starts(table(**asked, ranks=[2]))
    assert one.definition == other.definition
    assert one.definition["command"] == "solve '{interface}' '-n {n}'"
    assert one.definition["variable NET"] == "'{interface}'"
    assert one.definition["primary figure"] == r"time ('^time (\S+)$' in stdout, only, s, better lower)"
    assert set(one.definition) == {"command", "variable NET", "input file in.txt", "primary figure"}
    (edited,) = starts(table(**{**asked, "files": {"in.txt": "{n} "}, "parameters": {"n": [7]}}, ranks=[2]))
    assert edited.definition["input file in.txt"] != one.definition["input file in.txt"]


def test_input_files_are_written_into_the_directory_of_the_launch(tmp_path: Path):
    plan = plan_run(campaign(table(files={"in.txt": "{ranks}"}, ranks=[2])), lab_of(), seed=1)
    start_of(plan.launches[0], plan).stage(tmp_path)
    assert (tmp_path / "in.txt").read_text() == "2"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"kind": "comand"},
            f"kind: found 'comand', needed one of {', '.join(WORKLOADS)}; did you mean 'command'",
        ),
        ({"kind": ["npb"]}, rf"kind: found \['npb'\], needed one of {', '.join(WORKLOADS)}"),
        ({"command": ["echo", "{n}"], "parameters": 3}, "parameters: found 3, needed a table"),
        ({"command": ["echo", "{n}"], "parameters": {"n": [1, "1"]}}, "each once"),
        ({"figure": [{**TIME, "file": "out/log.txt"}]}, "file: found 'out/log.txt', needed stdout, stderr or the name"),
        ({"success": {**PRINTED, "file": ".."}}, r"file: found '\.\.'"),
        ({"figur": []}, r"workload\[1\].figur: unknown key; did you mean 'figure'"),
        ({"figure": []}, "at least one entry"),
        ({"figure": [{**TIME, "regex": "(a"}]}, "is no regular expression"),
        ({"figure": [{**TIME, "regex": "a"}]}, "has 0 groups, needed one"),
        ({"figure": [{**TIME, "unit": "MB"}]}, "needed a time"),
        ({"figure": [{**RATE, "unit": "ms"}]}, "is that its unit"),
        ({"figure": [TIME, TIME]}, "'time' is there 2 times"),
        ({"figure": [{**TIME, "select": "best"}]}, "needed one of only, first"),
        ({"command": ["echo", "{sise}"], "parameters": {"size": [1]}}, r"\{sise\} has no value; did you mean 'size'"),
        ({"command": ["echo", "{input}"]}, r"\{input\} is the first of `files`, and there are none; there are ranks"),
        ({"figure": [TIME, {**TIME, "name": "communication"}]}, "in %; found the unit 's'"),
        ({"figure": [{**RATE, "unit": "seconds"}]}, "has the unit 'seconds'; needed of a time one of ns, us"),
        ({"figure": [{**RATE, "unit": "usec"}]}, "has the unit 'usec'"),
        ({"success": {"exit_codes": []}}, "exit_codes: found .*, needed at least one entry"),
        ({"success": {}}, "nothing tells a good run from one that printed its figure and failed"),
        ({"success": {"absent": ["FAILED"]}}, "needed `found`, what a good one prints"),
        ({"success": {"found": ["(PASSED)?"]}}, "is found in any output, in an empty one as well"),
        ({"success": {"found": ["PASSED"], "absent": ["x*"]}}, r"'x\*' is found in any output"),
        (
            {"work": "timed"},
            r"'time' is a time \(s\), and the work is timed: it lasts as long everywhere; needed a rate",
        ),
        ({"work": "timed", "figure": [RATE, TIME]}, "'time' is a time"),
        ({"work": "time-boxed"}, "work: found 'time-boxed', needed one of constant, timed"),
        ({"transport": "pmv"}, "transport: found 'pmv', needed one of mpi, gloo, sockets, pvm"),
        ({"build": ["cc"]}, 'build: is for transport = "pvm" and a command that begins with {directory}/'),
        (
            {"scaling": "weak"},
            r"c.toml: workload\[1\].scaling: found 'weak', needed \"strong\", or for weak scaling a rule .*scaling = { n = ",
        ),
        ({"scaling": {"n": "ranks +"}}, r"c.toml: workload\[1\].scaling.n: 'ranks \+' is no rule; write one such as"),
        (
            {"scaling": {"n": "open('" + "x" * 150 + "')"}},
            r"scaling.n: .open\(.x{50}\.\.\.: open\(.x{51}\.\.\. is no number",
        ),
        ({"scaling": {"n-1": "ranks"}}, r"workload\[1\].scaling.n-1: found 'n-1', needed a key that matches"),
        (
            {"parameters": {"n": [[1, 2]]}},
            r"c.toml: workload\[1\].parameters.n\[1\]: found \[1, 2\], needed text in quotes or a number$",
        ),
        ({"scaling": {"n": "open('x')"}}, r"open\('x'\) is no number, name"),
        ({"scaling": {"n": "rank * 2"}}, "needs a number rank; did you mean 'ranks'"),
        ({"scaling": {"n": "2 * ranks"}}, r"scaling: n changes nothing: write \{n\}"),
        ({"scaling": {"ranks": "2"}}, "scaling: ranks is a name of fabricbench's own"),
        (
            {"command": ["echo", "{n}"], "scaling": {"n": "1 / (ranks - 4)"}},
            "tiny on 4 ranks: scaling: .* has no value: .*division",
        ),
        ({"parameters": {"n": [1]}}, "n changes nothing"),
        ({"command": ["echo", "{n}"], "parameters": {"n": [1, 1]}}, "each once"),
        ({"files": {"../x": ""}}, r"files\.\.\./x"),
        ({"files": {"plan.json": ""}}, "fabricbench's own"),
        ({"files": {"a": "x" * 300_000}}, "at most 262144 B"),
        (
            {"ranks": [9]},
            "tiny on 9 ranks cannot be run: tiny takes any number of ranks, one on a node, and it has 4 nodes",
        ),
        ({"ranks": [3], "admits": "squares"}, "tiny takes squares of ranks"),
        ({"application": "nonesuch.toml"}, "there is no file"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        plan_run(campaign(table(**keys)), lab_of(), seed=1)


def test_the_same_application_twice_is_refused():
    with pytest.raises(UsageError, match=r"number 2 \(command\) runs tiny 4 ranks again, number 1 does already"):
        plan_run(campaign(table(), table()), lab_of(), seed=1)


def test_two_programs_of_one_name_are_asked_for_another_name():
    said = r"number 2 \(command\) is called tiny 4 ranks as number 1 is, and is not the same"
    with pytest.raises(UsageError, match=said) as found:
        plan_run(campaign(table(), table(command=["true", "{ranks}"])), lab_of(), seed=1)
    assert found.value.hint == "give one of the two another `name`"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"kind": "hpl", "application": "a.toml"},
            r"application: unknown key of kind = \"hpl\"; it is one of kind = \"command\"$",
        ),
        ({"kind": "hpl", "command": ["x"]}, r"it is one of kind = \"command\" or \"farm\"$"),
        ({"kind": "hpl", "ranx": 4}, "ranx: unknown key; did you mean 'ranks'"),
        (
            {"kind": "hpl", "zzz": 4},
            "zzz: unknown key; known keys: blas, broadcast, depth, grid, kind, memory, n, nb, ranks",
        ),
    ],
)
def test_a_key_of_another_kind_is_told_as_such_and_none_of_another_kind_is_meant(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        campaign(keys)


def test_a_misspelt_parameter_of_an_application_is_answered_with_the_one_that_it_has():
    asked = {"kind": "command", "application": "lammps-lj", "parameters": {"scal": 3}}
    with pytest.raises(UsageError, match="scal changes nothing; did you mean 'scale'"):
        campaign(asked)


def test_a_table_beside_an_application_file_that_is_none_is_refused(tmp_path: Path):
    (tmp_path / "app.toml").write_text('name = "shared"\ncommand = ["echo"]\n')
    (tmp_path / "wrong.toml").write_text('name = "shared"\ncommand = ["echo"]\nenvironment = 3\n')
    with pytest.raises(UsageError, match="parameters: found 3, needed a table"):
        campaign({"kind": "command", "application": str(tmp_path / "app.toml"), "parameters": 3})
    with pytest.raises(UsageError, match=r"environment: found 3 in .*wrong.toml, needed a table"):
        campaign({"kind": "command", "application": str(tmp_path / "wrong.toml")})


def test_launches_of_different_cells_have_different_names():
    found = starts(
        table(command=["echo", "{a}", "{b}"], parameters={"a": ["1-b2", "1"], "b": ["3", "2-b3"]}, ranks=[2])
    )
    assert len({one.name for one in found}) == len(found) == 4
    (one,) = starts(table(command=["echo", "{a}"], parameters={"a": ["weak-scaling"]}, ranks=[2]))
    assert one.name == "tiny-aweak-scaling.2"
    named = table(name="tiny-a1")
    with pytest.raises(UsageError, match=r"would be named tiny-a1\.4, as those of tiny 4 ranks,a=1"):
        starts(table(command=["echo", "{a}"], parameters={"a": [1]}), named)


def test_a_program_that_is_not_there_is_said_before_anything_is_started():
    plan = plan_run(campaign(table(command=["nonesuch-program"])), lab_of(), seed=1)
    with pytest.raises(EnvironmentLacks, match="application tiny needs nonesuch-program, which is not on PATH"):
        start_of(plan.launches[0], plan).program(Path("/run"))


@pytest.mark.parametrize(
    ("program", "why", "action"),
    [
        ("nonesuch-program", "which is not on PATH", "install it, or write its whole path"),
        ("{here}/nonesuch", "which is not there", "put it there, or correct the path"),
        ("{here}", "which is a directory", "name the program in it"),
        ("{here}/text", "which is there but may not be executed", "chmod +x {here}/text"),
        ("~/program", "which begins with ~, which no shell replaces here", "write its whole path"),
    ],
)
def test_a_program_that_cannot_be_used_is_told_with_why_where_it_was_looked_for_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, why: str, action: str
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "text").touch()
    script(tmp_path / "program", "exit 0")
    program, action = (text.format(here=tmp_path) for text in (program, action))
    with pytest.raises(EnvironmentLacks) as found:
        start(command=[program]).tokens(Place(tmp_path, lab_of().fabrics[0]))
    here = f"looked for on this machine, {os.uname().nodename}"
    assert found.value.message == f"application tiny needs {program}, {why} ({here})"
    assert str(found.value.hint).startswith(
        f"{action}. It must be at the same place on every node and on this machine; "
    )


def test_an_application_file_lies_beside_the_campaign_and_what_stands_there_comes_first(tmp_path: Path):
    (tmp_path / "app.toml").write_text(
        'name = "shared"\ncommand = ["echo", "{n}", "{m}"]\nparameters = { n = 1, m = 2 }\n'
        "[[figure]]\nname = 't'\nregex = '(x)'\nunit = 's'\nbetter = 'lower'\n[success]\nfound = 'x'\n"
    )
    (tmp_path / "campaign.toml").write_text(
        '[campaign]\n[[workload]]\nkind = "command"\napplication = "app.toml"\nparameters = { n = [3, 4] }\nranks = 2\n'
    )
    found = read_campaign(tmp_path / "campaign.toml")
    (one,) = found.workloads
    assert isinstance(one, CommandTable)
    assert (one.name, one.parameters, one.ranks) == ("shared", {"n": (3, 4), "m": (2,)}, (2,))
    assert Campaign.model_validate_json(found.model_dump_json(by_alias=True)) == found
    (tmp_path / "app.toml").write_text('name = "shared"\ncomand = ["x"]\n')
    with pytest.raises(UsageError, match=r"app.toml: comand: unknown key; did you mean 'command'"):
        read_campaign(tmp_path / "campaign.toml")


SHARED = {
    "name": "shared",
    "parameters": {"n": 1},
    "command": ["echo", "{n}"],
    "figure": [{**TIME, "regex": r"(x)"}],
    "success": {"found": "x"},
}


@pytest.mark.parametrize(
    ("file", "beside", "said"),
    [
        ({"figure": [{**TIME, "regex": "(a"}]}, {}, r"application: app.toml: figure\[1\].regex: '\(a' is no regular"),
        ({"figure": [{**TIME, "unit": "MB"}]}, {}, r"application: app.toml: figure: 'time' is the primary one"),
        ({"name": "A B"}, {}, "application: app.toml: name: found 'A B', needed small letters"),
        ({"parameters": {"n": 1, "m": 2}}, {}, "application: app.toml: parameters: m changes nothing"),
        ({"figure": [{**TIME, "regex": "(a"}]}, {"figure": [{**TIME, "better": 1}]}, r"figure\[1\].better: found 1"),
        ({}, {"expect_seconds": "5x"}, "expect_seconds: '5x' is not a time"),
        ({}, {"parameters": {"m": 2}}, "parameters: m changes nothing"),
    ],
)
def test_what_is_wrong_in_an_application_file_is_told_with_its_name_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: dict[str, Any], beside: dict[str, Any], said: str
):
    monkeypatch.chdir(tmp_path)
    Path("app.toml").write_text("\n".join(f"{key} = {in_toml(value)}" for key, value in {**SHARED, **file}.items()))
    with pytest.raises(UsageError, match=rf"^c.toml: workload\[1\](\.|: ){said}"):
        campaign({"kind": "command", "application": "app.toml", **beside})


def test_all_that_is_wrong_in_a_campaign_and_its_application_file_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    wrong = {**SHARED, "figure": [{**TIME, "regex": "(a"}]}
    Path("app.toml").write_text("\n".join(f"{key} = {in_toml(value)}" for key, value in wrong.items()))
    with pytest.raises(UsageError) as found:
        campaign({"kind": "command", "application": "app.toml", "admits": "some"})
    assert [line.split(": ")[:3] for line in found.value.message.splitlines()[1:]] == [
        ["  workload[1].admits", "found 'some', needed one of any number, even numbers, powers of two, squares"],
        ["  workload[1].application", "app.toml", "figure[1].regex"],
    ]


def test_a_time_is_kept_in_seconds_and_a_rate_in_its_own_unit(tmp_path: Path):
    found = parsed(tmp_path, start(figure=[{**TIME, "unit": "ms"}]), "time 250\r\n")
    assert (found.told.seconds, found.told.failed) == ((0.25,), None)
    assert [(one.name, one.value, one.unit) for one in found.figures] == [("time", 0.25, "s")]
    found = parsed(tmp_path, start(figure=[RATE, TIME]), "rate 3.5\ntime 2\n")
    assert (found.told.rate, found.told.seconds) == (3.5, (3.0,))
    assert found.told.values == {"figure.time": 2.0}
    assert [rank.rank for rank in found.told.ranks] == [0, 1]
    assert found.told.interfaces["fe0"].received == 7


@pytest.mark.parametrize(
    ("select", "value"),
    [("first", 1.0), ("last", 2.0), ("max", 4.0), ("min", 1.0), ("mean", 2.5), ("median", 2.5), ("sum", 10.0)],
)
def test_of_several_matches_the_table_says_which_counts(tmp_path: Path, select: str, value: float):
    one = start(figure=[{**RATE, "select": select}])
    assert parsed(tmp_path, one, "rate 1\nrate 3\nrate 4D0\nrate 2\n").told.rate == value


@pytest.mark.parametrize(
    ("stdout", "said"),
    [
        ("nothing here\n", "in stdout matched nothing; stdout ends: nothing here"),
        ("other 1\n", "matched nothing; stdout ends: other 1"),
        (
            "time 1\ntime 2\n",
            "matched 2 times; say by select which counts (first, last, max, mean ...); as many as ranks",
        ),
        ("time soon\n", "matched 'soon', which is no finite number"),
        ("time nan\n", "which is no finite number"),
        ("time 0\n", "figure 'time' is 0 s"),
        ("time 6e10\n", "figure 'time' is 6e+10 s: more than 1e+09 s cannot be stored"),
    ],
)
def test_a_figure_that_is_not_there_is_a_failed_cell_with_what_was_searched(tmp_path: Path, stdout: str, said: str):
    found = parsed(tmp_path, start(), stdout)
    assert found.told.failed is not None
    assert not found.told.failed.is_wrong
    assert said in found.told.failed.reason
    assert found.figures == ()


@pytest.mark.parametrize(
    ("share", "said"), [("0", None), ("100", None), ("100.5", "is 100.5 %, needed a share"), ("-1", "is -1 %")]
)
def test_a_share_of_communication_is_from_nothing_to_all(tmp_path: Path, share: str, said: str | None):
    of_time = {"name": "communication", "regex": r"^share (\S+)$", "unit": "%", "better": "lower"}
    found = parsed(tmp_path, start(figure=[TIME, of_time]), f"time 1\nshare {share}\n")
    assert (found.communication_share == float(share) / 100) == (said is None)
    assert (found.told.failed is None) == (said is None)
    if found.told.failed is not None:
        assert str(said) in found.told.failed.reason


@pytest.mark.parametrize(
    ("keys", "stdout", "said"),
    [
        ({"regex": r"^time (?:(\d+)|none)$"}, "time none\n", "matched '', which is no finite number"),
        ({"select": "sum"}, "time 1e308\ntime 1e308\n", "figure 'time' is inf s"),
        ({"select": "mean"}, "time 1e308\ntime 1e308\n", "figure 'time' is inf s"),
        ({"unit": "h"}, "time 1e308\n", "figure 'time' is inf s"),
    ],
)
def test_a_figure_that_is_no_number_any_more_is_a_failed_cell(
    tmp_path: Path, keys: dict[str, str], stdout: str, said: str
):
    found = parsed(tmp_path, start(figure=[{**TIME, **keys}]), stdout)
    assert found.told.failed is not None
    assert said in found.told.failed.reason
    further = parsed(tmp_path, start(figure=[RATE, {**TIME, **keys}]), f"rate 2\n{stdout}")
    assert further.told.failed is not None
    assert not any(math.isinf(value) for value in further.told.values.values())


def test_a_number_to_be_verified_that_took_no_part_in_its_match_does_not_hold(tmp_path: Path):
    one = start(verify=[{"name": "energy", "regex": r"^E=(?:(\d+)|none)$"}])
    found = parsed(tmp_path, one, "time 1\nE=none\n")
    assert [check.holds for check in found.checks] == [True, False]


def in_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {in_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(in_toml, value))}]"
    return json.dumps(value)


class Careless(CommandStart):
    """An adapter that does not expect what it finds."""

    def parse(self, output: Output) -> Parsed | None:
        del output
        raise KeyError("time")


def test_whatever_an_adapter_raises_is_a_failed_cell(tmp_path: Path):
    plan = plan_run(campaign(table(ranks=[2])), lab_of(), seed=1)
    launch = plan.launches[0]
    assert launch.workload is not None
    careless = Careless.model_construct(**dict(launch.workload))
    parsed(tmp_path, start(), "time 1\n")
    written = start_of(launch.model_copy(update={"workload": careless}), plan).read(tmp_path)
    assert written is not None
    assert written.record.is_complete
    (cell,) = written.record.cells
    assert cell.failed is not None
    assert cell.failed.reason == "what it wrote cannot be read: KeyError: 'time'"


@pytest.mark.parametrize(("exit_code", "is_adopted"), [(0, True), (139, False)])
def test_what_a_crash_kept_from_being_stored_is_adopted_unless_the_program_died(
    tmp_path: Path, exit_code: int, is_adopted: bool
):
    plan = plan_run(campaign(table(ranks=[2])), lab_of(), seed=1)
    run = RunDirectory(tmp_path / "run")
    run.create()
    launch = plan.launches[0]
    parsed(run.prepare(launch.launch_id), start(), "time 1\n", exit_code=exit_code)
    found = Attempts(run, plan, FakeLauncher(run.path)).finished(launch)
    assert (found is not None) == is_adopted


def test_a_wrong_result_is_a_failed_cell_whatever_the_figure_says(tmp_path: Path):
    one = start(
        success={"found": ["PASSED"], "absent": ["FAILED"]},
        verify=[{"name": "energy", "regex": r"E=(\S+)", "reference": -4.0, "relative": 1e-3}],
    )
    assert parsed(tmp_path, one, "time 1\nPASSED\nE=-4.001\n").told.failed is None
    for stdout, said in (
        ("time 1\nE=-4\n", "wrong result: success: found nothing in stdout, needed 'PASSED'"),
        ("time 1\nPASSED\nFAILED\nE=-4\n", "found 'FAILED', needed no 'FAILED' in stdout"),
        ("time 1\nPASSED\nE=-4.1\n", "energy: found -4.1, needed -4 within 0.001"),
        ("time 1\nPASSED\n", "energy: found figure 'energy'"),
    ):
        failed = parsed(tmp_path, one, stdout).told.failed
        assert failed is not None
        assert failed.is_wrong
        assert said in failed.reason


def test_a_number_near_zero_is_verified_by_its_absolute_distance(tmp_path: Path):
    one = start(verify=[{"name": "residual", "regex": r"R=(\S+)", "reference": 0, "relative": 1e-3, "absolute": 1e-9}])
    assert parsed(tmp_path, one, "time 1\nR=5e-10\n").told.failed is None
    failed = parsed(tmp_path, one, "time 1\nR=2e-9\n").told.failed
    assert failed is not None
    assert "found 2e-09, needed 0 within 0.001, or 1e-09 of any size" in failed.reason


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"reference": 1.5},
            r"verify\[1\]: reference: nothing says how near the result must be, .*; write relative = 1e-6",
        ),
        (
            {"reference": 0, "relative": 1e-6},
            r"verify\[1\]: relative: of the reference 0 any share is 0; write absolute",
        ),
    ],
)
def test_a_reference_that_nothing_could_meet_but_by_the_last_bit_is_refused(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        campaign(table(verify=[{**VERIFIED, **keys}]))
    campaign(table(verify=[{**VERIFIED, **keys, "absolute": 0}]))


def test_a_whole_number_as_reference_must_be_met_exactly_and_is_told_so(tmp_path: Path):
    one = start(verify=[{"name": "errors", "regex": r"E=(\S+)", "reference": 0}])
    assert parsed(tmp_path, one, "time 1\nE=0\n").told.failed is None
    failed = parsed(tmp_path, one, "time 1\nE=1\n").told.failed
    assert failed is not None
    assert "errors: found 1, needed 0 exactly" in failed.reason
    near = parsed(tmp_path, one.model_copy(), "time 1\nE=1.0000000000000002e-300\n").told.failed
    assert near is not None
    assert "found 1.0000000000000002e-300, needed 0 exactly" in near.reason


def test_what_must_be_absent_of_a_file_that_is_not_there_is_not_shown_to_be(tmp_path: Path):
    one = start(success={"absent": ["FAILED"], "file": "result.txt"}, verify=[VERIFIED])
    failed = parsed(tmp_path, one, "time 1\n").told.failed
    assert failed is not None
    assert "found no file result.txt, needed no 'FAILED' in result.txt" in failed.reason
    assert parsed(tmp_path, one, "time 1\n", result_txt="").told.failed is None


def test_what_was_written_around_a_program_is_not_searched(tmp_path: Path):
    one = start(
        figure=[{**RATE, "regex": r"(\d+\.?\d*)", "select": "first"}],
        success={"absent": ["(?i)host", "MPICH"]},
        verify=[{"name": "sum", "regex": r"(\d+)"}],
    )
    found = parsed(tmp_path, one, "42.5 done\n")
    assert found.told.failed is None
    assert (found.told.rate, found.fixed["sum"]) == (42.5, "42 5")


def test_a_program_that_was_started_and_printed_nothing_did_start(tmp_path: Path):
    (tmp_path / "stdout.log").write_text(rank_line(0, 1) + f"{MPI_LINE}\n")
    output = Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log")
    silent = start().parse(output)
    assert silent is not None
    assert not silent.told.has_started
    (tmp_path / BEGUN).touch()
    begun = start().parse(output)
    assert begun is not None
    assert begun.told.has_started
    assert begun.told.damage


def test_another_exit_code_than_those_allowed_makes_no_value(tmp_path: Path):
    failed = parsed(tmp_path, start(), "time 1\nABORT\n", exit_code=3).told.failed
    assert failed is not None
    assert failed.reason == "it ended with exit code 3; stdout ends: time 1 | ABORT"
    assert (
        parsed(tmp_path, start(success={**PRINTED, "exit_codes": [0, 3]}), "time 1\n", exit_code=3).told.failed is None
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"interfaces": {"a": {}}}',
        '{"exit_code": "0"}',
        '{"exit_code": 0, "other": 1}',
        '{"arguments_sha256": 3}',
    ],
)
def test_what_was_written_around_a_program_and_is_not_ours_tells_nothing(tmp_path: Path, text: str):
    parsed(tmp_path, start(), "time 1\n")
    (tmp_path / AROUND).write_text(text)
    found = start().parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert found is not None
    assert found.told.damage


def test_a_number_without_a_reference_must_be_the_same_on_every_fabric(tmp_path: Path):
    one = start(verify=[{"name": "energy", "regex": r"E=(\S+)"}])
    assert parsed(tmp_path, one, "time 1\nE=-4.001\n").fixed["energy"] == "-4.001"


def test_a_number_that_is_called_like_a_fact_takes_its_place_of_none(tmp_path: Path):
    one = start(verify=[{"name": "further figures", "regex": r"E=(\S+)"}])
    found = parsed(tmp_path, one, "time 1\nE=-4.001\n").fixed
    assert (found["further figures"], found["number further figures"]) == ("none", "-4.001")


def test_a_file_that_the_command_names_must_be_the_same_unless_its_name_is_the_fabrics(tmp_path: Path):
    one = start(command=["echo", "solve.py", "{interface}.conf", "-v"])
    parsed(tmp_path, one, "time 1\n")
    around = json.loads((tmp_path / AROUND).read_text())
    (tmp_path / AROUND).write_text(json.dumps({**around, "arguments_sha256": ["a1", "b2", ""]}))
    found = one.parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert found is not None
    assert {what: text for what, text in found.fixed.items() if what.startswith("file")} == {
        "file solve.py sha256": "a1"
    }


def test_an_output_of_a_file_is_read_there_and_a_program_that_nobody_saw_end_left_no_whole_record(tmp_path: Path):
    one = start(figure=[{**TIME, "file": "result.txt"}], success={"found": ["fine"], "file": "stderr"})
    assert parsed(tmp_path, one, "", stderr="fine\n", result_txt="time 4\n").told.seconds == (4.0,)
    killed = parsed(tmp_path, start(), "time 4\n", exit_code=0)
    assert not killed.told.damage
    (tmp_path / AROUND).unlink()
    assert parsed(tmp_path, start(), "time 4\n", exit_code=None).told.damage


@pytest.mark.parametrize(
    ("name", "value", "unit", "share"),
    [
        ("scalapack-lu", 361.185, "MFLOP/s", None),
        ("lammps-lj", 5.96824, "s", 0.9469),
        ("hpcc", 0.000650959, "TFLOP/s", None),
        ("qe-au4", 6.62, "s", None),
        ("hpcg-official", 0.486761, "GFLOP/s", None),
        ("pvm-pingpong", 22.344, "MB/s", None),
        ("gromacs", 5.467, "ns/day", None),
    ],
)
def test_the_applications_that_are_shipped_read_what_the_programs_print(
    tmp_path: Path, name: str, value: float, unit: str, share: float | None
):
    one = starts({"kind": "command", "application": name, "ranks": [4]})[-1]
    text = (OUTPUTS / f"{name}.txt").read_text()
    (tmp_path / "HPCG-Benchmark_3.1_2026-11-22_15-30-36.txt").write_text(text)
    found = parsed(tmp_path, one, text, hpccoutf_txt=text, md_log=text)
    assert found.told.failed is None, found.told.failed
    assert (found.figures[0].value, found.figures[0].unit) == (pytest.approx(value), unit)
    assert found.communication_share == (None if share is None else pytest.approx(share))
    assert len(found.figures) == len(one.application.figure)


def test_every_application_and_the_campaign_of_them_can_be_planned():
    for name in shipped():
        found = starts({"kind": "command", "application": name, "ranks": [4]})
        assert all(one.name.startswith(name) for one in found)
        assert found[0].application.get
        assert found[0].application.licence
    assert len(plan_run(read_campaign(EXAMPLES / "campaign-applications.toml"), lab_of(), seed=1).cells) == 3


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("6.62s", 6.62), ("1m 2.50s", 62.5), ("1h23m", 4980), ("1d 2h 3m 4s", 93784), ("0.5h", 1800), ("2m", 120)],
)
def test_a_duration_is_the_sum_of_its_parts(tmp_path: Path, written: str, seconds: float):
    one = start(figure=[{**TIME, "regex": "^took (.*) in all$", "unit": "duration"}])
    found = parsed(tmp_path, one, f"took {written} in all\n")
    assert (found.figures[0].value, found.figures[0].unit) == (pytest.approx(seconds), "s")


@pytest.mark.parametrize("written", ["6.62", "1m x", "soon", "1:02", "-3s"])
def test_what_is_no_duration_is_said(tmp_path: Path, written: str):
    one = start(figure=[{**TIME, "regex": "^took (.*) in all$", "unit": "duration"}])
    failed = parsed(tmp_path, one, f"took {written} in all\n").told.failed
    assert failed is not None
    assert f"matched {written!r}, which is no finite number" in failed.reason


def test_of_a_name_with_an_asterisk_the_one_file_is_read_and_of_two_none(tmp_path: Path):
    one = start(figure=[{**TIME, "file": "result-*.txt"}])
    (tmp_path / "result-1.txt").write_text("time 4\n")
    assert parsed(tmp_path, one, "fine\n").told.seconds == (4.0,)
    (tmp_path / "result-2.txt").write_text("time 5\n")
    failed = parsed(tmp_path, one, "fine\n").told.failed
    assert failed is not None
    assert "in result-*.txt matched nothing, which is empty or not there" in failed.reason


def test_a_name_that_is_neither_ours_nor_a_file_is_answered_with_those_that_are():
    with pytest.raises(UsageError, match=r"application: found 'lamps-lj'.*lammps-lj.*or the path of a TOML file"):
        starts({"kind": "command", "application": "lamps-lj"})


def test_what_an_application_lacks_is_said_with_where_it_is_to_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    gromacs = shipped_table("gromacs")
    lacking = gromacs.lacking({"tpr": str(tmp_path / "no.tpr")})
    assert [one.what for one in lacking] == ["gmx_mpi", str(tmp_path / "no.tpr")]
    (tmp_path / "w.tpr").touch()
    (tmp_path / "gmx_mpi").touch(0o755)
    assert gromacs.lacking({"tpr": str(tmp_path / "w.tpr")}) == ()
