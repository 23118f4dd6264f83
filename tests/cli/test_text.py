import doctest
import math
from importlib import import_module

import pytest

from asapmodel.cli.text import number, percent, span


@pytest.mark.parametrize("name", ["text", "options"])
def test_examples(name: str) -> None:
    tested = doctest.testmod(import_module(f"asapmodel.cli.{name}"))
    assert tested.failed == 0
    assert tested.attempted > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (9.999, "10.0"),
        (0.9996, "1.00"),
        (99.96, "100"),
        (-3.14159, "-3.14"),
        (123456.7, "123,457"),
        (1e9, "1e+09"),
        (math.inf, "-"),
        (math.nan, "-"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_percent_and_span() -> None:
    assert [percent(share) for share in (0.0, 0.5, 0.9999, 1.0, 1.2)] == ["0.0", "50.0", "99.9", "100", "120.0"]
    assert span((1.0, 2.0)) == "1.00 to 2.00"
    assert span(None) == "-"
