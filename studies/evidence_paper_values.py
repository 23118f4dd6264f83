"""Values of the paper's rows under every assumption, their errors and predictions; computed once and kept."""

from functools import cache

import numpy as np

from asapmodel.studies.evidence_paper_assumptions import by_name
from asapmodel.studies.evidence_paper_cells import interval
from asapmodel.studies.evidence_paper_fit import fit_of
from asapmodel.studies.evidence_paper_rows import SLO_ROWS, TARGETS, Value, model_value
from asapmodel.studies.evidence_paper_systems import Systems
from asapmodel.studies.pages import plain
from asapmodel.studies.paper import Claim, claims

__all__ = [
    "SLO_TARGET",
    "TARGET",
    "error_of",
    "family_of",
    "holds",
    "limit_of",
    "quick_value",
    "shown",
    "stated",
    "systems_of",
    "typical_error",
    "value_of",
]

SLO_TARGET, TARGET = 0.10, 0.20


@cache
def stated() -> dict[str, Claim]:
    """Rows of the paper by id."""
    return {claim.id: claim for claim in claims()}


@cache
def systems_of(name: str) -> Systems:
    """Systems with the constants fitted under an assumption, the chosen ones where it was not refitted."""
    return Systems(fit_of(by_name(name)).values, by_name(name))


@cache
def value_of(row: str, name: str) -> Value:
    """The model's value of a row under an assumption, by runs."""
    return model_value(row, systems_of(name))


@cache
def quick_value(row: str, name: str) -> float:
    """The same with throughputs by the queueing engine."""
    value = model_value(row, systems_of(name), "queueing")
    assert isinstance(value, float)
    return value


def holds(row: str) -> bool:
    """Whether the stated number lies between the 5 and 95 % points of the prediction."""
    low, high = interval(row)
    return low <= float(stated()[row].value) <= high


def error_of(row: str, value: Value) -> float:
    """Relative error of a stated number."""
    assert isinstance(value, float)
    return value / float(stated()[row].value) - 1.0


def family_of(row: str) -> str:
    """The family of a target."""
    if row in SLO_ROWS:
        return "SLO throughput"
    return "decomposition" if row.startswith("decomp") else "TTFT"


def limit_of(row: str) -> float:
    """The error that a target may have."""
    return SLO_TARGET if row in SLO_ROWS else TARGET


def shown(claim: Claim, value: Value) -> str:
    """A value, with its error where a number is stated."""
    if isinstance(value, tuple):
        return f"{plain(value[0])} to {plain(value[1])}"
    if claim.relation in ("=", "~", "grows as"):
        return f"{plain(value)} ({error_of(claim.id, value):+.0%})"
    return plain(value)


def typical_error(name: str) -> float:
    """Median absolute error of the targets under an assumption."""
    return float(np.median([abs(error_of(row, quick_value(row, name))) for row in TARGETS]))
