"""`--submit` as a shell sees it: the script that is shown, what is refused before anything is submitted, coming back."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from support.calling import Call
from support.scripts import script
from support.tiny_campaign import tiny_campaign

TESTBED = """
[testbed]
name = "cluster"
launcher = "slurm"

[slurm]
nodes = 3

[[fabric]]
name = "ib"
interface = "ib0"

[[fabric]]
name = "eth"
interface = "eth0"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user on a login node stands, with a campaign and a testbed; sbatch and squeue are scripts."""
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_NAME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    (tmp_path / "tiny.toml").write_text(tiny_campaign(("tcp",), blocks=2))
    (tmp_path / "cluster.toml").write_text(TESTBED)
    monkeypatch.chdir(tmp_path)
    script(tmp_path / "bin" / "sbatch", "echo 7")
    script(tmp_path / "bin" / "scontrol", "echo ExitCode=0:0 Reason=None")
    script(tmp_path / "bin" / "squeue", "echo 'CANCELLED|None|N/A|'")
    return tmp_path


def asked(*options: str) -> tuple[str, ...]:
    return ("run", "tiny.toml", "--testbed", "cluster.toml", "-o", "a run", "--submit", *options)


def command_in(text: str) -> list[str]:
    """What a batch script starts."""
    return shlex.split(text.strip().splitlines()[-1].removeprefix("exec "))


def test_the_script_is_shown_with_the_command_as_it_was_typed_and_nothing_is_written(folder: Path, fabricbench: Call):
    code, text, _ = fabricbench(*asked("--dry-run", "--seed", "3", "--final", "--sbatch-option", "--mem=0"))
    assert code == 0
    program, *rest = command_in(text)
    assert Path(program).is_absolute()
    assert rest == ["run", "tiny.toml", "--testbed", "cluster.toml", "--seed", "3", "--final", "-o", f"{folder}/a run"]
    assert "#SBATCH --nodes=3\n" in text
    assert "#SBATCH --mem=0\n" in text
    assert f"#SBATCH --chdir={folder}\n" in text
    assert not (folder / "a run").exists()


def test_plan_shows_it_as_well(folder: Path, fabricbench: Call):
    assert folder.is_dir()
    code, text, _ = fabricbench(
        "plan", "tiny.toml", "--testbed", "cluster.toml", "--blocks", "4", "--gate", "5%", "--submit"
    )
    assert code == 0
    assert command_in(text)[1:] == ["run", "tiny.toml", "--testbed", "cluster.toml", "--blocks", "4", "-o", "RUNDIR"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--preflight-only",), "--submit and --preflight-only exclude each other"),
        (("--nodes", "4"), "--sbatch-option --nodes=4"),
        (("--sbatch-option", "a\nb"), "is no option of sbatch"),
        (("--blocks", "0"), "blocks"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_submitted(
    folder: Path, fabricbench: Call, arguments: tuple[str, ...], expected: str
):
    code, _, said = fabricbench(*asked(*arguments))
    assert code == 2
    assert expected in said
    assert not (folder / "a run" / "submission.json").exists()


def test_options_of_a_submission_need_one(folder: Path, fabricbench: Call):
    assert folder.is_dir()
    for options in (("--dry-run",), ("--sbatch-option", "--mem=0")):
        code, _, said = fabricbench("run", "tiny.toml", "--testbed", "cluster.toml", "-o", "a", *options)
        assert code == 2
        assert "belong to --submit" in said
    assert fabricbench("resume", "a", "--sbatch-option", "--mem=0")[0] == 2


def test_a_testbed_of_another_launcher_is_not_submitted(folder: Path, fabricbench: Call):
    code, _, said = fabricbench("run", "tiny.toml", "--testbed", "local", "-o", "a", "--submit")
    assert (code, "needs a testbed file" in said) == (2, True)
    (folder / "cluster.toml").write_text(
        TESTBED.replace('"slurm"', '"ssh"\nnodes = "c1"').replace("[slurm]\nnodes = 3", "")
    )
    code, _, said = fabricbench(*asked())
    assert (code, 'launcher is not "slurm"' in said) == (2, True)


def test_a_job_that_never_began_is_submitted_anew_by_the_same_command_or_a_corrected_one(
    folder: Path, fabricbench: Call
):
    code, _, said = fabricbench(*asked())
    assert code == 4
    assert "submitted" in said
    assert "job 7 ended before it began (CANCELLED)" in said
    code, _, said = fabricbench("resume", "a run", "--submit")
    assert code == 2
    assert "submit it anew: fabricbench run tiny.toml" in said
    script(folder / "bin" / "sbatch", "echo 8")
    code, _, said = fabricbench(*asked("--blocks", "3"))
    assert code == 4
    assert "as job 8" in said
    kept = json.loads((folder / "a run" / "submission.json").read_text())
    assert [job["number"] for job in kept["jobs"]] == ["7", "8"]
    assert "--blocks" in kept["command"]


def test_another_command_does_not_take_a_directory_whose_job_is_there(folder: Path, fabricbench: Call):
    fabricbench(*asked())
    script(folder / "bin" / "squeue", "echo 'RUNNING|None|N/A|c[1-3]'")
    code, _, said = fabricbench(*asked("--blocks", "3"))
    assert code == 2
    assert "holds another submitted run: fabricbench run tiny.toml --testbed cluster.toml -o" in said
    code, _, said = fabricbench("resume", "a run", "--blocks", "9")
    assert code == 2
    assert "job 7 measures this run now (RUNNING)" in said


def test_what_sbatch_refuses_leaves_the_directory_to_the_next_try(folder: Path, fabricbench: Call):
    script(folder / "bin" / "sbatch", "echo 'sbatch: error: invalid account' >&2; exit 1")
    code, _, said = fabricbench(*asked())
    assert code == 3
    assert "invalid account" in said
    script(folder / "bin" / "sbatch", "echo 9")
    code, _, said = fabricbench(*asked("--blocks", "3"))
    assert "as job 9" in said
