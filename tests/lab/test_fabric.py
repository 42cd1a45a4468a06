from __future__ import annotations

import pytest

from fabricbench.errors import UsageError
from fabricbench.lab import PRESETS, EmulatedFabric, Switching, parse_fabric, parse_fabrics
from fabricbench.lab.fabric import ASKED_FOR
from fabricbench.lab.topology import plan_lab
from fabricbench.model import Layer
from fabricbench.published import PublishedQuantity, published_figures


@pytest.mark.parametrize("preset", PRESETS.values(), ids=str)
def test_each_figure_of_a_preset_names_its_source(preset: EmulatedFabric):
    assert set(preset.sources) == set(preset.figures)
    assert all(preset.sources.values())


def test_atm_carries_what_was_published_within_half_a_percent():
    atm = PRESETS["atm-oc3"]
    published_bit_s = 133.88e6
    assert atm.wire.payload_rate_bit_s(Layer.TCP, 2**20, atm.mtu) == pytest.approx(published_bit_s, rel=0.005)


def one_way_s(fabric: EmulatedFabric, message_bytes: int) -> float:
    """A message over TCP on idle links, in as many frames as it needs, without what hosts take."""
    rate_bit_s = fabric.wire.payload_rate_bit_s(Layer.TCP, 2**20, fabric.mtu)
    assert rate_bit_s is not None
    first_bytes = min(message_bytes, fabric.mtu - 52)
    return fabric.added_delay_s(first_bytes + 52 + 14) + (message_bytes - first_bytes) * 8 / rate_bit_s


def test_atm_overtakes_fast_ethernet_within_a_factor_of_two_of_the_16_kib_that_were_published():
    ethernet, atm = PRESETS["fast-ethernet"], PRESETS["atm-oc3"]
    assert one_way_s(ethernet, 8 * 1024) < one_way_s(atm, 8 * 1024)
    assert one_way_s(atm, 32 * 1024) < one_way_s(ethernet, 32 * 1024)
    assert atm.sources["delay_s"].startswith("built from salamon-mink-nist")


def test_fast_ethernet_carries_what_was_published_within_one_percent():
    ethernet = PRESETS["fast-ethernet"]
    published_bit_s = 94.85e6
    assert ethernet.wire.payload_rate_bit_s(Layer.TCP, 2**20, ethernet.mtu) == pytest.approx(published_bit_s, rel=0.01)


def test_the_fast_ethernet_switch_adds_to_a_full_frame_what_was_published_over_a_crossover_cable():
    switched, cable = PRESETS["fast-ethernet"], PRESETS["fast-ethernet-crossover"]
    assert cable.added_delay_s(1514) == cable.wire.serialisation_s(1514) + cable.delay_s
    assert 123e-6 <= switched.added_delay_s(1514) - cable.added_delay_s(1514) <= 131e-6


@pytest.mark.parametrize(
    ("cable", "switched"),
    [("fast-ethernet-crossover", "fast-ethernet"), ("gigabit-crossover", "gigabit-ethernet")],
)
def test_a_crossover_cable_is_the_switched_fabric_without_its_switch(cable: str, switched: str):
    asked = parse_fabric(f"{switched}:switching=none,latency=0s")
    assert PRESETS[cable].wire == asked.wire
    assert PRESETS[cable].added_delay_s(64) == asked.added_delay_s(64)
    assert PRESETS[cable].is_cable


def test_scaled_fabrics_keep_their_ratios_and_tell_the_scale():
    roce, infiniband, hdr = (PRESETS[name] for name in ("roce-100g", "infiniband-100g", "infiniband-hdr"))
    assert {fabric.scale for fabric in (roce, infiniband, hdr)} == {80}
    assert roce.line_rate_bit_s * roce.scale == infiniband.line_rate_bit_s * infiniband.scale == 100e9
    assert hdr.line_rate_bit_s == 2 * roce.line_rate_bit_s
    real_s = [fabric.added_delay_s(64) / fabric.scale for fabric in (roce, infiniband, hdr)]
    assert real_s == [pytest.approx(each, rel=0.05) for each in (0.912e-6, 0.7e-6, 0.737e-6)]
    for fabric in (roce, infiniband, hdr):
        assert fabric.scale_words.startswith("scaled 1:80: ")
        assert fabric.settings["scale"] == "1:80"
    assert "2.50 Gbit/s of 200 Gbit/s" in hdr.scale_words
    assert PRESETS["myrinet"].scale_words == ""


