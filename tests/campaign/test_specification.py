from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fabricbench.campaign.presets import PRESETS, preset
from fabricbench.campaign.specification import Campaign, campaign_of, read_campaign
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive

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
        ('"tcp"', '"tcpp"', r"layers\[2\]: found 'tcpp', needed one of .*did you mean 'tcp'"),
        ("[[experiment]]", "[[experiments]]", r"experiments: unknown key"),
        ('pattern = "pingpong"', "", r"experiment\[1\].pattern: missing"),
        ("blocks = 12", "blocks = 1", "campaign.blocks: found 1, needed greater than or equal to 2"),
        ('"1%"', '"-1%"', "relative_width"),
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
    assert read_campaign(path).experiments


def test_there_are_examples():
    assert list(EXAMPLES.glob("campaign-*.toml"))


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_measures_all_six_layers_and_shares_a_small_size_for_the_ladder(name: str):
    campaign = preset(name)
    pingpong = [each for each in campaign.experiments if each.pattern is Pattern.PINGPONG]
    for layer in Layer:
        assert any(layer in each.layers and 64 in each.message_bytes for each in pingpong), layer
        assert any(layer in each.layers for each in campaign.experiments if each.pattern is Pattern.STREAM), layer


def test_a_preset_that_is_none_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(UsageError) as raised:
        preset("fastest")
    assert "quick, standard, full" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("layers", "parameters", "said"),
    [
        ('["tcp"]', '{ kernel = "copy" }', "kernel is none of tcp; there is kernel, of memory"),
        ('["memory"]', '{ kernel = "quad" }', "found 'quad', needed one of copy, scale, add, triad"),
        ('["memory"]', '{ colour = "red" }', "colour is none of memory"),
    ],
)
def test_a_parameter_that_no_layer_knows_is_refused_before_anything_is_started(layers: str, parameters: str, said: str):
    text = f'[[experiment]]\nlayers = {layers}\npattern = "stream"\nmessage_bytes = [64]\nparameters = {parameters}\n'
    with pytest.raises(UsageError, match=said):
        parse_campaign(text, "odd.toml")


def test_a_number_of_blocks_that_takes_weeks_is_refused():
    with pytest.raises(UsageError, match=r"campaign\.blocks: found 100000, needed less than or equal to 10000"):
        parse_campaign(WHOLE.replace("blocks = 12", "blocks = 100000"), "two.toml")
