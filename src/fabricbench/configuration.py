"""Reads what people write (TOML) into a model, and says what is wrong with it: file, key, what was found, what is needed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fabricbench.errors import UsageError
from fabricbench.printable import shortened

ModelType = TypeVar("ModelType", bound=BaseModel)

Place = tuple[int | str, ...]
"""The keys and the numbers of entries that lead to a value."""

MOST_QUOTED = 60
"""Characters of a value that is quoted in an error."""

MOST_PROBLEMS = 8
"""More than these at once are not read anyway."""


def expanded(path: str) -> Path:
    """Return a path with the home directory in place of its `~`; UsageError where this user has none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{path} stands for a place in a home directory, and there is none: HOME is not set, and this user has no passwd entry",
            hint="write the whole path, or set HOME",
        ) from None


def read_table(path: Path) -> dict[str, Any]:
    """Return the file's content as it is; UsageError if it cannot be read or is no TOML."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", hint="check the path") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="give a TOML file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: byte {error.start} is not UTF-8", hint="give a TOML file") from error
    except RecursionError:
        raise UsageError(
            f"{path} cannot be read: its lists or tables are nested too deep",
            hint="take brackets out; nothing that is read here nests so deep",
        ) from None
    except ValueError as error:  # TOMLDecodeError, or Python's own, of a number with thousands of digits
        raise UsageError(
            f"{path} is not valid TOML: {error}",
            hint='correct that place: a table is [campaign] or [[experiment]], then `key = value`, texts in quotes: name = "r7"',
        ) from error


def validated(
    data: Mapping[str, Any], model: type[ModelType], source: str, context: Mapping[str, Any] | None = None
) -> ModelType:
    """Return `data` as `model`; UsageError lists every problem, with `source` as the place it came from.

    `context` is what validators may need to know: the `folder` that files are named beside, say.
    """
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        raise usage_error(error, model, source, data) from error


def usage_error(error: ValidationError, model: type[BaseModel], source: str, data: Any = None) -> UsageError:
    """Return the UsageError for what pydantic found in `data` that came from `source`."""
    details = mistakes(error)
    problems = [problem_of(detail, model, data) for detail in details]
    shown = problems[:MOST_PROBLEMS]
    if len(problems) > MOST_PROBLEMS:
        shown.append(f"and {len(problems) - MOST_PROBLEMS} more")
    if len(shown) == 1:
        has_key = bool(details[0]["loc"])
        return UsageError(f"{source}: {shown[0]}", hint="correct that key" if has_key else "correct the file")
    lines = "".join(f"\n  {line}" for line in shown)
    return UsageError(f"{source}: {len(problems)} problems{lines}", hint="correct those keys")


def first_problem(error: ValidationError) -> str:
    """Return one line for what is wrong with a file that a program wrote, where a list of problems helps nobody."""
    detail = error.errors(include_url=False, include_context=False)[0]
    message = detail["msg"].removeprefix("Value error, ")
    return shortened(f"{key_path(detail['loc'])}: {message}" if detail["loc"] else message)


def text_or_number(value: Any) -> Any:
    """Check what may be either before a union of types does, which would tell a problem for each of them."""
    if not isinstance(value, str | int | float):
        raise ValueError(f"found {shown(value)}, needed text in quotes or a number")  # noqa: TRY004 - pydantic's
    return value


SHELL_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)\}|(?P<plain>[A-Za-z_]\w*))")
OF_THE_LOADER = frozenset({"ORIGIN", "LIB", "PLATFORM"})
"""Names behind a `$` that the dynamic loader itself replaces, in LD_LIBRARY_PATH and LD_PRELOAD (ld.so(8))."""


def check_expanded(key: str, variables: Mapping[str, str]) -> None:
    """Raise KeyProblemError for a value that names another variable: no shell reads it, on this machine or on the nodes."""
    for name, value in variables.items():
        for found in SHELL_VARIABLE.finditer(value):
            if (found["braced"] or found["plain"]) not in OF_THE_LOADER:
                raise KeyProblemError(
                    (key, name),
                    f"{shown(value)} has {found[0]}, and no shell puts a value in its place: every rank would get the text as it "
                    f"stands; needed the whole value as it is on the nodes (`echo {found[0]}` prints it there), or a script that "
                    "sets it and starts the program",
                )


def did_you_mean(word: str, known: list[str]) -> str:
    """Return `; did you mean 'x'?` for the known word that is nearest, else an empty text."""
    near = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


class KeyProblemError(ValueError):
    """What a validator of a whole table finds wrong at one of its keys; `place` is the way to that key from the table."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{key_path(place)}: {problem}")
        self.place = place
        self.problem = problem


def place_of(detail: ErrorDetails) -> Place:
    """Return where a problem is: at the key that pydantic names, or below it at the one that a validator of the table does."""
    error = detail.get("ctx", {}).get("error")
    return (*detail["loc"], *(error.place if isinstance(error, KeyProblemError) else ()))


def mistakes(error: ValidationError) -> list[ErrorDetails]:
    """Return what pydantic found but for what only follows from other mistakes."""
    details = error.errors(include_url=False)
    return [detail for detail in details if not _follows(detail, details)]


