"""Settings of nodes are brought, read back and restored, whatever happens to the run or to a node.

The nodes are folders of this machine, a setting is a file in one: what writes is a command of the user's own (`custom`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabricbench.cli import restore
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab.process import ProcessIdentity, identify
from fabricbench.settings import HostSettings, ledger
from fabricbench.settings import agent as agent_module
from fabricbench.settings import session as session_module
from fabricbench.settings.agent import AgentRequest, node_identity, obey
from fabricbench.settings.restoring import Restored, restore_leftovers
from fabricbench.settings.session import SettingsNotHeldError, Sides, varied_settings
from fabricbench.settings.setting import SettingsHost
from fabricbench.settings.turn import turn
from fabricbench.testbed.model import Fabric
from support.processes import FABRICBENCH
from support.settings import FABRIC, NODES, SIDES, Cluster

ENDED = ProcessIdentity(pid=1, start_ticks=10**12, boot_id="none")


def session(cluster: Cluster, notes: list[str] | None = None, sides: Sides = SIDES):
    return varied_settings(
        cluster.in_node, NODES, sides, run=Path("/runs/today"), notice=(notes if notes is not None else []).append
    )


@pytest.mark.slow
def test_each_side_has_its_own_values_and_the_original_ones_of_what_it_does_not_mention(cluster: Cluster):
    before = cluster.state()
    with session(cluster) as settings:
        assert settings is not None
        seen = {}
        for side in ("both", "one", "plain"):
            settings.bring(side)
            seen[side] = cluster.state()
        held, wrong = settings.look("plain")
    assert seen == {
        "both": {"a.x": "2", "a.y": "3", "b.x": "2", "b.y": "3"},
        "one": {**before, "a.x": "1", "b.x": "1"},
        "plain": before,
    }
    assert wrong == ()
    assert [(one.setting, one.wished, one.before, one.after) for one in held] == [
        ("x", "", {"0": "a,b"}, {"0": "a,b"}),
        ("y", "", {"of a": "a", "of b": "b"}, {"of a": "a", "of b": "b"}),
    ]
    assert cluster.state() == before
    assert not ledger.has_entries()


def test_nothing_is_asked_and_nothing_is_noted_where_no_side_sets_anything(tmp_path: Path):
    def never(_node: str, _tokens: Sequence[str]) -> list[str]:
        raise AssertionError("a node was asked")

    with varied_settings(never, NODES, {"a": (), "b": ()}, run=tmp_path, notice=print) as settings:
        assert settings is None


@pytest.mark.slow
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_settings_are_restored_after_a_failure_and_after_ctrl_c(cluster: Cluster, error: type[BaseException]):
    before = cluster.state()

    def fail() -> None:
        with session(cluster) as settings:
            assert settings is not None
            settings.bring("both")
            raise error

    with pytest.raises(error):
        fail()
    assert cluster.state() == before
    assert not ledger.has_entries()


def test_the_ledger_is_on_the_disk_before_anything_is_written(cluster: Cluster):
    with session(cluster) as settings:
        assert settings is not None
        (entry,) = ledger.entries().values()
        assert entry is not None
        assert [(node.name, node.originals) for node in entry.nodes] == [
            ("a", {"x": "0", "y": "of a"}),
            ("b", {"x": "0", "y": "of b"}),
        ]
        assert entry.is_live


@pytest.mark.slow
def test_a_setting_that_is_not_taken_or_that_strays_is_told_with_its_node(cluster: Cluster):
    with session(cluster) as settings:
        assert settings is not None
        (cluster.root / "b/stuck").touch()
        with pytest.raises(SettingsNotHeldError, match="the settings of one do not hold: b: x is 0, not 1"):
            settings.bring("one")
        (cluster.root / "b/stuck").unlink()
        settings.bring("one")
        (cluster.root / "a/x").write_text("7")
        held, wrong = settings.look("one")
        assert wrong == ("after the launch a setting was not what it had to be: a: x is 7, not 1",)
        assert held[0].before == {"1": "a,b"}
        assert held[0].after == {"7": "a", "1": "b"}
        (cluster.root / "b/down").touch()
        with pytest.raises(SettingsNotHeldError, match="b: it did not answer: no route to b"):
            settings.bring("both")
        (cluster.root / "b/down").unlink()


def test_a_node_that_lacks_something_refuses_the_run_before_anything_is_written(cluster: Cluster):
    sides = {"one": HostSettings(mtu=9000, sysctl={"net.no.such": 1}).settings_on(Fabric(name="x", interface="nope0"))}
    with pytest.raises(EnvironmentLacks) as caught, session(cluster, sides=sides):
        pass
    for words in ("a,b: mtu of nope0: found no interface nope0", "found no sysctl net.no.such", "what to do: "):
        assert words in caught.value.message
    assert not ledger.has_entries()


@pytest.mark.slow
def test_two_runs_do_not_vary_settings_on_one_node_at_a_time(cluster: Cluster):
    with session(cluster) as settings:
        assert settings is not None
        settings.bring("one")
        with pytest.raises(EnvironmentLacks, match="another run varies settings on a,b: process"), session(cluster):
            pass
        assert cluster.state()["a.x"] == "1"
        found, alive = restore_leftovers()  # a live run's own
        assert (found, alive) == ([], ["/runs/today"])


KILLED = """
import sys, os, signal
sys.path[:0] = {path!r}
from pathlib import Path
from settings.test_restoring import Cluster, SIDES, session
import settings.test_restoring as here
cluster = Cluster.__new__(Cluster)
cluster.root = Path({root!r})
with session(cluster) as varied:
    varied.bring("both")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_run(cluster: Cluster) -> None:
    code = KILLED.format(path=[str(Path(__file__).parents[1])], root=str(cluster.root))
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert cluster.state() == {"a.x": "2", "a.y": "3", "b.x": "2", "b.y": "3"}


