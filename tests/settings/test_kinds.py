"""Each kind of setting: what a condition asks of it, how it is read, the exact command that writes it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from fabricbench.errors import UsageError
from fabricbench.settings import KINDS, HostSettings, writes_of
from fabricbench.settings.setting import CannotSetError, Setting, SettingsHost
from fabricbench.testbed.model import Fabric

ETH = Fabric(name="eth", interface="eth0", subnet="10.1.0.0/24")


def host(root: Path, files: dict[str, str], ethtool: object = None) -> SettingsHost:
    """A host whose /proc and /sys are in a folder, and whose driver is a fake."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    made = SettingsHost(root)
    made._ethtool = ethtool
    return made


def lines(table: HostSettings, fabric: Fabric = ETH) -> list[str]:
    return [write.words(with_sudo=False) for write in writes_of(table.settings_on(fabric))]


def test_every_table_becomes_the_command_that_people_would_type():
    table = HostSettings.model_validate(
        {
            "mtu": 9000,
            "coalesce": {"adaptive-rx": False, "rx-usecs": 50},
            "offload": {"gro": False, "tx-nocache-copy": True},
            "ring": {"rx": 4096},
            "sysctl": {"net.core.busy_poll": 50, "net.ipv4.tcp_rmem": "4096\t131072  6291456"},
            "governor": "performance",
            "custom": [{"name": "thp", "read": ["cat", "/x"], "write": ["tee-it", "{value}", "/x"], "value": "never"}],
        }
    )
    assert lines(table) == [
        "ethtool -G eth0 rx 4096",
        "ip link set dev eth0 mtu 9000",
        "ethtool -K eth0 rx-gro off tx-nocache-copy on",
        "ethtool -C eth0 adaptive-rx off rx-usecs 50",
        "sysctl -w net.core.busy_poll=50",
        "sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'",
        "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        "tee-it never /x",
    ]
    by_subnet = Fabric(name="ib", subnet="10.2.0.0/24")
    assert lines(HostSettings(mtu=2044), by_subnet) == ["ip link set dev DEV mtu 2044"]
    with_sudo = next(writes_of(HostSettings(governor="powersave").settings_on(ETH))).words(with_sudo=True)
    assert with_sudo == "echo powersave | sudo -n tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"coalesce": {"rx-usec": 5}}, "did you mean 'rx-usecs'?"),
        ({"coalesce": {"adaptive-rx": 1}}, "adaptive-rx: found 1, needed true or false"),
        ({"coalesce": {"rx-usecs": True}}, "rx-usecs: found true, needed a whole number"),
        ({"offload": {"gr0": True}}, "did you mean 'gro'?"),
        ({"ring": {"rxx": 5}}, "did you mean 'rx'?"),
        ({"sysctl": {"net.core.busy_pol": 5}}, "did you mean 'net.core.busy_poll'?"),
        ({"sysctl": {"busy": 5}}, "is no name of a sysctl"),
        ({"sysctl": {"net.core.busy_poll": True}}, "needed a number or a text"),
        ({"governor": "very fast"}, "governor"),
        ({"mtu": 20}, "mtu"),
        ({"custom": [{"name": "a", "read": ["x"], "write": ["x"], "value": "1"}]}, "no {value} in it"),
        ({"custom": [{"name": "a", "read": [], "write": ["{value}"], "value": "1"}]}, "read"),
    ],
)
def test_a_slip_is_named_before_any_node_is_asked(table: dict[str, object], words: str):
    with pytest.raises(ValidationError) as caught:
        HostSettings.model_validate(table)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "name", ["net.ipv4.tcp_wmem", "net.ipv4.tcp_fastopen", "net.ipv6.conf.all.disable_ipv6", "vm.drop"]
)
def test_a_true_name_that_is_like_a_usual_one_is_no_slip(name: str):
    assert HostSettings(sysctl={name: 1}).sysctl == {name: 1}


def test_a_fabric_without_an_interface_has_no_mtu_to_set():
    with pytest.raises(UsageError, match="has no interface, of which the condition would set mtu"):
        HostSettings(mtu=9000).settings_on(Fabric(name="shared-memory"))
    assert HostSettings(sysctl={"vm.swappiness": 1}).settings_on(Fabric(name="shared-memory"))


