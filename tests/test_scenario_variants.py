"""Variants of scenarios: replaced keys, copies, and files written and read again."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.errors import InputError
from asapmodel.policy import Layout, Policy
from asapmodel.scenario import Scenario
from asapmodel.scenario_workload import Values
from asapmodel.tomlfile import format_toml, parse_toml
from tests.scenario_texts import ASAP, CONTRACT


def test_replace() -> None:
    scenario = Scenario.load("paper-asap")
    variant = scenario.replace(D=8, rate=np.float64(4), seed=np.int64(7), name="wide", min_batch_tokens=4096)
    assert (variant.layout.D, variant.workload.rate, variant.workload.seed) == (8, 4.0, 7)
    assert (variant.name, variant.policy.min_batch_tokens) == ("wide", 4096)
    assert scenario.layout.D == 4, "the original stays"
    assert variant.replace(rate=None).workload.rate is None
    dotted = scenario.replace(**{"policy.batch_window": 0.1, "costs.moe.floor": "0.3 ms", "model.layers": 30})
    assert dotted.policy.batch_window == 0.1
    assert dotted.costs_override.given()["moe"].given() == {"floor": pytest.approx(3e-4)}
    assert dotted.architecture.value.layers == 30
    assert dotted.replace(costs=None, **{"policy.batch_window": None}).policy == Policy()
    assert scenario.replace(**{"cluster.profile.gemm": 0.5}).profile.value.gemm == 0.5
    named = scenario.replace(**{"cluster.profile": "cloudmatrix384-paper"})
    assert named.replace(**{"cluster.profile.gemm": 0.5}).profile.value.gemm == 0.5
    assert scenario.replace(lengths={"values": np.array([50, 60])}).workload.lengths == Values(values=(50, 60))
    assert scenario.replace(kind="sync", D=8, E=None).layout == Layout("sync", 8, 4, 32)
    chunked = Scenario.load("paper-default").replace(chunk_tokens=8192)
    assert chunked.policy.chunk_tokens == 8192
    assert scenario.replace() == scenario


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_windw": 1}, "batch_windw: unknown key; the nearest valid key is 'batch_window'"),
        ({"policy.batch_windw": 1}, "policy.batch_windw: unknown key; the nearest valid key is 'batch_window'"),
        ({"polcy.batch_window": 1}, "polcy.batch_window: unknown key; the nearest valid key is 'policy.batch_window'"),
        ({"layers": 3}, "layers: unknown key; write 'model.layers' or 'costs.layers'"),
        ({"rate": -1}, "workload.rate: is -1; give a number greater than 0"),
        (
            {"chunk_tokens": 1},
            "policy.chunk_tokens: is 1, but chunks are not available with one queue for all groups; "
            "give routing = 'round_robin', 'fewest_requests', 'fewest_tokens' or 'least_work', "
            "or leave chunk_tokens out",
        ),
        ({"E": None}, "system.E: is missing; kind = 'asap' needs the number of MoE devices"),
        ({"policy": 3}, "policy: is 3; write a table, [policy] with key = value lines"),
    ],
)
def test_replace_refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as info:
        Scenario.load("paper-asap").replace(**changes)
    assert str(info.value) == f"<paper-asap>: {message}"


def test_scenarios_are_frozen_hashable_and_travel_between_processes() -> None:
    contract = Scenario.parse(CONTRACT, where="scenario.toml")
    with pytest.raises(FrozenInstanceError):
        contract.name = "x"  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        contract.workload.rate = 2.0
    assert len({contract, contract.replace(), contract.replace(rate=5.0)}) == 2
    assert pickle.loads(pickle.dumps(contract)) == contract
    assert copy.deepcopy(contract) == contract
    assert contract != contract.replace(name="other")


tokens = st.integers(1, 10**6)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(
    kind=st.sampled_from(["sync", "asap"]),
    D=st.integers(1, 16),
    T=st.integers(1, 8),
    rate=st.none() | st.floats(1e-6, 1e6),
    window=st.floats(0, 1e3) | st.sampled_from(["50 ms", "0.1 s", "3 us"]),
    seed=st.integers(0, 2**63 - 1),
    low=tokens,
    more=st.integers(0, 10**6),
    attainment=st.none() | st.floats(0.001, 0.999),
    lengths=st.none()
    | st.builds(
        lambda mu, sigma: {"family": "lognormal", "mu": mu, "sigma": sigma}, st.floats(-9, 9), st.floats(0.1, 9)
    )
    | st.builds(lambda values: {"values": values}, st.lists(st.integers(1, 32768), min_size=1, max_size=5)),
    fixed=st.floats(0, 1),
)
def test_to_toml_round_trips(
    kind: str,
    D: int,
    T: int,
    rate: float | None,
    window: float | str,
    seed: int,
    low: int,
    more: int,
    attainment: float | None,
    lengths: dict[str, object] | None,
    fixed: float,
) -> None:
    scenario = Scenario.load("paper-asap").replace(
        kind=kind,
        D=D,
        T=T,
        E=16 if kind == "asap" else None,
        rate=rate,
        batch_window=window,
        seed=seed,
        min_prompt_tokens=None,
        lengths=lengths,
        min_batch_tokens=low,
        max_batch_tokens=low + more,
        statistic=None,
        attainment=attainment,
        **{"costs.attention.fixed": fixed},
    )
    again = Scenario.parse(scenario.to_toml(), where="<paper-asap>")
    assert again == scenario
    assert again.policy == scenario.policy
    assert again.to_toml() == scenario.to_toml()


@given(texts)
def test_any_text_survives_or_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as info:
        Scenario.load("paper-asap").replace(statistic=text)
    assert info.value.key == "slo.statistic"
    assert parse_toml(format_toml({"a": {"text": text}}), "s.toml") == {"a": {"text": text}}


def test_an_overridden_profile_keeps_the_default_cluster() -> None:
    plain = Scenario.parse(ASAP)
    slower = plain.replace(**{"cluster.profile.send_latency": 1e-4})
    assert slower.profile.value.send_latency == 1e-4
    assert slower.device.value == plain.device.value
