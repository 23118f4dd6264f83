"""The table's rows on one server, each at its printed precision."""

from collections.abc import Callable

import pytest

from asapmodel.solvers import laws
from asapmodel.solvers.deterministic import mdc_mean_wait, mdc_wait_cdf, mdc_wait_quantile
from asapmodel.solvers.renewal_arrivals import AtomExponential, gimc_wait, gimc_wait_root
from asapmodel.solvers.single_server import (
    mg1_wait,
    mg1_wait_moments,
    mm1_wait,
    mm1_wait_quantile,
    n_policy_wait,
    vacation_wait,
)
from asapmodel.solvers.size_based import mm1_size_based
from asapmodel.solvers.two_moment import departure_scv, heavy_traffic_wait, kingman_bound, klb_wait
from tests.solvers.table import Row, rows, where

SERVICES = {
    "M/D/1": laws.deterministic_moments(1.0, 3),
    "M/M/1": laws.erlang_moments(1.0, 1, 3),
    "M/E2/1": laws.erlang_moments(1.0, 2, 3),
    "M/E4/1": laws.erlang_moments(1.0, 4, 3),
    "M/U(0,2)/1": laws.uniform_moments(0.0, 2.0, 3),
    "M/H2bal_scv4/1": laws.hyperexponential_moments(*laws.balanced_hyperexponential(1.0, 4.0), 3),
    "M/LogNormal_scv2/1": laws.lognormal_moments(1.0, 2.0, 3),
}
INTERARRIVALS: dict[str, Callable[[float], Callable[[float], float]]] = {
    "D/M/1": laws.deterministic_transform,
    "E2/M/1": lambda mean: laws.erlang_transform(mean, 2),
    "H2bal_scv4/M/1": lambda mean: laws.hyperexponential_transform(*laws.balanced_hyperexponential(mean, 4.0)),
}
QNA = ["QNA departure scv (Marshall)", "QNA departure scv multi-server"]
SCV = {"M": 1.0, "D": 0.0}


@pytest.mark.parametrize("row", where(*SERVICES))
def test_poisson_arrivals(row: Row) -> None:
    rho = row.number("rho")
    if row.quantity == "mean_wait_Wq":
        row.check(mg1_wait_moments(rho, SERVICES[row.system])[0])
        if row.system == "M/M/1":
            row.check(mm1_wait(rho, 1.0))
        if row.system == "M/D/1":
            row.check(mdc_mean_wait(rho, 1.0))
    elif row.quantity == "second_moment_wait":
        row.check(mg1_wait_moments(rho, SERVICES[row.system])[1])
    elif row.quantity == "P(wait)":
        row.check(gimc_wait_root(laws.erlang_transform(1 / rho, 1), 1 / rho, 1.0))
    elif row.quantity == "P(W<=x)":
        row.check(mdc_wait_cdf(rho, 1.0, 1, row.number("x")))
    else:
        p = float(row.quantity.removeprefix("wait_quantile_"))
        row.check(mm1_wait_quantile(rho, 1.0, p) if row.system == "M/M/1" else mdc_wait_quantile(rho, 1.0, 1, p))


@pytest.mark.parametrize("row", where(*INTERARRIVALS))
def test_renewal_arrivals(row: Row) -> None:
    mean = 1 / row.number("rho")
    wait: AtomExponential = gimc_wait(INTERARRIVALS[row.system](mean), mean, 1.0)
    if row.quantity == "sigma=P(wait)":
        row.check(wait.waits)
    elif row.quantity == "mean_wait_Wq":
        row.check(wait.mean)
    else:
        row.check(wait.quantile(float(row.quantity.removeprefix("wait_quantile_"))))


@pytest.mark.parametrize("row", where("M/M/1 multiple vacations", "M/D/1 multiple vacations"))
def test_vacations(row: Row) -> None:
    scv = {"rho={};V=const 2": 0.0, "rho={};V~Exp(mean 2)": 1.0}[row.parameters.replace(row.given["rho"], "{}")]
    row.check(vacation_wait(row.number("rho"), 1.0, SCV[row.system[2]], 2.0, scv))


@pytest.mark.parametrize("row", where("M/M/1 N-policy", "M/D/1 N-policy"))
def test_n_policy(row: Row) -> None:
    row.check(n_policy_wait(row.number("rho"), 1.0, SCV[row.system[2]], int(row.number("N"))))


@pytest.mark.parametrize("row", where("M/M/1 SJF", "M/M/1 PSJF", "M/M/1 SRPT"))
def test_size_based(row: Row) -> None:
    """The table prints 9 digits of the integral; at 0.9 it contradicts the survey that it quotes, and so do we."""
    row.check(getattr(mm1_size_based(row.number("rho"), 1.0), row.system.rsplit(" ", 1)[1].lower()))


@pytest.mark.parametrize("row", where("GI/G/1"))
def test_two_moments(row: Row) -> None:
    formula = {"Kingman_upper_bound_Wq": kingman_bound, "heavy_traffic_Wq": heavy_traffic_wait, "KLB_Wq": klb_wait}
    row.check(formula[row.quantity](row.number("rho"), 1.0, row.number("ca2"), row.number("cs2")))


@pytest.mark.parametrize("row", where(*QNA))
def test_departures(row: Row) -> None:
    """QNA's floor of the service scv is in the table's rows for several servers only."""
    floor = 0.2 if row.system.endswith("multi-server") else 0.0
    servers = int(row.number("m"))
    row.check(departure_scv(row.number("rho"), row.number("ca2"), row.number("cs2"), servers, floor))


def test_no_row_is_left_out() -> None:
    """Every system of the table with one FCFS server and independent times is above or in another file."""
    here = {*SERVICES, *INTERARRIVALS, *QNA, "GI/G/1"}
    named = {row.system for row in rows() if row.system.endswith("/1") and "MAP" not in row.system}
    assert named - here == {"M^X/M/1", "M^X/D/1", "M/M[a,b]/1", "PH/PH/1"}
    assert mg1_wait(0.5, 1.0, 1.0) == pytest.approx(1.0, rel=1e-14)
