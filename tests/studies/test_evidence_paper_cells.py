"""What the paper leaves open: the cells, their weights against exact integrals, averages, other shapes of lengths."""

from math import log, pi

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from asapmodel.studies import evidence_paper_cells
from asapmodel.studies.evidence_paper_assumptions import ASSUMPTIONS, AXES, BUDGET, CELLS, CHOSEN, SHIPPED, by_name
from asapmodel.studies.evidence_paper_cells import average, interval, marginals, predicted, weights, weights_of
from asapmodel.studies.evidence_paper_fit import Stored, fit_of, stored_fits
from asapmodel.studies.evidence_paper_lengths import scaled_lengths
from asapmodel.studies.evidence_paper_rows import TARGETS, model_value
from asapmodel.studies.evidence_paper_systems import CONSTANTS, Systems


def test_cells_are_what_the_text_allows() -> None:
    """Every combination once; the chosen and the shipped assumption are among them."""
    assert len(CELLS) == np.prod([len(ways) for ways in AXES.values()]) == 90
    names = {one.name for one in CELLS.values()}
    assert len(names) == 90
    assert {CHOSEN.fitted_as, SHIPPED.fitted_as} <= names
    values = fit_of(CHOSEN).values
    for budget in (2048, 32768):
        one = Systems(values, CELLS["contention", True, budget, "packed"])
        assert one.scenario("default").policy.max_batch_tokens == budget
        assert one.scenario("default").policy.batch_window == values["batch_window"]
        assert (one.scenario("asap").policy.pairing, one.assumption.packed) == ("rolling", True)
    lone = Systems(values, CELLS["senders", False, 2048, "locked"])
    assert lone.scenario("default").policy.batch_window == 0.0
    assert lone.scenario("asap").policy.pairing == "locked"


def test_variants_differ_from_the_chosen_one_in_what_they_name() -> None:
    chosen = Systems(fit_of(CHOSEN).values, CHOSEN)
    padded = Systems(fit_of(CHOSEN).values, by_name("+ padding")).scenario("default").policy
    wanted = chosen.scenario("default").replace(routing="round_robin", pad_groups=True).policy
    assert padded == wanted
    assert padded.max_batch_tokens == 8192


def test_every_fit_is_stored_within_bounds() -> None:
    fits = stored_fits()
    assert set(fits) == {one.fitted_as for one in (*CELLS.values(), *ASSUMPTIONS) if one.fitted_as}
    for one in fits.values():
        assert all(constant.low <= one.values[constant.name] <= constant.high for constant in CONSTANTS)
        assert one.objective == min(one.ends)


def test_laplace_is_exact_for_linear_residuals() -> None:
    """The integral of exp(-objective) over two constants, by quadrature, for two models."""
    rng = np.random.default_rng(5)
    fits, exact = {}, {}
    for name in ("one", "other"):
        slopes, wanted = rng.normal(size=(4, 2)) + 1.0, rng.normal(size=4)
        inverse = slopes.T @ slopes
        least = np.linalg.solve(inverse, slopes.T @ wanted)

        def objective(x: float, y: float, slopes=slopes, wanted=wanted) -> float:  # type: ignore[no-untyped-def]
            return 0.5 * float(np.sum((slopes @ [x, y] - wanted) ** 2))

        volume = -0.5 * float(np.linalg.slogdet(inverse)[1])
        fits[name] = Stored({}, objective(*least), (), volume)
        exact[name], _ = dblquad(lambda y, x: np.exp(-objective(x, y)), -12, 12, -12, 12, epsabs=1e-8)
        assert exact[name] == pytest.approx(2 * pi * np.exp(volume - objective(*least)), rel=1e-6)
    found = weights_of(fits)
    assert found["one"] == pytest.approx(exact["one"] / sum(exact.values()), rel=1e-6)


def test_stored_weights() -> None:
    """They sum to one along every axis; a Default that waits is likelier, no budget is refused."""
    assert sum(weights().values()) == pytest.approx(1.0)
    found = marginals()
    assert all(sum(ways.values()) == pytest.approx(1.0) for ways in found.values())
    assert found["Default waits"]["True"] > 0.5
    budgets = found[BUDGET]
    assert min(budgets["2048"], budgets["4096"]) > max(budgets["16384"], budgets["32768"]) > 0.1