@pytest.mark.parametrize("preset", PRESETS.values(), ids=str)
def test_what_a_preset_is_built_from_was_published_of_it_and_is_told_in_the_figures_source(preset: EmulatedFabric):
    for field, figures in preset.built_from.items():
        for built in figures:
            published = published_figures(quantity=PublishedQuantity(built.quantity))
            assert any(figure.study == built.study and figure.fabric in (None, preset.preset) for figure in published)
            assert built.study in preset.sources[field]


def test_a_fabric_is_built_from_no_figure_in_the_place_of_which_another_was_asked_for():
    assert set(parse_fabric("fast-ethernet:mtu=1400").built_from) == {"line_rate_bit_s", "switch_latency_s"}
    assert set(parse_fabric("fast-ethernet:latency=1us").built_from) == {"line_rate_bit_s"}
    assert parse_fabric("atm-oc3:delay=50ns").built_from == {}


def test_each_hop_in_a_torus_adds_its_latency():
    torus = parse_fabric("sci-torus:latency=2us")
    assert torus.added_delay_s(1514, hops=3) - torus.added_delay_s(1514, hops=1) == pytest.approx(4e-6)
    slow = parse_fabric("sci-torus:segment-rate=96Mbit/s")
    assert slow.added_delay_s(9014) - slow.added_delay_s(64) == pytest.approx((9014 - 64) * 8 / 96e6)
    assert slow.sources["segment_rate_bit_s"] == ASKED_FOR


def test_overrides_replace_figures_and_say_so():
    fabric = parse_fabric("myrinet:delay=5us,mtu=1500,rate=276MB/s,switching=store-and-forward,buffer=64KiB,cell=48/53")
    assert fabric.delay_s == pytest.approx(5e-6)
    assert fabric.mtu == 1500
    assert fabric.line_rate_bit_s == pytest.approx(2.208e9)
    assert fabric.switching is Switching.STORE_AND_FORWARD
    assert fabric.port_buffer_bytes == 65536
    assert fabric.wire.wire_bytes(1514) == 32 * 53
    assert {field for field, source in fabric.sources.items() if source == ASKED_FOR} == {
        *("delay_s", "mtu", "line_rate_bit_s", "switching", "port_buffer_bytes", "cell")
    }


def test_a_list_of_fabrics_may_hold_overrides():
    fabrics = parse_fabrics("myrinet:delay=5us,mtu=9000,fast-ethernet, sci:latency=1us")
    assert [fabric.name for fabric in fabrics] == ["myrinet", "fast-ethernet", "sci"]
    assert fabrics[0].mtu == 9000
    assert fabrics[2].switch_latency_s == pytest.approx(1e-6)


def test_one_preset_twice_needs_two_names():
    with pytest.raises(UsageError, match="twice"):
        parse_fabrics("myrinet,myrinet:delay=5us")
    assert [fabric.name for fabric in parse_fabrics("myrinet,myrinet:delay=5us,name=far")] == ["myrinet", "far"]


def test_one_preset_under_two_names_of_their_own_is_one_thing_in_two_conditions():
    old, new, other = parse_fabrics("old=myrinet,delay=2us,new=myrinet:delay=5us,mtu=1500,fast-ethernet")
    assert [fabric.name for fabric in (old, new, other)] == ["old", "new", "fast-ethernet"]
    assert [fabric.condition_of for fabric in (old, new, other)] == ["myrinet", "myrinet", ""]
    assert (old.delay_s, new.delay_s, new.mtu) == (pytest.approx(2e-6), pytest.approx(5e-6), 1500)
    assert {fabric.condition_of for fabric in parse_fabrics("mine=myrinet,fast-ethernet")} == {""}
    assert {fabric.condition_of for fabric in parse_fabrics("myrinet,far=myrinet:delay=5us")} == {""}
    with pytest.raises(UsageError, match="asked for twice") as caught:
        parse_fabrics("sci,sci")
    assert "before=sci,after=sci:delay=20us" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("infiniband", "no fabric preset 'infiniband'"),
        ("myrinet:speed=1Gbit/s", "speed"),
        ("myrinet:delay=5", "delay.*unit"),
        ("myrinet:delay=5parsec", "delay.*unit"),
        ("myrinet:mtu=12", "mtu"),
        ("myrinet:switching=sideways", "switching"),
        ("myrinet:cell=53", "cell=53"),
        ("myrinet:buffer=100B", "does not hold one frame"),
        ("myrinet:name=My Net", "name"),
        ("fast-ethernet:switching=none", "latency=0s"),
        ("gigabit-crossover:n1.delay=5us", "one link for both"),
        ("myrinet:columns=2", "take sci-torus"),
        ("sci-torus:switching=store-and-forward", "cut-through"),
        ("sci-torus:columns=0", "columns"),
        ("", "no fabric"),
    ],
)
def test_a_wrong_fabric_is_refused_with_what_is_known(text: str, said: str):
    with pytest.raises(UsageError, match=said) as caught:
        parse_fabrics(text)
    assert caught.value.hint