def _follows(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Whether this is no mistake of its own: pydantic calls a list too short where all its entries are wrong."""
    place = detail["loc"]
    return detail["type"] == "too_short" and any(
        len(one["loc"]) > len(place) and one["loc"][: len(place)] == place for one in details
    )


def problem_of(detail: ErrorDetails, model: type[BaseModel], data: Any = None) -> str:
    """Return one problem that pydantic found in words, with its key; `data` tells which of several models was meant."""
    location, found = place_of(detail), detail["input"]
    key = key_path(location)
    match detail["type"]:
        case "extra_forbidden":
            return f"{key}: unknown key{_of_unknown_key(str(location[-1]), model, location[:-1], data)}"
        case "missing":
            return f"{key}: missing, it is required"
        case "enum" | "literal_error":
            options = _options(detail)
            return f"{key}: found {found!r}, needed one of {', '.join(options)}{did_you_mean(str(found), options)}"
        case "value_error":
            error = detail["ctx"]["error"]
            text = error.problem if isinstance(error, KeyProblemError) else str(error)
            return f"{key}: {text}" if key else text
    return f"{key or 'the file'}: found {shown(found)}, needed {_needed(detail)}"


_LIST, _TABLE, _WHOLE = "a list: [...]", "a table: { key = value }", "a whole number"
_IN_TOML = {
    "tuple_type": _LIST,
    "list_type": _LIST,
    "too_short": "at least one entry",
    "string_type": "text in quotes",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "ip_v4_network": "an IPv4 network such as 10.10.0.0/24",
}
"""What pydantic calls by Python's names, in the words of people who write TOML."""


def _needed(detail: ErrorDetails) -> str:
    kind, key = detail["type"], detail["loc"][-1] if detail["loc"] else ""
    if kind in {"tuple_type", "list_type"} and isinstance(detail["input"], Mapping):
        path = ".".join(part for part in detail["loc"] if isinstance(part, str))
        return f"a list: write [[{path}]], not [{path}]"
    if kind == "string_pattern_mismatch" and key == "name":
        return "small letters, digits, '.', '_' and '-'"
    if kind == "string_pattern_mismatch":
        return words_of_pattern(detail["ctx"]["pattern"])
    message = (
        detail["msg"].removeprefix("Input should be ").removeprefix("a valid ").removeprefix("String should have ")
    )
    return _IN_TOML.get(kind, f"{message[0].lower()}{message[1:]}")


_WORDS_OF_PATTERNS = {
    r"^/[^\x00]*$": "a path that begins with /",
    r"^[A-Za-z_]\w*$": "a name of letters, digits and '_' that begins with no digit",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "a name of letters, digits and '_' that begins with no digit",
    r"^[A-Za-z0-9_][A-Za-z0-9._-]*$": "a file's name of letters, digits, '.', '_' and '-' that begins with a letter or digit",
    r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$": "letters, digits, blanks, '.', '_' and '-', a letter or digit first",
    r"^[A-Za-z0-9_.-]{1,63}$": "letters, digits, '.', '_' and '-', 63 of them at most",
    r"^[^\x00\s]+$": "a word without blanks",
    r"^[a-z_]+$": "small letters and '_'",
}
"""What the patterns of our models ask for: few of those who write TOML read regular expressions."""


def words_of_pattern(pattern: str) -> str:
    """Return what a regular expression asks for, in words where they are known."""
    return _WORDS_OF_PATTERNS.get(pattern, f"what matches {pattern}")


_OF_THE_KEY = "[key]"
"""What pydantic puts behind a key of a table that is itself the problem."""


def key_path(location: Place) -> str:
    """Write a location as people name keys: `fabric[2].wire.line_rate`, counting tables from 1."""
    text = ""
    for part in location:
        if part != _OF_THE_KEY:
            text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def shown(found: object) -> str:
    """Return what was found as people are shown it: as TOML writes it, and not all of a long one."""
    return shortened(repr(list(found) if isinstance(found, tuple) else found), MOST_QUOTED)


def _options(detail: ErrorDetails) -> list[str]:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    return [word.strip(" '") for word in expected.replace(" or ", ",").split(",") if word.strip(" '")]


MOST_KINDS = 3
"""Where more of them have a key, to name them says nothing of what was meant."""


def _of_unknown_key(word: str, model: type[BaseModel], location: tuple[int | str, ...], data: Any) -> str:
    """Return what to say of a key that there is not at `location`: of which kind it is, what was meant, or what there is."""
    models, kind = _models_at(model, location), _kind_written(data, location)
    meant = [one for one in models if _kind_of(one) == kind is not None] or models
    known = sorted({key for one in meant for key in _keys(one)})
    having = sorted(f'"{_kind_of(one)}"' for one in models if _kind_of(one) is not None and word in _keys(one))
    if kind is not None and word not in known and 0 < len(having) <= MOST_KINDS:
        return f' of kind = "{kind}"; it is one of kind = {" or ".join(having)}'
    return did_you_mean(word, known) or f"; known keys: {', '.join(known)}"


def _kind_written(data: Any, location: tuple[int | str, ...]) -> Any:
    """Return the `kind` that the table at `location` says it is, else the name of its list, which may be one: `[[hpl]]`.

    None where there is no data to look at.
    """
    try:
        for part in location:
            data = data[part]
        return data.get("kind", next((part for part in reversed(location) if isinstance(part, str)), None))
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def _models_at(model: type[BaseModel], location: tuple[int | str, ...]) -> set[type[BaseModel]]:
    """Return the models that may stand at `location`."""
    models = {model}
    for part in location:
        inside = {
            inner
            for outer in models
            for name, field in outer.model_fields.items()
            if part in {name, field.alias}
            for inner in _models_in(field.annotation)
        }
        # A part that is no key is an index or the tag of a union, which pydantic puts into the location as well.
        models = inside or models
    return models


def _keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def _kind_of(model: type[BaseModel]) -> Any:
    """Return which of several models this is, None: it is one alone."""
    field = model.model_fields.get("kind")
    return None if field is None or field.is_required() else field.default


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        if getattr(annotation, "has_kinds", False):  # one of several models, which `kind` tells
            for one in annotation.__subclasses__():
                yield from _models_in(one)
    elif not (isinstance(annotation, type) and issubclass(annotation, Enum)):
        for inner in get_args(annotation):
            yield from _models_in(inner)
