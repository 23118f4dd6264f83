"""The table's rows on several servers, each at its printed precision."""

import ast
import math
from fractions import Fraction

import pytest

from asapmodel.solvers.deterministic import mdc_mean_wait
from asapmodel.solvers.multi_server import erlang_b, erlang_c, mmc_wait, mmck_queue, pooled_number
from asapmodel.solvers.two_moment import allen_cunneen_wait
from tests.solvers.table import Row, rows, where

# (parameters, quantity): why the value computed here is not within half of the last printed digit
REASONS = {
    ("lambda=3;mu=2;c=2;K=5", quantity): "the source cut the digits off; in rational arithmetic the value is ours"
    for quantity in ("p0", "pK", "mean_wait_Wq")
}
SERVERS = (1, 2, 3, 4, 5, 8, 10, 16, 20, 50)


@pytest.mark.parametrize("row", where(*(f"M/M/{c}" for c in SERVERS if c > 1)))
def test_exponential(row: Row) -> None:
    mu, c = row.number("mu"), int(row.given.get("c") or row.system.rsplit("/", 1)[1])
    rate = row.number("lambda") if "lambda" in row.given else row.number("rho") * c * mu
    wait = mmc_wait(rate, mu, c)
    if row.quantity == "P(wait)":
        row.check(erlang_c(c, rate / mu))
    elif row.quantity == "mean_wait_Wq":
        row.check(wait.mean)
    elif row.quantity == "mean_queue_Lq":
        row.check(rate * wait.mean)
    elif row.quantity == "mean_response":
        row.check(wait.mean + 1 / mu)
    else:
        row.check(wait.quantile(float(row.quantity.removeprefix("wait_quantile_"))))


@pytest.mark.parametrize("row", where("M/M/c/c"))
def test_loss(row: Row) -> None:
    c, load = int(row.number("c")), row.number("offered_load")
    row.check(erlang_b(c, load))
    row.check(mmck_queue(load, 1.0, c, c).full)


@pytest.mark.parametrize("row", where("M/M/c/K"))
def test_finite_room(row: Row, request: pytest.FixtureRequest) -> None:
    if (row.parameters, row.quantity) in REASONS:
        reason = REASONS[row.parameters, row.quantity]
        request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason))
    queue = mmck_queue(row.number("lambda"), row.number("mu"), int(row.number("c")), int(row.number("K")))
    names = {"p0": "empty", "pK": "full", "mean_wait_Wq": "mean_wait"}
    row.check(getattr(queue, names.get(row.quantity, row.quantity)))


def test_finite_room_where_digits_were_cut() -> None:
    queue = mmck_queue(3.0, 2.0, 2, 5)
    cut = [math.floor(value * 1e6) / 1e6 for value in (queue.empty, queue.full, queue.mean_wait)]
    assert cut == [0.179334, 0.085113, 0.230857]
    weights = [Fraction(1)]
    for n in range(1, 6):
        weights.append(weights[-1] * 3 / (2 * min(n, 2)))
    admitted = 3 * (1 - weights[-1] / sum(weights))
    exact = sum((n - 2) * w for n, w in enumerate(weights) if n > 2) / sum(weights) / admitted
    assert queue.mean_wait == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("row", where("asymmetric M/M/m"))
def test_unequal_servers(row: Row) -> None:
    """The table quotes Bolch's approximation, equal servers of the mean rate; the exact value is in the properties."""
    rate, rates = row.number("lambda"), ast.literal_eval(row.given["mu"])
    row.check(rate / sum(rates) if row.quantity == "U" else pooled_number(rate, rates))


@pytest.mark.parametrize("row", where(*(f"M/D/{c}" for c in SERVERS if c > 1)))
def test_constant_service(row: Row) -> None:
    c = int(row.number("c"))
    row.check(mdc_mean_wait(row.number("rho") * c, 1.0, c))


@pytest.mark.parametrize("row", where("GI/G/2", "GI/G/4", "GI/G/8"))
def test_two_moments(row: Row) -> None:
    c = int(row.number("c"))
    row.check(allen_cunneen_wait(row.number("rho") * c, 1.0, row.number("ca2"), row.number("cs2"), c))


def test_no_row_is_left_out() -> None:
    here = {f"M/{law}/{c}" for law in "MD" for c in SERVERS} | {f"GI/G/{c}" for c in (1, 2, 4, 8)}
    named = {row.system for row in rows() if row.system.rpartition("/")[2].isdigit() and row.system.count("/") == 2}
    assert {system for system in named if not system.endswith("/1")} <= here
