"""A size or a time written almost right is answered with what was meant."""

from __future__ import annotations

import pytest

from fabricbench.quantity import parse_bytes, parse_seconds, with_ranges, without_numbers


@pytest.mark.parametrize("text", ["64KB", "64kb", "64K", "64k"])
def test_a_size_that_could_be_decimal_or_binary_is_answered_with_both(text: str):
    with pytest.raises(ValueError, match=r"did you mean 64kB \(64,000 B\) or 64KiB \(65,536 B\)\?"):
        parse_bytes(text)


def test_a_time_in_other_letters_is_answered_with_its_unit():
    with pytest.raises(ValueError, match=r"did you mean 5us\?"):
        parse_seconds("5 Us")


def test_what_is_like_no_unit_gets_the_list_alone():
    with pytest.raises(ValueError, match="'12xyz' is not a size: write a number and one of the units B, kB"):
        parse_bytes("12xyz")


def test_texts_that_differ_in_numbers_only_are_one_text_with_ranges():
    texts = ["in 3 of 1e3 calls on n1, 1.5 ms late", "in 12 of 1e3 calls on n1, 0.5 ms late"]
    assert len({without_numbers(text) for text in texts}) == 1
    assert with_ranges(texts) == "in 3 to 12 of 1e3 calls on n1, 0.5 to 1.5 ms late"
    assert with_ranges(texts[:1]) == texts[0]
    assert with_ranges(["off by -3 %", "off by 2 %"]) == "off by -3 to 2 %", "a sign belongs to its number"
    assert with_ranges(["1,234 frames of net1", "999 frames of net1"]) == "999 to 1,234 frames of net1"
    assert without_numbers("net1, 10.98.1.2, 1,2 and v1.2.3") == "net1, 10.98.1.2, 1,2 and v1.2.3"
    assert without_numbers("10.1.0.3 on n1") != without_numbers("10.1.0.4 on n1"), "an address is no number"


def test_what_is_quoted_stays_as_it_was_written():
    texts = ["printed 'time 1.36 s' on 3 nodes", "printed 'time 1.42 s' on 4 nodes"]
    assert with_ranges(texts) == "printed 'time 1.36 s' on 3 to 4 nodes (and others like it)"
    assert with_ranges(["it's 3 s, and didn't end", "it's 5 s, and didn't end"]) == "it's 3 to 5 s, and didn't end"
