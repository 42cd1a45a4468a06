from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.presets import PRESETS, preset
from fabricbench.campaign.specification import Campaign, Experiment, campaign_of, read_campaign
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.pattern_facts import NETWORK, USUAL_LAYERS, Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.probe_plan import Stopping
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed

EXAMPLES = Path(__file__).parents[2] / "examples"


def parse_campaign(text: str, source: str) -> Campaign:
    return campaign_of(tomllib.loads(text), source)


WHOLE = """
[campaign]
name = "two layers"
blocks = 12
margin = "5%"

[[experiment]]
layers = ["udp", "tcp"]
pattern = "pingpong"
message_bytes = ["8B", 64, "1KiB"]
receive = ["blocking", "polling"]
maximum_seconds = "250ms"
relative_width = "1%"
"""


def test_a_file_says_what_it_means_with_units():
    campaign = parse_campaign(WHOLE, "two.toml")
    (experiment,) = campaign.experiments
    assert (campaign.name, campaign.blocks, campaign.margin, campaign.unfit) == ("two layers", 12, 0.05, "refuse")
    assert experiment.layers == (Layer.UDP, Layer.TCP)
    assert experiment.pattern is Pattern.PINGPONG
    assert experiment.message_bytes == (8, 64, 1024)
    assert experiment.receive == (Receive.BLOCKING, Receive.POLLING)
    assert experiment.stopping.maximum_seconds == 0.25
    assert experiment.stopping.relative_width == 0.01


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("", 0.1),
        ('minimum_seconds = "200ms"', 0.2),
        ('maximum_seconds = "20ms"', 0.02),
        ('minimum_seconds = "0s"', 0.0),
    ],
)
def test_no_cell_may_end_on_its_width_before_a_tenth_of_a_second_or_what_is_said_or_all_its_time(
    said: str, seconds: float
):
    text = WHOLE.replace('maximum_seconds = "250ms"', said)
    (experiment,) = parse_campaign(text, "two.toml").experiments
    assert experiment.stopping.minimum_seconds == seconds


def test_a_plan_of_an_earlier_version_has_no_minimum_time():
    assert Stopping.model_validate({"maximum_seconds": 0.5}).minimum_seconds == 0.0


def test_a_campaign_without_a_name_is_called_after_its_file():
    assert parse_campaign(WHOLE.replace('name = "two layers"', ""), "dir/latency.toml").name == "latency"


def test_a_campaign_survives_being_written_down_in_the_manifest():
    campaign = parse_campaign(WHOLE, "two.toml")
    assert Campaign.model_validate(campaign.model_dump(mode="json")) == campaign


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("message_bytes", "mesage_bytes", r"experiment\[1\].mesage_bytes: unknown key; did you mean 'message_bytes'"),
        ("blocks", "blcks", r"campaign.blcks: unknown key; did you mean 'blocks'"),
        ('"8B"', '"8 parsecs"', r"message_bytes\[1\]: '8 parsecs' is not a size"),
        ('"250ms"', '"250"', "maximum_seconds: '250' is not a time"),
        ("maximum_seconds", "minimum_seconds = 'soon'\nmaximum_seconds", "minimum_seconds: 'soon' is not a time"),
        ('"tcp"', '"tcpp"', r"layers\[2\]: found 'tcpp', needed one of .*did you mean 'tcp'"),
        ("[[experiment]]", "[[experiments]]", r"experiments: unknown key"),
        ('pattern = "pingpong"', "", r"experiment\[1\].pattern: missing"),
        ("blocks = 12", "blocks = 1", "campaign.blocks: found 1, needed greater than or equal to 2"),
        ('"1%"', '"-1%"', "relative_width"),
        ("blocks = 12", 'pause = "2s to 1s"', "campaign.pause: "),
        ("blocks = 12", 'hardware_counters = "yes"', "campaign.hardware_counters: "),
        ("blocks = 12", "hardware_counters = 1", "campaign.hardware_counters: "),
        ("blocks = 12", 'unfit = "ignore"', "campaign.unfit: found 'ignore', needed one of refuse, leave out"),
        ('"1%"', '"1%"\nminimum_samples = 9\nmaximum_samples = 3', "minimum_samples 9 is above maximum_samples 3"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(old: str, new: str, said: str):
    with pytest.raises(UsageError, match=said):
        parse_campaign(WHOLE.replace(old, new), "two.toml")


def test_a_campaign_without_experiments_is_refused():
    with pytest.raises(UsageError, match="experiment"):
        parse_campaign("[campaign]\nname='x'\nexperiment=[]", "x.toml")


def test_a_file_that_is_not_there_is_an_error_of_usage(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no file"):
        read_campaign(tmp_path / "none.toml")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("campaign-*.toml")), ids=lambda path: path.stem)
def test_every_example_is_a_campaign(path: Path):
    found = read_campaign(path)
    assert found.experiments or found.workloads


def test_there_are_examples():
    assert list(EXAMPLES.glob("campaign-*.toml"))


