"""Whoever writes TOML is told in words what a regular expression of ours asks for."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from fabricbench.configuration import _WORDS_OF_PATTERNS, problem_of, words_of_pattern
from fabricbench.workload.farm import FarmTable

EXAMPLES = {
    "/tmp": "a path that begins with /",
    "n_1": "a name of letters, digits and '_' that begins with no digit",
    "in.lj": "a file's name of letters, digits, '.', '_' and '-' that begins with a letter or digit",
    "no blank": "letters, digits, blanks, '.', '_' and '-', a letter or digit first",
    "mlx5_0": "letters, digits, '.', '_' and '-', 63 of them at most",
    "--qos=x": "a word without blanks",
    "performance": "small letters and '_'",
}


@pytest.mark.parametrize(("example", "words"), EXAMPLES.items())
def test_words_say_what_the_pattern_takes(example: str, words: str):
    patterns = [pattern for pattern, told in _WORDS_OF_PATTERNS.items() if told == words]
    assert patterns
    assert all(re.search(pattern, example) for pattern in patterns)


def test_all_words_have_an_example_and_what_is_not_known_is_shown():
    assert set(_WORDS_OF_PATTERNS.values()) == set(EXAMPLES.values())
    assert words_of_pattern("^x+$") == "what matches ^x+$"


def test_a_farms_scratch_that_is_no_path_is_told_in_words():
    with pytest.raises(ValidationError) as caught:
        FarmTable.model_validate({"scratch": "tmp"})
    told = [problem_of(one, FarmTable) for one in caught.value.errors() if one["loc"] == ("scratch",)]
    assert told == ["scratch: found 'tmp', needed a path that begins with /"]
