"""What a host's inventory says, in plain words: its keys are made for programs (`cpu.cache_bytes.L2`)."""

from __future__ import annotations

from fabricbench.model import Metric
from fabricbench.report.words import size_words, value_words

GROUPS = {
    "allowance": "allowed here",
    "cpu": "processor",
    "hugepages": "huge pages",
    "limits": "limit",
    "permissions": "permission",
}
"""What the first part of a key stands for, where that is not its own word."""
WORDS = {
    "cxx": "C++",
    "ip": "IP",
    "mac": "MAC address",
    "mpi": "MPI",
    "mtu": "MTU",
    "numa": "NUMA",
    "python": "Python",
    "rps": "RPS",
    "smt": "SMT",
}
GIB = 2**30
UNITS = {"B": ("bytes",), "bit/s": ("bit", "s")}
OF_QUESTIONS = ("has", "is", "may")
NAMED_BY_THE_KERNEL = ("sysctl", "mitigations", "offloads")
"""Behind these stands a name that people look up as it is."""


def fact_words(key: str, value: str) -> tuple[str, str]:
    """Return what a fact is called and what it comes to: `processor: cache L2`, `2 MiB`."""
    group, *rest = key.split(".")
    head, unit = _words(group)
    head = GROUPS.get(group, head)
    if group == "net" and rest:
        head, rest = f"interface {rest[0]}", rest[1:]
    is_name = group in NAMED_BY_THE_KERNEL
    words = [".".join(rest)] if is_name else []
    for part in () if is_name else rest:
        told, own_unit = (part, "") if is_name else _words(part)
        words.append(told)
        unit = unit or own_unit
        is_name = part in NAMED_BY_THE_KERNEL
    return ": ".join(filter(None, (head, " ".join(words)))), _value(value, unit)


def _words(part: str) -> tuple[str, str]:
    """Return the words of a part of a key, and its unit, with which some end."""
    words = part.split("_")
    unit = next((unit for unit, ends in UNITS.items() if words[-len(ends) :] == [*ends]), "")
    words = words[: len(words) - len(UNITS.get(unit, ()))]
    if len(words) > 1 and words[0] in OF_QUESTIONS:
        words = words[1:]
    return " ".join(WORDS.get(word, word) for word in words), unit


def _value(value: str, unit: str) -> str:
    if unit == "B" and value.isdecimal():
        number = int(value)
        return size_words(number) if number < GIB else f"{number / GIB:.3g} GiB"
    if unit == "bit/s" and value.replace(".", "", 1).isdecimal():
        return value_words(Metric.THROUGHPUT, float(value))
    return value
