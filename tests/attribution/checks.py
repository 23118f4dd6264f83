"""What every account must satisfy, whatever the system."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.attribution.blame import Blame, blame_of
from asapmodel.attribution.components import Part, members
from asapmodel.attribution.critical_path import OWNERS
from asapmodel.costs import PHASES, Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests
from tests.strategies import Case

__all__ = ["blamed", "check_devices", "check_paths", "check_sums", "stretched", "total"]


def blamed(case: Case) -> Blame:
    """The account of a case."""
    return blame_of(case.layout, case.policy, case.costs, case.requests)


def total(blame: Blame, part: Part) -> NDArray[np.float64]:
    """Components of one kind, by request."""
    return np.asarray(sum(blame.components[name] for name in members(blame.vocabulary, part)))


def check_sums(blame: Blame, case: Case) -> None:
    """Components add up to TTFT, which is the engine's."""
    engine = run(case.layout, case.policy, case.costs, case.requests).outcome
    np.testing.assert_array_equal(blame.ttft_s, engine.end - case.requests.arrival + case.costs.request_latency)
    np.testing.assert_allclose(np.sum(list(blame.components.values()), axis=0), blame.ttft_s, rtol=1e-9)


def check_devices(blame: Blame, case: Case) -> None:
    """Device time is complete, and busy time the engine's."""
    done = run(case.layout, case.policy, case.costs, case.requests)
    devices = blame.devices
    assert devices.to_numpy().min() >= -1e-9
    np.testing.assert_allclose(devices.sum(axis=1), done.makespan_s - case.requests.arrival[0], rtol=1e-9)
    assert blame.straggler_waste == pytest.approx(done.barrier_waste, abs=1e-12)
    if case.layout.kind == "sync":
        row = devices.loc["devices"]
        assert row["transfers"] == pytest.approx(done.busy_s["transfers"], rel=1e-9)
        assert row["experts"] == pytest.approx(done.busy_s["moe"], rel=1e-9)
        assert row[:4].sum() == pytest.approx(done.busy_s["engine"], rel=1e-9)
        return
    assert set(devices.index) == {name for name in done.busy_s if not name.endswith("_blocked")}
    for name, row in devices.iterrows():
        assert row[list(PHASES)].sum() == pytest.approx(done.busy_s[str(name)], rel=1e-9)
        assert row["blocked"] == pytest.approx(done.busy_s.get(f"{name}_blocked", 0.0), rel=1e-9, abs=1e-12)


def check_paths(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> None:
    """A second method: lengthen a phase by a millionth, and see how much later everything ends."""
    blame = blame_of(layout, policy, costs, requests)
    assert blame.paths is not None
    before = run(layout, policy, costs, requests).outcome.end
    share = 2.0**-20
    for phase in PHASES:
        after = run(layout, policy, stretched(costs, phase, 1.0 + share), requests).outcome.end
        on_path = blame.paths[[f"{owner}_{phase}" for owner in OWNERS]].sum(axis=1)
        np.testing.assert_allclose((after - before) / share, on_path, rtol=1e-6, atol=1e-6 * before.max())


def stretched(costs: LayerCosts, phase: str, factor: float) -> LayerCosts:
    """All times of a phase multiplied; dense layers and overhead are attention, host dispatch is the experts'."""

    def longer(one: Affine) -> Affine:
        return Affine(one.fixed * factor, one.per_token * factor)

    a, m = costs.attention, costs.moe
    if phase == "attention":
        quadratic = Quadratic(a.fixed * factor, a.per_token * factor, a.per_token2 * factor)
        step = costs.step_overhead * factor
        return replace(costs, attention=quadratic, dense=longer(costs.dense), step_overhead=step)
    if phase == "moe":
        plateau = Plateau(m.floor * factor, m.per_token * factor)
        return replace(costs, moe=plateau, host_dispatch=costs.host_dispatch * factor)
    changes: dict[str, Any] = {phase: longer(getattr(costs, phase))}
    return replace(costs, **changes)
