from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.model import Layer
from fabricbench.testbed.model import LauncherKind, Testbed
from fabricbench.testbed.reading import read_testbed

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))

GOOD = """
[testbed]
name = "rack-7"
launcher = "ssh"
nodes = "node[001-003],login"

[[fabric]]
name = "gigabit"
interface = "eth0"
line_rate = "1Gbit/s"
price_per_node = 40

[[fabric]]
name = "myrinet"
subnet = "10.2.0.0/24"
mtu = "9000"
wire = { line_rate_bit_s = "1.28Gbit/s", overhead_bytes = 12, minimum_bytes = 0 }

[[fabric]]
name = "memory"

[[node]]
name = "login"
addresses = { myrinet = "10.2.0.99" }
"""


def read(tmp_path: Path, text: str) -> Testbed:
    path = tmp_path / "testbed.toml"
    path.write_text(text)
    return read_testbed(path)


def problem(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert caught.value.hint
    assert "testbed.toml" in caught.value.message
    return caught.value.message


CONDITIONS = """
[testbed]
name = "rack-7"
nodes = "node[001-002]"

[[fabric]]
name = "eager-16k"
condition_of = "myrinet"
interface = "myri0"
mpi_environment = { UCX_RNDV_THRESH = "16384" }

[[fabric]]
name = "eager-64k"
condition_of = "myrinet"
interface = "myri0"
mpi_environment = { UCX_RNDV_THRESH = "65536" }
"""


def test_two_fabrics_over_one_interface_may_be_conditions_of_one_thing(tmp_path: Path):
    before, after = read(tmp_path, CONDITIONS).fabrics
    assert (before.interface, before.condition_of) == (after.interface, after.condition_of) == ("myri0", "myrinet")
    assert before.mpi_environment != after.mpi_environment


def test_a_condition_without_another_is_refused(tmp_path: Path):
    told = problem(tmp_path, CONDITIONS.replace('condition_of = "myrinet"', 'condition_of = "sci"', 1))
    assert "'eager-16k' is the only condition_of = 'sci'" in told


def test_a_testbed_file_becomes_a_testbed(tmp_path: Path):
    testbed = read(tmp_path, GOOD)
    assert [node.name for node in testbed.nodes] == ["node001", "node002", "node003", "login"]
    assert testbed.launcher is LauncherKind.SSH
    assert testbed.nodes[-1].addresses == {"myrinet": IPv4Address("10.2.0.99")}
    gigabit, myrinet, memory = testbed.fabrics
    assert gigabit.wire is not None
    assert gigabit.wire.line_rate_bit_s == 1e9
    assert (myrinet.mtu, myrinet.wire and myrinet.wire.line_rate_bit_s) == (9000, 1.28e9)
    assert memory.layers == (Layer.MEMORY, Layer.MPI)


def test_nodes_may_be_a_list_and_keep_its_order(tmp_path: Path):
    testbed = read(tmp_path, GOOD.replace('"node[001-003],login"', '["login", "b[1-2]", "a"]'))
    assert [node.name for node in testbed.nodes] == ["login", "b1", "b2", "a"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('interface = "eth0"', 'iterface = "eth0"', "fabric[1].iterface: unknown key; did you mean 'interface'?"),
        ('launcher = "ssh"', 'launcher = "shh"', "testbed.launcher: found 'shh', needed one of lab, local, ssh"),
        ('"1Gbit/s"', '"1 furlong"', "fabric[1].line_rate: '1 furlong' is not a rate"),
        ('"1.28Gbit/s"', '"9000"', "fabric[2].wire.line_rate_bit_s: '9000' is not a rate"),
        ("overhead_bytes", "overhead", "fabric[2].wire.overhead: unknown key; did you mean 'overhead_bytes'?"),
        (
            'name = "memory"',
            'name = "gigabit"',
            "fabric: gigabit is named twice: give each [[fabric]] a `name` of its own",
        ),
        ("node[001-003],login", "login,node[001-", "testbed.nodes: 'login,node[001-' is not a node set"),
        ('"node[001-003],login"', '["n0", "n0", "login"]', "testbed.nodes: n0 is named twice: name each node once"),
        (
            '"node[001-003],login"',
            '["login", "root@node2"]',
            "testbed.nodes: 'root@node2' names a user: write the node alone",
        ),
        ('"node[001-003],login"', '"@all"', "names a node group"),
        ('"node[001-003],login"', "4", "testbed.nodes: found 4, needed a node set"),
        ('name = "rack-7"\n', "", "testbed.name: missing, it is required"),
        ('name = "memory"', 'name = "memory"\nlayers = ["tcp"]', "layer tcp needs an interface or a subnet"),
        ('subnet = "10.2.0.0/24"', 'subnet = "10.2.0.0/99"', "fabric[2].subnet: "),
        (
            'subnet = "10.2.0.0/24"',
            'subnet = "10.2.0.0/24"\nrdma = { gid_index = 300 }',
            "rdma.gid_index is 300, and libibverbs takes 0 to 255",
        ),
        ('name = "login"', 'name = "logout"', "[[node]] 'logout' is not one of testbed.nodes"),
        ("myrinet = ", "myrient = ", "has an address on myrient, which is no fabric"),
        ('launcher = "ssh"', 'launcher = "lab"', "go together"),
        ("price_per_node = 40", "price_per_node = -1", "fabric[1].price_per_node: found -1, needed greater than"),
        ('[testbed]\nname = "rack-7"', "[testbed\nname", "is not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_key_and_what_is_needed(tmp_path: Path, old: str, new: str, expected: str):
    assert old in GOOD
    assert expected in problem(tmp_path, GOOD.replace(old, new, 1))


def test_all_mistakes_are_told_at_once(tmp_path: Path):
    text = GOOD.replace("interface", "iface").replace("mtu", "mtus")
    message = problem(tmp_path, text)
    assert "2 problems" in message
    assert "iface" in message
    assert "mtus" in message


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no file"):
        read_testbed(tmp_path / "nothing.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        read_testbed(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_testbed(tmp_path / "binary.toml")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_testbed_can_be_read(path: Path):
    if "[testbed]" in path.read_text():
        assert read_testbed(path).fabrics


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "[[node]]",
            "[node]",
            "needed a list: write [[node]], not [node]",
        ),
        ('"node[001-003],login"', "[]", "testbed.nodes: found [], needed at least one entry"),
        ('name = "rack-7"', "name = 7", "testbed.name: found 7, needed text in quotes"),
        ('"10.2.0.0/24"', '"ten"', "fabric[2].subnet: found 'ten', needed an IPv4 network such as"),
        ('name = "gigabit"', 'name = "Giga Bit"', "fabric[1].name: found 'Giga Bit', needed small letters, digits"),
        ("wire = { line", "wire = 3 # { line", "fabric[2].wire: found 3, needed a table: { key = value }"),
    ],
)
def test_what_is_needed_is_said_in_words_of_toml(tmp_path: Path, old: str, new: str, expected: str):
    assert old in GOOD
    assert expected in problem(tmp_path, GOOD.replace(old, new, 1))


def test_a_list_of_which_every_entry_is_wrong_is_not_called_too_short_as_well(tmp_path: Path):
    one_fabric = GOOD.split('[[fabric]]\nname = "myrinet"', maxsplit=1)[0]
    message = problem(tmp_path, one_fabric.replace("interface", "iface"))
    assert "fabric[1].iface" in message
    assert "at least one" not in message


@pytest.mark.parametrize("nodes", ['["-oProxyCommand=sh"]', '"a b"', '["n0", "n/1"]', '["n0;x"]', '["n0:1"]'])
def test_what_a_starter_could_take_for_an_option_or_for_two_names_is_no_node(tmp_path: Path, nodes: str):
    path = tmp_path / "bed.toml"
    path.write_text(f'[testbed]\nname = "x"\nnodes = {nodes}\n[[fabric]]\nname = "a"\ninterface = "eth0"\n')
    with pytest.raises(UsageError, match=r"testbed.nodes: .* is no host name|is not a node set"):
        read_testbed(path)


def test_an_interface_is_a_name_and_no_path(tmp_path: Path):
    path = tmp_path / "bed.toml"
    path.write_text('[testbed]\nname = "x"\nnodes = "n[0-1]"\n[[fabric]]\nname = "a"\ninterface = "../../etc"\n')
    with pytest.raises(UsageError, match="interface"):
        read_testbed(path)