def leave_settings(cluster: Cluster) -> None:
    """As a run leaves them that was killed: nothing is restored, and its process is gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "restore_entry", lambda *_, **__: Restored("/runs/today"))
        with session(cluster) as settings:
            assert settings is not None
            settings.bring("both")
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    ledger.write(path, entry.model_copy(update={"owner": ENDED}))


def fabricbench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([FABRICBENCH, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_after_a_kill_the_next_command_of_any_kind_restores(cluster: Cluster):
    before = cluster.state()
    kill_a_run(cluster)
    assert fabricbench("version").stderr == "", "who asks what this is waits for no node"
    assert fabricbench("list", "--help").stderr == ""
    done = fabricbench("list")
    assert done.returncode == 0
    assert "settings that /runs/today left on a,b are restored" in done.stderr
    assert cluster.state() == before
    assert not ledger.has_entries()
    assert "restored" not in fabricbench("list").stderr


@pytest.mark.slow
def test_many_nodes_that_are_off_are_one_deadline_and_one_line(cluster: Cluster):
    leave_settings(cluster)
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    off = tuple(entry.nodes[0].model_copy(update={"name": f"n{i}", "restore": ("sleep", "60")}) for i in range(200))
    ledger.write(path, entry.model_copy(update={"nodes": off}))
    begin = time.monotonic()
    (found,), _ = restore_leftovers(waits=False, each_s=60.0, all_s=0.5)
    assert time.monotonic() - begin < 20.0, "not 60 s, and not half a second a node"
    assert len(found.failed) == 200
    why = dict.fromkeys(found.failed, "no answer")
    assert list(restore._lines([Restored("/r", failed=why)])) == [
        "settings that /r left on n[0-199] are not restored: no answer; `fabricbench testbed restore` tries again"
    ]


@pytest.mark.slow
def test_a_node_that_cannot_be_reached_keeps_its_entry_is_named_and_is_tried_again(cluster: Cluster):
    before = cluster.state()
    leave_settings(cluster)
    (cluster.root / "b/down").touch()
    done = fabricbench("testbed", "restore")
    assert done.returncode == 3
    assert "left on a are restored" in done.stderr
    assert "left on b are not restored: no route to b" in done.stderr
    assert cluster.state() == {**before, "b.x": "2", "b.y": "3"}
    (cluster.root / "b/down").unlink()
    # The originals of b are known to nobody but the ledger.
    with pytest.raises(EnvironmentLacks, match="b still has the settings of /runs/today"), session(cluster):
        pass
    done = fabricbench("testbed", "restore")
    assert done.returncode == 0, done.stderr
    assert cluster.state() == before
    assert fabricbench("testbed", "restore").stderr == "nothing is to be restored\n"


@pytest.mark.slow
def test_a_node_that_is_given_up_is_told_with_what_it_was(cluster: Cluster):
    leave_settings(cluster)
    (cluster.root / "b/down").touch()
    done = fabricbench("testbed", "restore", "--forget")
    assert done.returncode == 0
    assert "b of /runs/today is forgotten; it was x = 0, y = of b" in done.stderr
    assert not ledger.has_entries()


def forget_that_they_may_last() -> None:
    """As for an MTU, say, which ends with its node; a setting of the user's own may not."""
    for path, entry in ledger.entries().items():
        assert entry is not None
        nodes = tuple(node.model_copy(update={"lasting": ()}) for node in entry.nodes)
        ledger.write(path, entry.model_copy(update={"nodes": nodes}))


