"""The measured deployments: nothing judged is calibrated on, the page is complete, the fit is what is shipped."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_deployments import TARGETS, page, predictions, summary
from asapmodel.studies.evidence_deployments_data import ASYNC, SYNC, calibrated, cells, log_of, replays, statistics
from asapmodel.studies.evidence_deployments_fit import (
    EXPERTS_OWN,
    EXPERTS_SHARED,
    fit_asynchronous,
    fit_synchronous,
)
from asapmodel.studies.evidence_deployments_lone import behind_another, padding_slope, slope_left
from asapmodel.studies.evidence_deployments_mechanisms import waited
from asapmodel.systems.arrays import make_requests


def test_only_low_rates_without_prefix_are_calibrated_on() -> None:
    used = [one for one in cells() if calibrated(one)]
    assert {(one.system, one.budget, one.rate) for one in used} == {
        (system, budget, rate) for system in (ASYNC, SYNC) for budget in (16384, 65536) for rate in (4, 6)
    }


def test_steps_waited_by_hand() -> None:
    """Steps end at 1, 2 (two answers) and 3; a request from 0.5 to 2 sees two of them end."""
    arrival, end = np.array([0.2, 0.5, 1.5, 0.1]), np.array([1.0, 2.0, 2.05, 3.0])
    assert waited(arrival, end - arrival).tolist() == [1, 2, 1, 3]


def test_forming_ahead_explains_the_steps_waited() -> None:
    """The mean of the measured run lies near batches formed ahead and far from batches formed at the start."""
    log = log_of(SYNC, 4)
    measured = waited(log.requests.arrival, log.ttft).mean()
    ahead, late = (
        np.mean([waited(log.requests.arrival, x).mean() for x in replays(SYNC, 65536, 4, schedule_ahead=flag)])
        for flag in (True, False)
    )
    assert abs(ahead - measured) < 0.15 < 0.4 < measured - late


def test_predictions_are_as_near_as_the_page_says() -> None:
    rows = summary()
    assert [row.count for row in rows] == [6, 6, 6, 6]
    assert all(row.median_error < 0.2 for row in rows)
    assert {row.target_median for row in rows} == {x for pair in TARGETS.values() for x in pair}
    at = {(one.system, one.budget, one.rate): found for one, found in predictions()}
    for one in cells():
        other = at.get((SYNC, one.budget, one.rate))
        if one.system == ASYNC and one.prefix == 0 and other is not None:
            shared = next(x for x in cells() if x[:4] == (SYNC, *one[1:4]))
            if abs(one.mean_s / shared.mean_s - 1) > 0.1:
                assert (at[one[:3]].mean_s < other.mean_s) == (one.mean_s < shared.mean_s), one


def test_the_page_has_all_its_numbers() -> None:
    text = page(predictions())
    assert "{" not in text
    assert "nan" not in text


def test_shared_constants_are_shared_and_fixed_ones_those_of_the_fit() -> None:
    own, shared = (layer_costs(Scenario.load(name)).costs for name in ("afd-async", "afd-sync"))
    assert own.attention == shared.attention
    assert own.request_latency == shared.request_latency
    for law, start in ((own, EXPERTS_OWN), (shared, EXPERTS_SHARED)):
        for name in ("dispatch_send", "dispatch_recv", "moe", "combine_send", "combine_recv", "dense", "host_dispatch"):
            assert getattr(law, name) == getattr(start, name), name


def test_padding_is_what_lone_requests_of_the_synchronous_system_lack() -> None:
    """Slope left without padding: not 0 by two errors at least, and within one of what padding says."""
    slope, error = slope_left()
    assert padding_slope() == pytest.approx(3 * 7 * 0.0478e-6)
    assert slope > 2 * error
    assert abs(slope - padding_slope()) < error


def test_what_follows_a_step_in_turn_is_read_off_by_hand() -> None:
    """Three groups in turn; every prompt takes 1 s, of which 0.02 s are outside its step."""
    arrival = np.repeat(np.arange(4) * 0.5, 3) + np.tile([0.0, 0.1, 0.2], 4)
    end = np.repeat([1.0, 1.98, 2.96, 3.94], 3) + np.tile([0.0, 0.1, 0.2], 4)
    log = replace(log_of(ASYNC, 4), requests=make_requests(arrival, np.full(12, 1000)), ttft=end - arrival)
    assert behind_another(log, np.polynomial.Polynomial([1.0])) == pytest.approx(0.02)


def test_padding_and_idle_iterations_bring_the_calibrated_cells_together() -> None:
    """Errors of the two budgets lie nearer to one another with both than without."""
    known = {(one.budget, one.rate): one.mean_s for one in cells() if one.system == SYNC and calibrated(one)}

    def spread(**rule: Any) -> float:
        errors = [statistics(replays(SYNC, b, r, **rule)).mean_s / mean - 1.0 for (b, r), mean in known.items()]
        return float(np.ptp(errors))

    assert spread() < 0.15 < spread(pad_groups=False, idle_steps=False)


@pytest.mark.slow
def test_the_shipped_constants_are_those_of_the_fit() -> None:
    found, law = fit_asynchronous(), layer_costs(Scenario.load("afd-async")).costs
    shipped = (law.attention.per_token, law.attention.per_token2, law.step_overhead, law.request_latency)
    np.testing.assert_allclose(found.values, shipped, rtol=0.02)
    shared = layer_costs(Scenario.load("afd-sync")).costs.step_overhead
    np.testing.assert_allclose(fit_synchronous(law).values, [shared], rtol=0.02)
    assert statistics(replays(ASYNC, 65536, 8)).mean_s == pytest.approx(0.975, rel=0.1)
