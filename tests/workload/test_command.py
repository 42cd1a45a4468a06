"""Applications described in TOML: what may be said, what is started, what is read from what they wrote."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.specification import Campaign, campaign_of, read_campaign
from fabricbench.campaign.start import start_of
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.record.workload_cells import Measures
from fabricbench.workload.adapter import Place
from fabricbench.workload.application import filled, shipped
from fabricbench.workload.command import CommandTable, shipped_table
from fabricbench.workload.command_start import grid
from fabricbench.workload.registry import WORKLOADS
from support.applications import EXAMPLES, PRINTED, RATE, TIME, campaign, lab_of, start, starts, table
from support.paces import SLOW
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
        (
            {"figure": [{**RATE, "unit": "seconds"}]},
            "'rate' is better higher, and 'seconds' is a time, of which less is better",
        ),
        ({"figure": [{**RATE, "unit": "usec"}]}, "'usec' is a time, of which less is better"),
        (
            {"figure": [{**RATE, "unit": "s/step"}]},
            "'rate' is better higher, and 's/step' is a time for each of something, of which less is better",
        ),
        ({"figure": [{**RATE, "unit": "us/op"}]}, "'us/op' is a time for each of something"),
        ({"figure": [{**RATE, "unit": "days"}]}, "'days' is a time, of which less is better"),
        ({"figure": [{**TIME, "unit": "step/s"}]}, "'step/s' is so much in a time, a rate, of which more is better"),
        ({"figure": [{**TIME, "unit": "ns/day"}]}, "'ns/day' is so much in a time, a rate"),
        ({"figure": [TIME, {**RATE, "unit": "ms"}]}, "'rate' is better higher, and 'ms' is a time"),
        (
            {"figure": [{"name": "n", "regex": "(.)", "unit": "joule"}]},
            r"figure\[1\]\.better: missing, and the unit 'joule' does not tell whether less or more is better",
        ),
        (
            {"environment": {"PATH": "/opt/x/bin:$PATH"}},
            r"environment.PATH: '/opt/x/bin:\$PATH' has \$PATH, and no shell puts a value in its place: every rank",
        ),
        ({"environment": {"A": "${HOME}/x"}}, r"has \$\{HOME\}, and no shell"),
        ({"environment": {"A": "{rankz}"}}, r"\{rankz\} has no value; did you mean 'ranks'"),
        (
            {"files": {"in": "n {rankz}"}},
            r"files.in: \{rankz\} has no value; did you mean 'ranks'\? Braces that are the program's own",
        ),
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
            r"scaling.n: .open\(.x+\.\.\. \(160 characters\): open\(.x+\.\.\. \(158 characters\) is no number",
        ),
        (
            {"scaling": {"n-1": "ranks"}},
            r"workload\[1\].scaling.n-1: found 'n-1', needed a name of letters",
        ),
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
        ({"parameters": {"n": [1]}}, "n: changes nothing"),
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


def test_parameters_that_come_to_the_same_input_are_one_launch_and_the_plan_says_so():
    same = {
        "command": ["echo", "{n}"],
        "parameters": {"n": [10, 11, 20]},
        "scaling": {"n": "floor(n / 10)"},
        "ranks": [2],
    }
    plan = plan_run(campaign(table(**same)), lab_of(), seed=1)
    names = {launch.workload.name for launch in plan.launches if launch.workload}
    assert names == {"tiny-n10.2", "tiny-n20.2"}
    assert "tiny-n11.2 is tiny-n10.2 by other options: it is run once" in plan.notes


def test_one_program_may_be_there_by_two_names():
    assert len(starts(table(ranks=[2]), table(name="other", ranks=[2]))) == 2


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
    with pytest.raises(UsageError, match="scal: changes nothing; did you mean 'scale'"):
        campaign(asked)


def test_a_table_beside_an_application_file_that_is_none_is_refused(tmp_path: Path):
    (tmp_path / "app.toml").write_text('name = "shared"\ncommand = ["echo"]\n')
    (tmp_path / "wrong.toml").write_text('name = "shared"\ncommand = ["echo"]\nenvironment = 3\n')
    with pytest.raises(UsageError, match="parameters: found 3, needed a table"):
        campaign({"kind": "command", "application": str(tmp_path / "app.toml"), "parameters": 3})
    with pytest.raises(UsageError, match=r"environment: found 3 in .*wrong.toml, needed a table"):
        campaign({"kind": "command", "application": str(tmp_path / "wrong.toml")})


def test_plans_count_what_it_usually_takes_and_limits_what_it_may_take():
    usual, generous = start(expect_seconds="60s", usual_seconds="10s"), start(expect_seconds="60s")
    assert (usual.expected_seconds(SLOW), usual.slowness) == (10, 6)
    assert (generous.expected_seconds(SLOW), generous.slowness) == (60, 1)
    assert usual.definition == generous.definition


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


def in_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {in_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(in_toml, value))}]"
    return json.dumps(value)


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
        ({"parameters": {"n": 1, "m": 2}}, {}, "application: app.toml: parameters.m: changes nothing"),
        ({"figure": [{**TIME, "regex": "(a"}]}, {"figure": [{**TIME, "better": 1}]}, r"figure\[1\].better: found 1"),
        ({}, {"expect_seconds": "5x"}, "expect_seconds: '5x' is not a time"),
        ({}, {"usual_seconds": "2min"}, "usual_seconds: found 120 s, more than the 60 s of expect_seconds"),
        ({}, {"parameters": {"m": 2}}, "parameters.m: changes nothing"),
        ({}, {"figure": [{**TIME, "file": "a/b"}]}, r"figure\[1\]\.file: found 'a/b'"),
        ({"figure": [{**TIME, "file": "a/b"}]}, {}, r"application: app.toml: figure\[1\]\.file: found 'a/b'"),
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


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"reference": 1.5},
            r"verify\[1\]\.reference: nothing says how near the result must be, .*; write relative = 1e-6",
        ),
        (
            {"reference": 0, "relative": 1e-6},
            r"verify\[1\]\.relative: of the reference 0 any share is 0; write absolute",
        ),
    ],
)
def test_a_reference_that_nothing_could_meet_but_by_the_last_bit_is_refused(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError, match=said):
        campaign(table(verify=[{**VERIFIED, **keys}]))
    campaign(table(verify=[{**VERIFIED, **keys, "absolute": 0}]))


def test_every_application_and_the_campaign_of_them_can_be_planned():
    for name in shipped():
        found = starts({"kind": "command", "application": name, "ranks": [4]})
        assert all(one.name.startswith(name) for one in found)
        assert found[0].application.get
        assert found[0].application.licence
    assert len(plan_run(read_campaign(EXAMPLES / "campaign-applications.toml"), lab_of(), seed=1).cells) == 3


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


@pytest.mark.parametrize(
    ("unit", "better", "kind"),
    [
        ("s/step", "lower", Measures.WORK_TIME),
        ("days", "lower", Measures.RUN_TIME),
        ("duration", "lower", Measures.RUN_TIME),
        ("ns/day", "higher", Measures.WORK_RATE),
        ("us", "lower", Measures.NETWORK),
        ("MB/s", "higher", Measures.NETWORK),
    ],
)
def test_of_a_unit_that_tells_it_neither_direction_nor_kind_need_be_said(unit: str, better: str, kind: Measures):
    one = start(figure=[{"name": "n", "regex": "(.)", "unit": unit}])
    assert (one.figure.better, one.figure.kind) == (better, kind)


def test_whoever_writes_a_figure_may_say_what_it_measures():
    assert start(figure=[{**TIME, "unit": "us", "measures": "work"}]).figure.kind is Measures.RUN_TIME
    assert start(figure=[{**RATE, "unit": "MB/s", "measures": "work"}]).figure.kind is Measures.WORK_RATE
    assert start(figure=[{**TIME, "measures": "network"}]).figure.kind is Measures.NETWORK


def test_a_time_for_each_of_something_is_kept_in_seconds_and_its_cell_names_the_unit():
    one = start(figure=[{**TIME, "unit": "ms/step"}])
    assert (one.figure.unit, one.figure.told_in, one.figure.better) == ("s", "ms/step", "lower")
    assert one.parameters == {"workload": "tiny", "figure": "time", "unit": "ms/step"}


def test_one_figure_may_be_a_table_as_a_list_of_one():
    text = '[[workload]]\nkind = "command"\nname = "tiny"\ncommand = ["echo"]\n'
    text += '[workload.figure]\nname = "t"\nregex = "(.)"\nunit = "s"\n'
    text += '[workload.verify]\nname = "e"\nregex = "E=(.)"\n'
    (one,) = campaign_of({"campaign": {"blocks": 2}, **tomllib.loads(text)}, "c.toml").workloads
    assert isinstance(one, CommandTable)
    assert ([each.name for each in one.figure], [each.name for each in one.verify]) == (["t"], ["e"])


def test_variables_and_braces_that_are_others_stay():
    files = {"in": "variable x equal ${rankz} { rankz } {x} {dt}", "run.sh": "echo $HOME"}
    one = start(files=files, environment={"LD_LIBRARY_PATH": "$ORIGIN/../lib:$LIB", "COST": "3$"})
    assert one.files() == files


def test_more_threads_than_the_machine_has_processors_are_told_in_the_plan():
    many = len(os.sched_getaffinity(0)) + 62
    plan = plan_run(campaign(table(environment={"OMP_NUM_THREADS": str(many)}, ranks=[2])), lab_of(), seed=1)
    assert any(
        f"application tiny: OMP_NUM_THREADS = {many} for each rank, and this machine has" in one for one in plan.notes
    )
    few = plan_run(campaign(table(environment={"OMP_NUM_THREADS": "1"}, ranks=[2])), lab_of(), seed=1)
    assert not any("OMP_NUM_THREADS" in one for one in few.notes)
