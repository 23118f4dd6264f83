"""The record itself, and properties that every form of the catalogue has."""

import dataclasses
import math
from collections.abc import Callable
from functools import cache

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import sympy
from numpy.typing import ArrayLike

from asapmodel.closed_forms.catalogue import BY_NAME, FORMS
from asapmodel.closed_forms.form import ClosedForm, largest, largest_of
from asapmodel.closed_forms.notation import QUANTITIES
from asapmodel.models.evaluation import paper_deployment
from asapmodel.models.moe import inflection_expression

SPECIAL = {"D": 3.0, "L": 7.0, "eta": 0.4, "epsilon": 0.1, "theta": 0.3, "v": 2.0, "N_s": 2.0, "N": 32.0, "T": 4.0}


def values_in_domain(form: ClosedForm, rng: np.random.Generator) -> dict[str, float]:
    """Random values that the form is made for."""
    for _ in range(2000):
        values = {one.letter: SPECIAL.get(one.letter, float(rng.lognormal(0.0, 1.5))) for one in form.quantities}
        if form.holds(**values):
            return values
    raise AssertionError(f"no values in the domain of {form.name}")


@cache
def compiled(expression: sympy.Basic) -> tuple[list[str], Callable[..., object]]:
    symbols = sorted(expression.free_symbols, key=str)
    return [str(one) for one in symbols], sympy.lambdify(symbols, expression, "mpmath")


def by_mpmath(expression: sympy.Basic, values: dict[str, float]) -> object:
    """The expression by another library, at thirty digits."""
    names, function = compiled(expression)
    with mpmath.workdps(30):
        return function(*(mpmath.mpf(values[name]) for name in names))


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(FORMS) == 55


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_number_is_that_of_the_expression(form: ClosedForm) -> None:
    """Thirty digits by mpmath against the compiled function."""
    rng = np.random.default_rng(7)
    for _ in range(3):
        values = values_in_domain(form, rng)
        expected = float(by_mpmath(form.expression, values))  # type: ignore[arg-type]
        assert float(form.numeric(**values)) == pytest.approx(expected, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "largest_normal"], ids=lambda form: form.name)
def test_arrays_broadcast(form: ClosedForm) -> None:
    rng = np.random.default_rng(8)
    values = values_in_domain(form, rng)
    letter = form.quantities[0].letter
    arrays: dict[str, ArrayLike] = {**values, letter: np.full(3, values[letter])}
    many = form.numeric(**arrays)
    assert many.shape == (3,)
    assert many == pytest.approx(np.full(3, float(form.numeric(**values))), rel=1e-12)


@pytest.mark.parametrize("form", [form for form in FORMS if form.conditions], ids=lambda form: form.name)
def test_some_regime_holds_everywhere(form: ClosedForm) -> None:
    """The conditions cover the domain, and exactly one holds but for ties."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        values = values_in_domain(form, rng)
        name = form.regime(**values)
        holding = [key for key, condition in form.conditions.items() if by_mpmath(condition, values)]
        assert holding == [name]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_units_agree(form: ClosedForm) -> None:
    """All times doubled: a time doubles, a rate halves, a count or share stays. Sizes in tokens likewise."""
    if form.hardware or form.name == "largest_normal":
        return
    powers = {
        "s": (1, 0),
        "1/s": (-1, 0),
        "s^2": (2, 0),
        "token": (0, 1),
        "token^2": (0, 2),
        "token^4": (0, 4),
        "1": (0, 0),
    }
    powers |= {"s/token": (1, -1), "s/token^2": (1, -2)}
    values = values_in_domain(form, np.random.default_rng(10))
    before = float(form.numeric(**values))
    scaled = {}
    for one in form.quantities:
        seconds, tokens = powers[one.unit]
        scaled[one.letter] = values[one.letter] * 2.0**seconds * 3.0**tokens
    seconds, tokens = powers[form.unit]
    assert float(form.numeric(**scaled)) == pytest.approx(before * 2.0**seconds * 3.0**tokens, rel=1e-9)


def test_every_letter_is_used() -> None:
    assert {one.letter for form in FORMS if not form.hardware for one in form.quantities} == set(QUANTITIES)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_kind_and_error_go_together(form: ClosedForm) -> None:
    assert bool(form.error) == (form.kind != "exact")
    assert form.assumption
    assert form.latex().startswith(f"{form.left} = ")


def test_hardware_inflection_is_that_of_the_cost_models() -> None:
    form = BY_NAME["inflection_hardware"]
    r_x = next(symbol for symbol in inflection_expression().free_symbols if symbol.name == "r_x")
    assert sympy.simplify(form.expression - inflection_expression().subs(r_x, 0)) == 0
    architecture, device, profile, split = paper_deployment()
    given = {
        "P_8": device.int8_flops,
        "b_w": 1.0,
        "eta_x": profile.grouped_gemm,
        "E": split.E,
        "g": architecture.shared_experts,
        "E_total": architecture.routed_experts,
        "B_m": device.memory_bandwidth,
        "chi": 1.0,
        "eta_m": profile.memory,
        "K": architecture.experts_per_token,
    }
    assert float(form.numeric(**given)) == pytest.approx(3382, abs=0.5)
    assert not {"H", "m"} & {one.letter for one in form.quantities}


def test_bad_values_are_refused() -> None:
    form = BY_NAME["lone_cycle"]
    good = {"A": 1.0, "t1": 0.0, "t2": 0.0, "M": 1.0, "t4": 0.0, "t5": 0.0}
    assert float(form.numeric(**good)) == 2.0
    with pytest.raises(ValueError, match=r"A \(attention\) must be finite and positive, got 0.0"):
        form.numeric(**{**good, "A": 0.0})
    with pytest.raises(ValueError, match=r"t1 \(dispatch send\) must be finite and at least 0, got nan"):
        form.numeric(**{**good, "t1": math.nan})
    with pytest.raises(ValueError, match=r"no value for M "):
        form.numeric(A=1.0)
    with pytest.raises(ValueError, match="no regime of lone_cycle"):
        form.regime(**good)


def test_largest_gives_one_condition_a_branch() -> None:
    a, b, c = sympy.symbols("a b c")
    found = largest({"one": a, "two": b, "three": c})
    assert [condition.subs({a: 1, b: 3, c: 2}) for condition in found.values()] == [False, True, False]
    assert largest_of(a, b).subs({a: 1, b: 3}) == 3


def test_form_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BY_NAME["inflection"].name = "other"  # type: ignore[misc]
