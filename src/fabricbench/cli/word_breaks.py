"""Puts together again what bash takes apart before it asks for completions.

Readline ends a word at `:` and `=` (COMP_WORDBREAKS), so `--testbed=lab:my` comes as five words, and what is offered replaces the
last of them only. The words are joined here, and what readline keeps is cut off the answer. Where somebody took `:` out of
COMP_WORDBREAKS nothing is in pieces, and nothing is done.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

ASKED = "_FABRICBENCH_COMPLETE"
BREAKS = ":="


@contextmanager
def mended() -> Iterator[None]:
    """Let a question of bash for completions be answered as if its words were whole; anything else passes."""
    if os.environ.get(ASKED) != "complete_bash":
        yield
        return
    words, current = _words(os.environ.get("COMP_WORDS", "")), int(os.environ.get("COMP_CWORD", "0"))
    words, current, kept = joined(words, current)
    os.environ |= {"COMP_WORDS": "\n".join(map(shlex.quote, words)), "COMP_CWORD": str(current)}
    answer = io.StringIO()
    try:
        with redirect_stdout(answer):
            yield
    finally:
        sys.stdout.writelines(f"{line.removeprefix(kept)}\n" for line in answer.getvalue().splitlines())


def joined(words: Sequence[str], current: int) -> tuple[list[str], int, str]:
    """Return the words up to the current one, joined, the index of that one, and what readline keeps of it.

    `current` beyond the last word means that a new one begins. Of `--option=value` only the value counts as kept.
    """
    whole: list[str] = []
    kept, is_open = "", False
    for word in words[: current + 1]:
        is_break = bool(word) and not word.strip(BREAKS)
        if whole and (is_break or is_open):
            kept = whole[-1] + (word if is_break else "")
            whole[-1] += word
        else:
            whole.append(word)
            kept = ""
        is_open = is_break
    if current >= len(words):
        return [*whole, ""], len(whole), ""
    return whole, len(whole) - 1, kept.partition("=")[2] if kept.startswith("-") else kept


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed yet
        return text.split()
