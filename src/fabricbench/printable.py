"""Text that cannot act: what people read is written with every character that would steer a terminal, or reorder a line, escaped.

Names, reasons and logs come from files that somebody else may have written. An escape sequence among them could clear the screen,
set the title or write to the clipboard, and a bidirectional override could show a line as another one (CVE-2021-42574). What `cli`
and the text and Markdown reports write passes here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType

_LINE_BREAKS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides and isolates
    "\u2028\u2029\ufeff\ufffe\uffff"  # line breaks to some readers, the byte order mark, what is no character (nor XML)
    "\ud800-\udfff"  # lone surrogates, which no output can encode
    "\U000e0000-\U000e007f]"  # tags: invisible text
)
_BREAKS = re.compile(f"[{_LINE_BREAKS}]")


def printable(text: str) -> str:
    r"""Return text with acting characters as `\u001b`; tabs and newlines stay."""
    return _ACTING.sub(_escaped, text)


def one_line(text: str) -> str:
    """Return `printable` text without line breaks, `shortened`: a name must not look like a line of the report, nor hide others."""
    text = shortened(text)
    return (
        text if text.isprintable() else _ACTING.sub(_escaped, _BREAKS.sub(_escaped, text))
    )  # none that acts is printable


def _escaped(found: re.Match[str]) -> str:
    r"""Return the character as JSON would, so that data stays the same data: `\u001b`."""
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


MOST_SHOWN = 1000
"""Characters of a name, a reason or a line of a log that a person is shown: more is not read, and a file from elsewhere may hold
megabytes."""


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """Return text as it is, or of a long one its beginning and how long it is."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


class PrintableConsole(Console):
    """A console of rich that escapes what it is given and keeps the colours that it adds itself."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of a renderable, their text escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
