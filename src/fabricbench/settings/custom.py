"""Settings of the user's own: a command that reads a value, and one that writes it: a driver's parameter, a path of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from fabricbench.model import Model
from fabricbench.quantity import count
from fabricbench.settings.setting import CannotSetError, Setting, SettingsHost, Write
from fabricbench.testbed.model import Fabric, Handed

VALUE = "{value}"
Tokens = Annotated[tuple[Handed, ...], Field(min_length=1)]


class Custom(Model):
    """`[[condition.custom]]`: what `read` prints is the value, `write` has `{value}` where it goes."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$", max_length=60)
    read: Tokens
    write: Tokens
    value: str

    @field_validator("value", mode="before")
    @classmethod
    def _is_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _writes_the_value(self) -> Custom:
        if not any(VALUE in token for token in self.write):
            raise ValueError(f"write: found no {VALUE} in it, needed it where the value goes")
        if not self.value.strip() or "\n" in self.value:
            raise ValueError("value: needed one line of text")
        return self


class CustomTable(Model):
    """What a condition sets by commands of its own."""

    custom: tuple[Custom, ...] = ()

    @field_validator("custom")
    @classmethod
    def _names_are_unique(cls, value: tuple[Custom, ...]) -> tuple[Custom, ...]:
        names = [one.name for one in value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} is named twice")
        return value


class CustomKind:
    """Whatever two commands read and write."""

    NAME = "custom"

    OUTLIVES_BOOT = True

    def is_of_host(self, setting: Setting) -> bool:
        """Tell whether it is the whole machine's."""
        del setting
        return False  # nobody knows; its entry outlives the node

    def asked(self, table: CustomTable, fabric: Fabric) -> Iterator[Setting]:
        """Yield what is asked; a fabric has no part in it."""
        del fabric
        for one in table.custom:
            yield Setting(kind=self.NAME, name=one.name, value=one.value.strip(), read=one.read, write=one.write)

    def read(self, setting: Setting, host: SettingsHost) -> str:
        """Return what the command prints: one line that can be written again."""
        printed = host.run(setting.read)
        if not printed or "\n" in printed:
            found = f"{count(len(printed.splitlines()), 'line')} from `{' '.join(setting.read)}`"
            raise CannotSetError(found, "one line, the value", "correct `read` of the [[condition.custom]]")
        return printed

    def writes(self, settings: Sequence[Setting], device: str) -> Iterator[Write]:
        """Yield the command of each."""
        del device
        for one in settings:
            yield Write(tuple(token.replace(VALUE, str(one.value)) for token in one.write))
