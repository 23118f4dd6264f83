"""Every example in a docstring runs, under the module's true name."""

import doctest
import importlib

import pytest

from tests.test_structure import MODULES


@pytest.mark.parametrize("name", [name for name in MODULES if "__main__" not in name])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
