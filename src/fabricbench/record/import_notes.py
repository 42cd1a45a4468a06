"""What an import had to note of a text that another program wrote: data of the launch, kept in `launch.json` and told in reports.

Nothing that was left out of a text, repaired in it or doubted is silent. What two sides' tools differ in is told here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from fabricbench.model import Model

DATATYPE = "datatype"
"""The parameter of an imported cell that names its datatype, where that is part of the test."""


class ImportNoteKind(StrEnum):
    """What was noted."""

    TAGGED = "tagged"
    """A launcher had put a tag before its lines; it was taken off."""
    BELOW_LAST_DIGIT = "below the last digit"
    """A result that was printed as 0: less than half of the last digit. It was left out."""
    STRAY = "stray"
    """A line among the results that is none; it was left out."""
    GLUED = "glued"
    """A result behind another text on its line; it was read."""
    CUT = "cut"
    """A line that says that the program was ended, or a result cut short: the results before it may not be all."""
    DAMAGED = "damaged"
    """A row that is no result, and why; it was left out."""
    UNKNOWN_TEST = "unknown test"
    """Tests of which there is no pattern here; their results were left out."""
    READ_AS = "read as"
    """What its numbers were taken for, and why."""
    SHORTER = "shorter"
    """It ends at a smaller size than others of the same test."""
    REPEATED = "repeated"
    """Another text has the same numbers, and that is no chance: the two count as one measurement."""


class ImportNote(Model):
    """One thing that was noted of a text: in which file and line (from 1), `text` of it, and how many `more` of the kind there are.

    `text` is the line; of TAGGED the tag, of UNKNOWN_TEST their names, of READ_AS the word, of SHORTER the sizes, of REPEATED the
    name of the other file. `why` is there of DAMAGED and READ_AS.
    """

    kind: ImportNoteKind
    file: str = ""
    line: int | None = None
    text: str
    why: str = ""
    more: int = 0

    @property
    def words(self) -> str:
        """What people are told: `b-1.txt, line 9: left out '0: error', which is no result`."""
        where = [*([self.file] if self.file else []), *([f"line {self.line}"] if self.line is not None else [])]
        return ": ".join([*([", ".join(where)] if where else []), self.what])

    @property
    def what(self) -> str:
        """The same without where it was."""
        what = {
            ImportNoteKind.TAGGED: f"its lines began with {self.text!r}, the tag of a launcher, which was taken off",
            ImportNoteKind.BELOW_LAST_DIGIT: f"left out {self.text!r}: less than its last digit can tell",
            ImportNoteKind.STRAY: f"left out {self.text!r}, which is no result",
            ImportNoteKind.GLUED: f"took the result from the end of {self.text!r}",
            ImportNoteKind.CUT: f"its results may not be whole: {self.text!r}",
            ImportNoteKind.DAMAGED: f"left out {self.text!r}: {self.why}",
            ImportNoteKind.UNKNOWN_TEST: f"left out {self.text}: tests of which there is no pattern here",
            ImportNoteKind.READ_AS: f"took {self.text!r} for {self.why}",
            ImportNoteKind.SHORTER: f"its results may not be whole: {self.text}",
            ImportNoteKind.REPEATED: f"it holds the same numbers as {self.text}: they count once",
        }[self.kind]
        more = f", and {self.more} more such" if self.more else ""
        return f"{what}{more}"


def note_words(notes: Iterable[ImportNote]) -> list[str]:
    """Return what people are told of some notes, in the order in which they came, what is the same of several texts once."""
    alike: dict[str, list[ImportNote]] = {}
    for note in notes:
        alike.setdefault(note.what, []).append(note)
    return [(f"{one.words} (and so in {len(others)} more)" if others else one.words) for one, *others in alike.values()]


def tool_differences(
    versions: Mapping[str, Iterable[str]], datatypes: Mapping[str, Mapping[str, Iterable[str]]]
) -> list[str]:
    """Return in a sentence each how imported sides were measured otherwise; both by the side's name, `datatypes` then by test.

    Other versions of a program are compared, and may measure otherwise; a test of another datatype is another test.
    """
    found = []
    of_side = {name: ", ".join(sorted(set(texts))) for name, texts in versions.items()}
    if len(set(of_side.values())) > 1:
        told = "; ".join(f"{name} by {text}" for name, text in of_side.items())
        found.append(
            f"not measured with the same version on all fabrics ({told}): the tool may differ, not the network alone"
        )
    tests = dict.fromkeys(test for of_tests in datatypes.values() for test in of_tests)
    for test in tests:
        of_test = {name: sorted(set(of_tests[test])) for name, of_tests in datatypes.items() if test in of_tests}
        if len(of_test) > 1 and not set.intersection(*(set(one) for one in of_test.values())):
            told = "; ".join(
                f"{name} {', '.join(one or 'not told' for one in types)}" for name, types in of_test.items()
            )
            is_known = all(all(types) for types in of_test.values())
            what = "is of another datatype on each fabric" if is_known else "is not known to be of one datatype"
            found.append(f"{test} {what} ({told}): another test{'' if is_known else ' perhaps'}, which is not compared")
    return found
