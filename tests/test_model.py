"""What every model of ours holds to."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from fabricbench.model import LARGEST_INTEGER, Model, RdmaEnd


class Counted(Model):
    """Integers in all places in which a record has them."""

    one: int = 0
    several: tuple[int | None, ...] = ()
    by_name: dict[str, list[int]] = {}


@pytest.mark.parametrize("field", ['"one": N', '"several": [1, N]', '"by_name": {"a": [N]}'])
def test_no_integer_is_beyond_64_bits_wherever_it_stands(field: str):
    for number in (LARGEST_INTEGER, -LARGEST_INTEGER - 1):
        Counted.model_validate_json("{" + field.replace("N", str(number)) + "}")
    for number in (LARGEST_INTEGER + 1, -LARGEST_INTEGER - 2, 10**400):
        with pytest.raises(ValidationError):
            Counted.model_validate_json("{" + field.replace("N", str(number)) + "}")


def test_bounds_of_its_own_are_kept():
    with pytest.raises(ValidationError, match="less than or equal to 254"):
        RdmaEnd(port=255)