@pytest.mark.parametrize("name", ["quick", "standard", "full"])
def test_a_preset_for_an_answer_measures_all_six_layers_and_shares_a_small_size_for_the_ladder(name: str):
    campaign = preset(name)
    pingpong = [each for each in campaign.experiments if each.pattern is Pattern.PINGPONG]
    for layer in USUAL_LAYERS:
        assert any(layer in each.layers and 64 in each.message_bytes for each in pingpong), layer
        assert any(layer in each.layers for each in campaign.experiments if each.pattern is Pattern.STREAM), layer


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_survives_being_written_down_and_read_again(name: str):
    campaign = preset(name)
    assert campaign.name == name
    assert Campaign.model_validate(campaign.model_dump(mode="json")) == campaign


def test_between_them_the_presets_measure_every_pattern_and_operation():
    measured = {
        name: {each.pattern for each in preset(name).experiments}
        for name in ("patterns", "collectives", "map", "oneway")
    }
    families = {name: {PATTERNS[pattern].family for pattern in found} for name, found in measured.items()}
    assert set().union(*measured.values()) == {each for each in Pattern if PATTERNS[each].family is not Family.WORKLOAD}
    assert families["collectives"] == {Family.OPERATION}
    assert families["map"] == {Family.MATRIX}
    layers = {layer for each in preset("patterns").experiments for layer in each.layers}
    assert layers == set(NETWORK)


def test_a_preset_that_is_none_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(UsageError) as raised:
        preset("fastest")
    assert "quick, standard, full, patterns" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("layers", "parameters", "said"),
    [
        ('["tcp"]', '{ kernel = "copy" }', "kernel is none of tcp; it is what layer memory can do"),
        ('["tcp", "udp"]', "{ window = 64 }", "window is none of udp; it is what layers tcp, rdma, mpi can do"),
        ('["memory"]', '{ kernel = "quad" }', "found 'quad', needed one of copy, scale, add, triad"),
        ('["memory"]', '{ colour = "red" }', "stream has no 'colour'; it has kernel"),
    ],
)
def test_a_parameter_that_no_layer_knows_is_refused_before_anything_is_started(layers: str, parameters: str, said: str):
    text = f'[[experiment]]\nlayers = {layers}\npattern = "stream"\nmessage_bytes = [64]\nparameters = {parameters}\n'
    with pytest.raises(UsageError, match=said):
        parse_campaign(text, "odd.toml")


def test_a_number_of_blocks_that_takes_weeks_is_refused():
    with pytest.raises(UsageError, match=r"campaign\.blocks: found 100000, needed less than or equal to 10000"):
        parse_campaign(WHOLE.replace("blocks = 12", "blocks = 100000"), "two.toml")


def experiment(**keys: object) -> Experiment:
    """An incast over tcp, but for what is said otherwise."""
    return campaign_of(
        {"experiment": [{"layers": ["tcp"], "pattern": "incast", "message_bytes": ["64KiB"], **keys}]}, "one.toml"
    ).experiments[0]


def test_ranks_are_all_or_a_number_or_named():
    assert [experiment(ranks=ranks).ranks for ranks in ("all", 3, [3, 0, 1])] == ["all", 3, (3, 0, 1)]
    assert experiment().ranks is None


def test_a_list_of_values_sweeps_a_parameter():
    assert experiment(parameters={"flows": [1, 4, 16, 64]}).parameters == {"flows": (1, 4, 16, 64)}


def test_any_pattern_may_be_sent_through_a_door():
    assert experiment(parameters={"door": "packet"}).parameters == {"door": "packet"}
    assert experiment(pattern="exchange", parameters={"door": ["socket", "rings"]}).parameters == {
        "door": ("socket", "rings")
    }


def test_an_operation_without_a_size_needs_none():
    assert experiment(layers=["mpi"], pattern="barrier", message_bytes=[]).message_bytes == ()


