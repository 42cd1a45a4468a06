"""Doubts as data: what is told together, and how its numbers become a range."""

from __future__ import annotations

from fabricbench.analysis.comparing import times_number
from fabricbench.analysis.findings import Doubt, together
from fabricbench.analysis.findings.doubts import Number, percentage, scaled_number, whole
from fabricbench.quantity import scale_seconds
from fabricbench.statistics.decision import Consequence


def late(seconds: float, subject: str = "net1") -> Doubt:
    return Doubt.of("frames up to ", scaled_number(seconds, scale_seconds(seconds)), " late", subject=subject)


def test_doubts_of_one_kind_and_subject_are_one_with_the_range_of_each_number():
    few = [Doubt.of("in ", whole(number), " of ", whole(1234), " calls") for number in (12, 3, 7)]
    assert len({one.group for one in few}) == 1
    assert together(few) == "in 3 to 12 of 1,234 calls"
    assert str(few[0]) == "in 12 of 1,234 calls"


def test_a_range_is_of_values_and_not_of_what_is_printed():
    assert together([late(1.2e-3), late(950e-6)]) == "net1: frames up to 950 µs to 1.20 ms late"
    signed = [Doubt.of("by ", Number(value=value, written=f"{value:g}", unit="%")) for value in (2.0, -3.0)]
    assert together(signed) == "by -3 to 2 %"


def test_a_number_in_a_name_or_in_a_word_is_no_number_of_a_doubt():
    one, other = (Doubt.of("3 payloads of {x} arrived changed on ", name) for name in ("n1", "n2"))
    assert one.group != other.group
    assert str(one) == "3 payloads of {x} arrived changed on n1"
    assert late(1e-3, "net1").group != late(1e-3, "net2").group


def test_a_doubt_is_read_back_from_what_is_written_of_it():
    one = Doubt.of(percentage(9.49), " of the wire", subject="b", is_void=True)
    assert one.model_dump(mode="json").keys() == {"kind", "subject", "numbers", "is_void"}
    assert Doubt.model_validate_json(one.model_dump_json()) == one


def test_a_doubt_that_changes_no_verdict_is_told_apart_and_says_so():
    one = late(1e-3)
    harmless = one.model_copy(update={"consequence": Consequence.NOTHING, "delay_share": 0.01})
    assert str(harmless) == f"{one}; who is faster would be the same without it"
    assert harmless.group != one.group


def test_ranges_of_several_doubts_are_one_range():
    def doubt(low: float, high: float) -> Doubt:
        return Doubt.of("are ", times_number(low).to(times_number(high)), " times worse")

    assert str(doubt(1.42, 1.5)) == "are 1.42 to 1.50 times worse"
    assert str(doubt(1.5, 1.5)) == "are 1.50 times worse"
    assert together([doubt(1.42, 1.5), doubt(1.45, 1.64)]) == "are 1.42 to 1.64 times worse"
    assert Doubt.model_validate_json(doubt(1.42, 1.5).model_dump_json()) == doubt(1.42, 1.5)
