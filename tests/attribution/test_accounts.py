"""What holds for every system: components add up, the parts are the engine's, device time is complete."""

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.attribution.blame import blame_of
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from tests.attribution.checks import blamed, check_devices, check_sums, total
from tests.attribution.systems import flat_costs
from tests.strategies import Case, cases


@settings(max_examples=200)
@given(cases())
def test_components_are_times_and_add_up_to_ttft(case: Case) -> None:
    blame = blamed(case)
    assert list(blame.components) == list(blame.vocabulary)
    for name, values in blame.components.items():
        assert values.min() >= -1e-12, name
    check_sums(blame, case)


@settings(max_examples=150)
@given(cases())
def test_every_requests_parts_are_the_engines(case: Case) -> None:
    blame = blamed(case)
    out = run(case.layout, case.policy, case.costs, case.requests).outcome
    np.testing.assert_allclose(total(blame, "queueing"), out.start - case.requests.arrival, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total(blame, "kernel"), out.kernel, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total(blame, "waiting"), out.end - out.start - out.kernel, rtol=1e-9, atol=1e-11)
    parts = blame.parts()
    assert parts.queueing_s == pytest.approx(float(np.mean(out.start - case.requests.arrival)), rel=1e-9, abs=1e-12)
    assert parts.kernel_s == pytest.approx(float(out.kernel.mean()), rel=1e-9)


@settings(max_examples=150)
@given(cases())
def test_device_time_is_complete_and_busy_time_the_engines(case: Case) -> None:
    check_devices(blamed(case), case)


@settings(max_examples=60)
@given(cases())
def test_means_tables_and_classes_agree(case: Case) -> None:
    blame = blamed(case)
    table = blame.table()
    assert len(table) == len(case.requests.arrival)
    assert blame.means().sum() == pytest.approx(blame.ttft_s.mean(), rel=1e-9)
    by_length = blame.by_length((1000, 5000))
    assert by_length["share"].sum() == pytest.approx(1.0)
    names = list(blame.components)
    for name in ["ttft_s", *names]:
        weighted = (by_length["share"] * by_length[name]).sum()
        assert weighted == pytest.approx(table[name].mean(), rel=1e-9, abs=1e-12)
    short = (case.requests.prompt - case.requests.cached) <= 1000
    if short.any():
        assert by_length["share"][0] == pytest.approx(short.mean())
        assert by_length["ttft_s"][0] == pytest.approx(blame.ttft_s[short].mean())


@settings(max_examples=60)
@given(cases())
def test_a_lone_request_has_only_its_own_work(case: Case) -> None:
    alone = make_requests(case.requests.arrival[:1], case.requests.prompt[:1], case.requests.cached[:1])
    chunked = case.layout.kind == "sync" and case.policy.chunk_tokens
    blame = blame_of(case.layout, case.policy, case.costs, alone)
    wait = float(total(blame, "queueing")[0])
    exclusive = alone.prompt[0] > case.policy.exclusive_tokens
    enough = alone.prompt[0] - alone.cached[0] >= case.policy.min_batch_tokens * case.policy.slots
    at_once = case.layout.kind == "asap" and (exclusive or enough)
    assert wait == pytest.approx(0.0 if at_once else case.policy.batch_window, rel=1e-9)
    assert total(blame, "waiting")[0] == pytest.approx(0.0, abs=1e-12)
    if not chunked:
        tokens, cached = float(alone.prompt[0] - alone.cached[0]), float(alone.cached[0])
        host = case.costs.host_dispatch if case.layout.kind == "asap" and not case.policy.super_kernel else 0.0
        want = case.costs.alone(tokens, tokens * (tokens + 2 * cached), host)
        assert total(blame, "kernel")[0] == pytest.approx(want, rel=1e-9)
    if blame.paths is not None:
        assert blame.paths.filter(regex="^(group|others)_").to_numpy().sum() == 0.0


def test_bad_input_is_refused() -> None:
    nothing = make_requests(np.zeros(0), np.zeros(0, dtype=np.int64))
    with pytest.raises(ValueError, match="requests are 0"):
        blame_of(Layout("asap", 1, 1, 1), Policy(), flat_costs(), nothing)
    one = blame_of(Layout("asap", 1, 1, 1), Policy(), flat_costs(), make_requests(np.zeros(1), np.array([5])))
    with pytest.raises(ValueError, match="rising order"):
        one.by_length((1000, 500))