def test_a_congestor_is_a_flood_of_one_or_more_sizes():
    congestor = {"pattern": "incast", "layer": "udp", "message_bytes": "64KiB", "parameters": {"flows": [1, 16]}}
    found = experiment(pattern="pingpong", congestor=congestor).congestor
    assert found is not None
    assert (found.layer, found.message_bytes, found.ranks) == (Layer.UDP, (65536,), "all")
    assert found.parameters == {"flows": (1, 16)}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ranks": 1}, "ranks: incast is for 2 or more ranks, found 1"),
        ({"pattern": "pingping", "ranks": 3}, "ranks: pingping is for 2 ranks, found 3"),
        ({"pattern": "message-rate", "ranks": 3}, "message-rate sets one half .* needs an even number, found 3"),
        ({"ranks": [1, 1]}, r"found \[1, 1\], needed each rank once"),
        ({"ranks": "most"}, "found 'most', needed \"all\", how many ranks, or their numbers"),
        ({"ranks": True}, "found True, needed"),
        (
            {"parameters": {"flow": 4}},
            "incast has no 'flow'; it has flows, address_family, nodelay; did you mean 'flows'",
        ),
        ({"parameters": {"flows": 0}}, "parameters.flows: found 0, needed a whole number from 1 to 256"),
        ({"parameters": {"flows": 1.5}}, "parameters.flows: found 1.5, needed a whole number"),
        ({"parameters": {"flows": []}}, "parameters.flows: found an empty list"),
        ({"parameters": {"flows": [[1]]}}, r"parameters.flows: found \[1\], needed text in quotes or a number$"),
        ({"parameters": {"door": 1}}, "parameters.door: found 1, needed the name of a way into the layer"),
        ({"parameters": {"memory": ""}}, "parameters.memory: found '', needed the name of a kind of memory"),
        ({"parameters": {"memory": "hug"}}, "found 'hug', needed one of plain, huge; did you mean 'huge'"),
        ({"parameters": {"door": []}}, r"parameters.door: found \(\), needed the name"),
        (
            {"pattern": "pairs", "parameters": {"schedule": "rond"}},
            "needed one of alone, rounds, halves; did you mean 'rounds'",
        ),
        ({"pattern": "exchange", "parameters": {"flows": 2}}, "exchange has no 'flows'; it has address_family"),
        ({"message_bytes": []}, "message_bytes: missing, it is required"),
        ({"layers": ["mpi"], "pattern": "barrier"}, "message_bytes: barrier has no size to choose"),
        (
            {"congestor": {"pattern": "pingpong", "message_bytes": 64}},
            "pingpong does not fill a network; needed one of bi",
        ),
        ({"congestor": {"pattern": "ring", "message_bytes": 64, "layer": "memory"}}, "memory has one rank alone"),
        ({"congestor": {"pattern": "ring", "message_bytes": 64, "ranks": [0, 3]}}, "rank 0 directs the launch"),
        ({"congestor": {"pattern": "ring", "message_bytes": 64, "parameters": {"x": 1}}}, "ring has no 'x'"),
        ({"congestor": {"pattern": "ring"}}, "congestor.message_bytes: missing"),
    ],
)
def test_what_a_pattern_cannot_be_told_is_refused_with_what_is_possible(keys: dict[str, object], said: str):
    with pytest.raises(UsageError, match=said):
        experiment(**keys)


DECIDED = (
    WHOLE + '[decision]\nnodes = 16\n[[decision.weight]]\nlayer = "tcp"\npattern = "pingpong"\nmessage_bytes = "64B"\n'
)


def test_a_campaign_keeps_what_it_weighs():
    campaign = parse_campaign(DECIDED, "two.toml")
    assert campaign.decision is not None
    assert campaign.decision.weight[0].what == "tcp pingpong 64 B"
    assert Campaign.model_validate(campaign.model_dump(mode="json")) == campaign


def test_a_weight_for_what_is_not_measured_is_refused_before_anything_runs():
    with pytest.raises(UsageError, match=r"weight\[1\]: tcp pingpong 65 B is not measured by this campaign"):
        parse_campaign(DECIDED.replace('"64B"\n', '"65B"\n'), "two.toml")
    kernel = '[[npb]]\nbenchmarks = ["IS"]\nranks = [4]\n[[decision.weight]]\nnpb = "IS.W{}"\n'
    assert parse_campaign(kernel.format(".4"), "k.toml").decision is not None
    with pytest.raises(UsageError, match=r"IS\.W\.2 is not measured"):
        parse_campaign(kernel.format(".2"), "k.toml")


def test_prices_in_two_currencies_are_refused_before_anything_runs():
    def priced(name: str, currency: str) -> Fabric:
        return Fabric(name=name, interface="eth0", price_per_node=1, currency=currency)

    bed = Testbed(
        name="x",
        launcher=LauncherKind.SSH,
        nodes=(Node(name="n0"), Node(name="n1")),
        fabrics=(priced("a", "EUR"), priced("b", "USD")),
    )
    with pytest.raises(UsageError, match="different currencies"):
        plan_run(parse_campaign(DECIDED, "two.toml"), bed, seed=1)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"layers": ["udp", "rdma"]},
            "stages: found layers rdma, needed frame, ip, udp, tcp or mpi; leave the others out",
        ),
        ({"pattern": "stream"}, "stages: found pattern stream, needed pingpong, paced or burst"),
        ({"congestor": {"pattern": "incast", "message_bytes": 64}}, "stages: found a congestor"),
        (
            {"layers": ["frame"], "parameters": {"door": ["packet", "ring"]}},
            "stages: found door ring into layer frame, needed packet, whose messages alone are stamped; leave door out",
        ),
        ({"parameters": {"round_trips": 8}}, "stages: found round_trips, needed one at a time"),
        ({"parameters": {"stages": "user"}}, "stages is no parameter to choose; write `stages = true`"),
    ],
)
def test_stages_of_what_has_none_are_refused(keys: dict[str, object], said: str):
    table = {"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [64], "stages": True, **keys}
    with pytest.raises(UsageError, match=re.escape(said)):
        campaign_of({"experiment": [table]}, "mine.toml")


@pytest.mark.parametrize("pattern", ["pingpong", "paced", "burst"])
def test_stages_are_measured_of_messages_alone_in_turn_and_in_bursts(pattern: str):
    table = {"layers": ["tcp"], "pattern": pattern, "message_bytes": [64], "stages": True}
    assert campaign_of({"experiment": [table]}, "mine.toml").experiments[0].stages