@pytest.mark.slow
def test_a_setting_of_the_users_own_is_kept_until_it_is_read_back_though_its_node_was_started_anew(cluster: Cluster):
    before = cluster.state()
    leave_settings(cluster)
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    text = path.read_text().replace(node_identity(SettingsHost()), "another boot")
    path.write_text(text.replace(json.dumps(node_identity(SettingsHost()))[1:-1], "another boot"))
    (found,), _ = restore_leftovers()
    assert found.failed.keys() == set(NODES)
    assert found.failed["a"].startswith(
        "it was started anew, but x is 2, it was 0; y is 3, it was of a; set it back by"
    )
    for name, content in before.items():  # somebody sets them back
        (cluster.root / name.replace(".", "/")).write_text(content)
    (found,), _ = restore_leftovers()
    assert (found.gone, found.failed) == (NODES, {})
    assert not ledger.has_entries()


def test_a_setting_of_the_users_own_is_not_forgotten_with_its_lab(cluster: Cluster):
    leave_settings(cluster)
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    ledger.write(
        path,
        entry.model_copy(
            update={"nodes": tuple(node.model_copy(update={"lives_with": ENDED}) for node in entry.nodes)}
        ),
    )
    (cluster.root / "a/down").touch()
    (found,), _ = restore_leftovers()
    assert (found.nodes, found.gone, found.failed) == (("b",), (), {"a": "no route to a"})


@pytest.mark.parametrize("name", ["vm.swappiness", "kernel.numa_balancing"])
def test_a_lab_refuses_what_its_nodes_share_with_the_machine(cluster: Cluster, name: str):
    sides = {"one": HostSettings(sysctl={name: 1}, governor="performance").settings_on(FABRIC)}
    mine = identify(os.getpid())
    with (
        pytest.raises(UsageError, match=f"found {name}, governor in a .*condition.* for a lab"),
        varied_settings(cluster.in_node, NODES, sides, run=Path("/r"), notice=print, lives_with=mine),
    ):
        pass
    assert not ledger.has_entries()


@pytest.mark.slow
def test_nodes_that_a_slurm_job_reached_are_asked_only_within_a_job_that_has_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    before = cluster.state()
    leave_settings(cluster)
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    ledger.write(path, entry.model_copy(update={"job": "17"}))
    (found,), _ = restore_leftovers()
    for node in NODES:
        assert "`salloc --nodelist=a,b fabricbench testbed restore`" in found.failed[node]
    assert cluster.state() != before
    monkeypatch.setenv("SLURM_JOB_NODELIST", "b,other")
    (found,), _ = restore_leftovers()
    assert (found.nodes, set(found.failed)) == (("b",), {"a"})
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a")
    (found,), _ = restore_leftovers()
    assert (found.nodes, found.failed) == (("a",), {})
    assert cluster.state() == before


def test_a_node_that_was_started_anew_is_left_alone(cluster: Cluster):
    leave_settings(cluster)
    forget_that_they_may_last()
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    text = path.read_text().replace(node_identity(SettingsHost()), "another boot")
    path.write_text(text.replace(json.dumps(node_identity(SettingsHost()))[1:-1], "another boot"))
    found, _ = restore_leftovers()
    assert found[0].gone == NODES
    assert cluster.state()["a.x"] == "2"
    assert not ledger.has_entries()


