"""Profiles with ``elementwise``: costs to the last bit without, by hand with, assumptions, refusals."""

import pytest

import asapmodel as am
from asapmodel import catalog
from asapmodel.costing import layer_costs

KEY = "cluster.profile.elementwise"
SYNC, ASAP = (am.Scenario.load(name) for name in ("paper-default", "paper-asap"))
HBM = 1.6e12


@pytest.mark.parametrize("name", ["paper-default", "paper-chunked", "paper-asap", "trace-default"])
def test_costs_are_as_they_were_without_the_key(name: str) -> None:
    """No shipped profile has it; nothing is added then, and no assumption said."""
    scenario = am.Scenario.load(name)
    assert scenario.profile.value.elementwise == 0
    assert not [one for one in layer_costs(scenario).assumptions if "element-wise" in one.name]
    assert all(catalog.load_profile(one).value.elementwise == 0 for one in catalog.names("profiles"))


@pytest.mark.parametrize("scenario", [SYNC, ASAP])
def test_traffic_is_in_attention_and_experts_alone(scenario: am.Scenario) -> None:
    before, after = (layer_costs(one).costs for one in (scenario, scenario.replace(**{KEY: 0.8})))
    for name in ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv", "host_dispatch"):
        assert getattr(after, name) == getattr(before, name)
    assert (after.attention.fixed, after.attention.per_token2) == (before.attention.fixed, before.attention.per_token2)
    assert after.moe.floor == before.moe.floor
    half = layer_costs(scenario.replace(**{KEY: 0.4})).costs
    for part in ("attention", "moe"):
        added = getattr(after, part).per_token - getattr(before, part).per_token
        assert added > 0
        assert getattr(half, part).per_token - getattr(before, part).per_token == pytest.approx(2 * added)


def test_dense_latent_attention_by_hand() -> None:
    """DeepSeek-V3 on dies, INT8: kB of the cost models' page, over T, and without what asynchronous receives move."""
    for scenario, blocking in ((SYNC, True), (ASAP, False)):
        own = scenario.replace(**{"model.use": "deepseek-v3", "cluster.memory_bytes": 1e13})
        before, after = (layer_costs(one).costs for one in (own, own.replace(**{KEY: 0.8})))
        layout, H, m = scenario.layout, 7168, 2048
        heads = 128 / layout.T * (2 * 2 * 64 + 64 * 2 + 3 * 128) + 2 * 64  # rotary twice, repeated, output quantised
        attention = 8 * H + 2 * 3 * H + 7 * 1536 + 6 * 576 + heads
        home = 8 * H + 10 * H + 6 * H + blocking * (2 * 9 + 2) * H
        experts = 3 * H + 9 * m + 8 * (9 * m + 4 * H + blocking * 2 * H)
        found = after.attention.per_token - before.attention.per_token
        assert found == pytest.approx((attention + home / layout.T) / (0.8 * HBM))
        assert after.moe.per_token - before.moe.per_token == pytest.approx(experts / layout.E / (0.8 * HBM))


def test_other_models_and_precisions_have_their_own() -> None:
    """GPUs take SGLang's kernels; grouped-query models theirs; 16-bit products need no quantisation."""
    for change in (
        {"cluster.device": "h800", "cluster.profile.use": "h800-nvlink"},
        {"model.use": "qwen3-235b-a22b"},
        {"precision": "bf16"},
    ):
        scenario = SYNC.replace(**{"cluster.memory_bytes": 1e13, **change})
        before, after = (layer_costs(one).costs for one in (scenario, scenario.replace(**{KEY: 0.8})))
        assert after.attention.per_token > before.attention.per_token
        assert after.moe.per_token > before.moe.per_token


def test_answers_say_so_and_get_slower() -> None:
    given = layer_costs(SYNC.replace(**{KEY: 0.8})).assumptions
    names = [one.name for one in given if one.name.startswith("element-wise")]
    assert names == [f"element-wise traffic in costs.{part}.per_token" for part in ("attention", "moe")]
    slow, fast = (am.evaluate(one, 2.0).ttft.mean_s for one in (SYNC.replace(**{KEY: 0.8}), SYNC))
    assert slow > fast


@pytest.mark.parametrize("value", [1.2, -0.1, "fast"])
def test_refusals(value: object) -> None:
    with pytest.raises(am.InputError, match=r"cluster.profile.elementwise"):
        SYNC.replace(**{KEY: value})
