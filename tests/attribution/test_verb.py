"""The verb: the same run as `evaluate` with the graph engine."""

import numpy as np
import pytest

import asapmodel as am
from asapmodel.attribution.blame import Blame
from asapmodel.errors import InputError
from asapmodel.verbs.blame import blame

SCENARIOS = ("paper-asap", "paper-default", "paper-chunked")


@pytest.mark.parametrize("name", SCENARIOS)
def test_parts_are_those_of_evaluate(name: str) -> None:
    scenario = am.Scenario.load(name).replace(duration="20 s")
    result = am.evaluate(scenario, 8.0, engine="graph")
    account = blame(scenario, 8.0)
    assert isinstance(account, Blame)
    parts = account.parts()
    assert parts.queueing_s == pytest.approx(result.parts.queueing_s, rel=1e-9)
    assert parts.kernel_s == pytest.approx(result.parts.kernel_s, rel=1e-9)
    assert parts.waiting_s == pytest.approx(result.parts.waiting_s, rel=1e-9)
    assert account.straggler_waste == pytest.approx(result.barrier_waste, abs=1e-12)
    assert result.records is not None
    np.testing.assert_array_equal(account.ttft_s, result.records.ttft_s)


@pytest.mark.parametrize("rate", [4.0, 12.0])
@pytest.mark.parametrize("name", ["afd-async", "afd-sync"])
def test_measured_systems_add_up(name: str, rate: float) -> None:
    scenario = am.Scenario.load(name)
    account, result = blame(scenario, rate), am.evaluate(scenario, rate, engine="graph")
    assert result.records is not None
    np.testing.assert_array_equal(account.ttft_s, result.records.ttft_s)
    np.testing.assert_allclose(np.sum(list(account.components.values()), axis=0), account.ttft_s, rtol=1e-9)
    assert account.parts().queueing_s == pytest.approx(result.parts.queueing_s, rel=1e-9)
    assert account.straggler_waste == pytest.approx(result.barrier_waste, abs=1e-12)


def test_a_replayed_trace_has_a_rate() -> None:
    scenario = am.Scenario.load("trace-chunked")
    result = am.evaluate(scenario, engine="graph")
    assert blame(scenario).means().sum() == pytest.approx(result.ttft.mean_s, rel=1e-9)


@pytest.mark.parametrize(("rate", "message"), [(None, "workload.rate: is missing"), (-1.0, "positive number")])
def test_bad_rates_are_refused(rate: float | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        blame(am.Scenario.load("paper-asap"), rate)