def test_an_emulated_node_that_ended_has_nothing_to_restore(cluster: Cluster):
    leave_settings(cluster)
    forget_that_they_may_last()
    ((path, entry),) = ledger.entries().items()
    assert entry is not None
    nodes = tuple(node.model_copy(update={"lives_with": ENDED}) for node in entry.nodes)
    ledger.write(path, entry.model_copy(update={"nodes": nodes}))
    found, _ = restore_leftovers()
    assert (found[0].gone, found[0].nodes, found[0].failed) == (NODES, (), {})
    assert not ledger.has_entries()


@pytest.mark.slow
def test_what_a_run_could_not_restore_itself_is_restored_though_its_process_goes_on(cluster: Cluster):
    before, notes = cluster.state(), []
    with session(cluster, notes) as settings:
        assert settings is not None
        settings.bring("one")
        (cluster.root / "b/down").touch()
    assert notes == [
        "settings of b are not restored: no route to b; `fabricbench testbed restore` tries again",
    ]
    (cluster.root / "b/down").unlink()
    found, alive = restore_leftovers()
    assert (found[0].nodes, alive) == (("b",), [])
    assert cluster.state() == before


@pytest.mark.slow
def test_restoring_waits_for_an_agent_that_outlived_its_run_and_keeps_the_entry_where_it_does_not_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    before = cluster.state()
    leave_settings(cluster)
    monkeypatch.setenv("PLACE", str(cluster.root / "a"))
    monkeypatch.setattr(agent_module, "RESTORING_WAIT_SECONDS", 0.1)
    ((_, entry),) = ledger.entries().items()
    assert entry is not None
    restoring = AgentRequest.model_validate_json(entry.nodes[0].restore[-1])
    with turn(5.0):  # an agent is at work: what is read now is not what will be
        told = obey(restoring, SettingsHost())
        assert "another command of this user is still writing settings there" in told.refused
        assert told.written == ()
        assert restore_impatiently().failed.keys() == set(NODES)
        assert cluster.state() != before
        assert ledger.has_entries()
    assert restore_impatiently().nodes == NODES
    assert cluster.state() == before


def restore_impatiently() -> Restored:
    """Restore with the agents' patience cut short, which is a constant of their own processes."""
    patience = (
        "import fabricbench.settings.agent as a, sys; a.RESTORING_WAIT_SECONDS = 0.1; print(a.main(sys.argv[1:]))"
    )
    for path, entry in ledger.entries().items():
        assert entry is not None
        nodes = tuple(
            node.model_copy(update={"restore": (*node.restore[:-3], "-c", patience, node.restore[-1])})
            if node.restore[-3] == "-m"
            else node
            for node in entry.nodes
        )
        ledger.write(path, entry.model_copy(update={"nodes": nodes}))
    ((found,), _) = restore_leftovers()
    return found


def test_originals_are_read_while_nobody_else_restores_or_begins(cluster: Cluster):
    free: list[bool] = []

    def in_node(node: str, tokens: Sequence[str]) -> list[str]:
        with ledger.locked(waits=False) as is_held:
            free.append(is_held)
        return cluster.in_node(node, tokens)

    with varied_settings(in_node, NODES, SIDES, run=Path("/runs/today"), notice=print):
        pass
    assert free
    assert not any(free)


@pytest.mark.slow
def test_an_entry_that_cannot_be_read_is_named_and_kept(cluster: Cluster):
    path = ledger.new_path()
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    done = fabricbench("testbed", "restore")
    assert done.returncode == 3
    assert f"settings that {path} left on its nodes are not restored: the entry cannot be read" in done.stderr
    with pytest.raises(EnvironmentLacks, match="cannot be read"), session(cluster):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_an_entry_that_somebody_else_has_written_restores_nothing(cluster: Cluster):
    assert cluster.state()  # it has a state directory of its own
    with ledger.locked():
        path = ledger.new_path()
        node = ledger.NodeEntry(name="a", identity="x", restore=("touch", str(path.parent / "started")), originals={})
        ledger.write(path, ledger.SettingsEntry(owner=ENDED, run="run", nodes=(node,)))
        assert ledger.entries()[path] is not None
        os.chown(path, 65534, 65534)
        assert ledger.entries() == {path: None}
    assert ledger.folder().stat().st_mode & 0o777 == 0o700
    assert not (path.parent / "started").exists()
    path.unlink()