def test_stored_predictions_are_the_systems() -> None:
    """Rows that need no SLO throughput, in three cells, anew."""
    assert set(predicted()) == set(weights())
    for key in (("senders", False, 2048, "locked"), ("hot receivers", True, 32768, "packed")):
        one = CELLS[key]
        systems = Systems(fit_of(one).values, one)
        for row in ("ttft-1-chunked", "ttft-4-asap-default", "decomp-queue-short"):
            assert predicted()[one.name][row] == pytest.approx(model_value(row, systems), rel=1e-4)


@pytest.mark.slow
def test_stored_throughputs_are_the_systems() -> None:
    systems = Systems(fit_of(CHOSEN).values, CHOSEN)
    for row in TARGETS:
        assert predicted()[CHOSEN.fitted_as][row] == pytest.approx(model_value(row, systems, "queueing"), rel=2e-3)


def test_larger_batches_carry_more() -> None:
    """Default's throughput grows with its budget in every way of the other decisions, within the noise of the fits."""
    for collectives, waits, _, pairs in {(*key[:2], 0, key[3]) for key in CELLS}:
        found = [predicted()[CELLS[collectives, waits, n, pairs].name]["rps-default"] for n in (2048, 8192, 32768)]
        assert found[0] < found[1] < found[2], (collectives, waits, pairs)


def test_average_of_two_equal_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between them a log-normal law; within them the constants' covariance along the derivatives; a run's scatter."""
    monkeypatch.setattr(evidence_paper_cells, "weights", lambda: {"a": 0.5, "b": 0.5})
    stored = {"a": {"rps-default": 4.0}, "b": {"rps-default": 9.0}}
    monkeypatch.setattr(evidence_paper_cells, "predicted", lambda: stored)
    slope = np.array([0.3, 0.0, -0.1, 0.0, 0.0])
    matrix = np.diag([0.04, 1.0, 0.09, 1.0, 1.0])
    monkeypatch.setattr(evidence_paper_cells, "_gradients", lambda: {"rps-default": slope})
    monkeypatch.setattr(evidence_paper_cells, "_covariance", lambda: matrix)
    monkeypatch.setattr(evidence_paper_cells, "_scatter", lambda: {"rps-default": 0.05})
    assert average("rps-default") == pytest.approx(6.0)
    low, high = interval("rps-default")
    spread = np.sqrt((log(1.5)) ** 2 + 0.3**2 * 0.04 + 0.1**2 * 0.09 + 0.05**2)
    assert log(high / 6.0) == pytest.approx(1.6449 * spread, rel=1e-4)
    assert high * low == pytest.approx(36.0)


def test_weibull_lengths_meet_what_the_paper_states() -> None:
    """Shape 0.6 and scale 3149.5, cut to 31 to 100k tokens, have mean 5k; scaled ones are quantiles of that law."""
    shape, scale = 0.6, 3149.5

    def tail(x: float, size: float) -> float:
        return float(np.exp(-((x / size) ** shape)))

    low, high = tail(31.0, scale), tail(1e5, scale)
    area, _ = quad(lambda x: tail(x, scale) - high, 31.0, 1e5, limit=200)
    assert 31.0 + area / (low - high) == pytest.approx(5000.0, rel=1e-3)
    lengths = np.array(scaled_lengths("Weibull", 3500.0))
    assert lengths.mean() == pytest.approx(3500.0, abs=1.0)
    assert lengths.min() >= 31
    assert lengths.max() <= 32768


def test_lengths_of_traces_are_scaled_ones() -> None:
    lengths = np.array(scaled_lengths("traces", 3300.0))
    assert lengths.mean() == pytest.approx(3300.0, abs=1.0)
    assert np.median(lengths) < 0.4 * lengths.mean()  # two services: a short body, a long tail
    one = by_name("+ lengths of traces")
    drawn = Systems(fit_of(one).values, one).ready("asap").requests(20.0).prompt
    assert drawn.mean() == pytest.approx(fit_of(one).values["mean_tokens"], rel=0.06)