def read(setting: Setting, on: SettingsHost) -> str:
    return KINDS[setting.kind].read(setting, on)


def one(table: HostSettings) -> Setting:
    (found,) = table.settings_on(ETH)
    return found


def test_what_an_interface_has_is_read_as_it_is_written(tmp_path: Path):
    features = {
        "rx-gro": SimpleNamespace(enable=True, available=True),
        "rx-lro": SimpleNamespace(enable=False, available=False),
    }
    driver = SimpleNamespace(
        get_coalesce=lambda _: {"rx_coalesce_usecs": 3, "use_adaptive_rx_coalesce": 1},
        get_rings=lambda _: SimpleNamespace(rx=512, tx=256),
        get_features=lambda _: SimpleNamespace(features=features),
    )
    node = host(tmp_path, {"sys/class/net/eth0/mtu": "1500\n"}, driver)
    assert read(one(HostSettings(mtu=9000)), node) == "1500"
    assert read(one(HostSettings(coalesce={"rx-usecs": 50})), node) == "3"
    assert read(one(HostSettings(coalesce={"adaptive-rx": False})), node) == "on"
    assert read(one(HostSettings(ring={"tx": 512})), node) == "256"
    assert read(one(HostSettings(offload={"gro": False})), node) == "on"
    for table, words in (
        ({"offload": {"lro": True}}, "rx-lro of eth0 is fixed"),
        ({"offload": {"no-such-thing-at-all": True}}, "eth0 has no offload no-such-thing-at-all"),
        ({"ring": {"rx-mini": 5}}, "eth0 has no ring rx-mini"),
    ):
        with pytest.raises(CannotSetError, match=words):
            read(one(HostSettings.model_validate(table)), node)
    with pytest.raises(CannotSetError, match="no interface eth0"):
        read(one(HostSettings(mtu=9000)), host(tmp_path / "other", {}))


def test_a_driver_that_has_no_coalescing_is_told_as_such(tmp_path: Path):
    def refuses(_: str) -> None:
        raise OSError("not supported")

    node = host(tmp_path, {"sys/class/net/eth0/mtu": "1500"}, SimpleNamespace(get_coalesce=refuses))
    with pytest.raises(CannotSetError, match=r"eth0 has no coalesce \(not supported\)"):
        read(one(HostSettings(coalesce={"rx-usecs": 50})), node)


def test_a_sysctl_is_read_with_single_blanks_and_one_that_is_not_there_is_named(tmp_path: Path):
    files = {
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/sys/net/ipv4/conf/eth0.100/rp_filter": "2\n",
    }
    node = host(tmp_path, files)
    assert read(one(HostSettings(sysctl={"net.ipv4.tcp_rmem": "1 2 3"})), node) == "4096 131072 6291456"
    assert read(one(HostSettings(sysctl={"net.ipv4.conf.eth0/100.rp_filter": 0})), node) == "2"
    with pytest.raises(CannotSetError, match=r"no sysctl net\.core\.busy_poll"):
        read(one(HostSettings(sysctl={"net.core.busy_poll": 50})), node)


def test_governors_that_differ_between_processors_are_restored_as_they_were(tmp_path: Path):
    cpus = "sys/devices/system/cpu"
    files = {
        f"{cpus}/cpu{cpu}/cpufreq/scaling_governor": text
        for cpu, text in enumerate(["powersave", "performance", "powersave"])
    }
    node = host(tmp_path, {**files, f"{cpus}/cpu0/cpufreq/scaling_available_governors": "performance powersave\n"})
    wished = one(HostSettings(governor="performance"))
    was = read(wished, node)
    assert was == "performance 1, powersave 0 2"
    path = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    assert [(write.stdin, write.tokens[1:]) for write in writes_of([wished.with_value(was)])] == [
        ("performance", (path.format(1),)),
        ("powersave", (path.format(0), path.format(2))),
    ]
    with pytest.raises(CannotSetError, match="no governor turbo"):
        read(one(HostSettings(governor="turbo")), node)
    with pytest.raises(CannotSetError, match="no frequency governor"):
        read(wished, host(tmp_path / "virtual", {}))