def test_cut_through_hides_the_second_serialisation_but_for_the_header():
    stored, cut = (parse_fabric(f"fast-ethernet:switching={how}") for how in ("store-and-forward", "cut-through"))
    saved_bytes = stored.wire.wire_bytes(1514) - 64
    assert stored.added_delay_s(1514) - cut.added_delay_s(1514) == pytest.approx(saved_bytes * 8 / 100e6)


def test_a_link_of_one_node_can_differ() -> None:
    fabric = parse_fabric("fast-ethernet:n2.rate=80Mbit/s,n1.delay-up=20us,n1.delay-down=70us,n3.delay=5us,mtu=1400")
    assert fabric.line_rate_of(2) == 80e6
    assert fabric.line_rate_of(0) == fabric.line_rate_bit_s == 100e6
    assert (fabric.links[1].delay_up_s, fabric.links[1].delay_down_s) == (pytest.approx(20e-6), pytest.approx(70e-6))
    assert fabric.links[3].delay_up_s == fabric.links[3].delay_down_s == pytest.approx(5e-6)
    assert fabric.mtu == 1400


@pytest.mark.parametrize("changes", ["n2.colour=1", "n.rate=1Mbit/s", "n2.rate=fast"])
def test_a_link_that_cannot_be_set_is_refused(changes: str) -> None:
    with pytest.raises(UsageError):
        parse_fabric(f"fast-ethernet:{changes}")


def test_interrupts_can_be_coalesced():
    plain, held = parse_fabrics("off=gigabit-crossover,on=gigabit-crossover:coalesce=100us")
    assert held.added_delay_s(64) == pytest.approx(plain.added_delay_s(64) + 100e-6)
    assert held.settings["interrupts coalesced"] == "100 µs"
    assert "interrupts coalesced over 100 µs" in held.link_words
    assert plan_lab("lab", 2, [plain, held], cpus=[0]).switch_configuration(1, {})["coalesce_ns"] == 100_000


def test_interrupts_can_come_in_a_period():
    (fabric,) = parse_fabrics("gigabit-crossover:interrupt-period=125us")
    assert fabric.settings["interrupts every"] == "125 µs"
    assert "interrupts every 125 µs" in fabric.link_words
    assert plan_lab("lab", 2, [fabric], cpus=[0]).switch_configuration(0, {})["interrupt_period_ns"] == 125_000
    with pytest.raises(UsageError, match="coalesce= or interrupt-period="):
        parse_fabrics("gigabit-crossover:interrupt-period=125us,coalesce=100us")


def test_a_switch_can_hold_the_last_segments_of_messages_of_one_size_as_a_known_fault():
    fabric = parse_fabric("gigabit-ethernet:hold=200us,hold-bytes=31744")
    assert fabric.settings["known fault"] == "last segments of TCP messages of 31 KiB held for 200 µs"
    assert fabric.settings["known fault"] in fabric.link_words
    told = plan_lab("lab", 2, [fabric], cpus=[0]).switch_configuration(0, {})["hold"]
    assert told == {"message_bytes": 31_744, "within_bytes": 1500, "hold_ns": 200_000}
    assert "hold" not in plan_lab("lab", 2, [parse_fabric("myrinet")], cpus=[0]).switch_configuration(0, {})


@pytest.mark.parametrize("half", ["hold=200us", "hold-bytes=31744"])
def test_a_hold_without_its_other_half_is_refused(half: str):
    with pytest.raises(UsageError, match="told together"):
        parse_fabric(f"gigabit-ethernet:{half}")
