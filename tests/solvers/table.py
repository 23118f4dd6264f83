"""The table of exact and published values, and what "passes at the printed precision" means."""

import ast
import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

_PATH = Path(__file__).resolve().parent.parent / "data" / "queueing_tables.csv"


@dataclass(frozen=True)
class Row:
    """One value: of which system, with which parameters, which quantity, printed how, from where."""

    index: int
    system: str
    parameters: str
    quantity: str
    value: str
    source: str

    @property
    def given(self) -> dict[str, str]:
        """Parameters written as ``a=1;b=2``, as text."""
        pairs = (part.split("=", 1) for part in self.parameters.split(";") if "=" in part)
        return {name.strip(): value.strip() for name, value in pairs}

    def number(self, name: str) -> float:
        """One parameter as a number."""
        return float(ast.literal_eval(self.given[name]))

    @property
    def printed_error(self) -> float:
        """Half a unit of the last printed digit; a trailing ``.0`` of a whole number counts as exact to 12 digits."""
        text = self.value.lower()
        mantissa, _, exponent = text.partition("e")
        decimals = len(mantissa.partition(".")[2])
        whole = mantissa.endswith(".0") or decimals == 0
        unit = 10.0 ** (int(exponent or 0) - decimals)
        # The producers printed 12 significant digits at most and dropped trailing zeros of short values.
        floor = abs(float(text)) * 1e-11
        return max(floor, 1e-12) if whole else max(0.5 * unit, floor)

    def check(self, computed: float) -> None:
        """Assert agreement at the printed precision."""
        error = self.printed_error * 1.0000001
        assert abs(computed - float(self.value)) <= error, (
            f"row {self.index}: {self.system} {self.parameters} {self.quantity}: "
            f"printed {self.value}, computed {computed!r} ({self.source})"
        )


@cache
def rows() -> tuple[Row, ...]:
    """All rows, in the order of the file."""
    lines = [line for line in _PATH.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return tuple(Row(k, **row) for k, row in enumerate(csv.DictReader(lines)))


def where(*systems: str) -> list[object]:
    """Rows whose system is one of `systems` or starts with one that ends in ``*``, as pytest parameters."""

    def fits(system: str) -> bool:
        return any(system.startswith(name[:-1]) if name.endswith("*") else system == name for name in systems)

    return [pytest.param(row, id=f"{row.index}-{row.quantity}") for row in rows() if fits(row.system)]


def marked(chosen: Iterable[Row], reasons: Mapping[int, str]) -> list[ParameterSet]:
    """Rows as pytest parameters, those that cannot pass as strict expected failures with their reason."""

    def marks(row: Row) -> list[pytest.MarkDecorator]:
        reason = reasons.get(row.index)
        return [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError)]

    return [pytest.param(row, id=f"{row.index}-{row.quantity}", marks=marks(row)) for row in chosen]
