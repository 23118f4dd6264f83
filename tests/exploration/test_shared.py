"""What variants share is what each would compute alone, bit by bit."""

from itertools import product

import numpy as np
import pytest

import asapmodel as am
from asapmodel import costing
from asapmodel.costs import Plateau
from asapmodel.models import attention, link, moe
from asapmodel.models.parameters import Split
from asapmodel.typical import backlog_batches

CHANGES = [
    {"D": D, "T": T, "max_batch_tokens": most, "min_batch_tokens": least}
    for D, T, most, least in product((6, 8), (4, 8), (8192, 32768), (1024, 4096))
]


@pytest.mark.parametrize("name", ["paper-asap", "paper-chunked", "paper-default"])
def test_costs_are_those_of_the_models(name: str) -> None:
    """Put together from the models as if nothing were ever kept."""
    base = am.Scenario.load(name)
    for changes in CHANGES:
        scenario = base.replace(**changes, **({"E": 32} if base.system.kind == "asap" else {}))
        found = costing.layer_costs(scenario).costs
        layout = scenario.layout
        parts = (scenario.architecture.value, scenario.device.value, scenario.profile.value)
        split = Split(layout.D, layout.T, layout.E)
        lengths = costing.length_grid(scenario)
        law = attention.reduce(*parts, split, lengths=lengths)
        assert (found.attention.fixed, found.attention.per_token, found.attention.per_token2) == law[:3]
        kind = link.synchronous if layout.kind == "sync" else link.asynchronous
        for phase, expected in kind(*parts, split).items():
            assert (getattr(found, phase).fixed, getattr(found, phase).per_token) == tuple(expected)
        averaged = 1 if layout.kind == "sync" else parts[0].layers
        batches = backlog_batches(layout, scenario.policy, lengths)
        assert found.moe == Plateau(*moe.reduce(*parts, split, batches, averaged))


def test_what_is_kept_cannot_be_changed_from_outside() -> None:
    scenario = am.Scenario.load("paper-asap")
    before = costing.length_grid(scenario)
    costing.length_grid(scenario)[:] = 0.0
    np.testing.assert_array_equal(costing.length_grid(scenario), before)


@pytest.mark.parametrize(
    "changes",
    [
        {"D": 3},
        {"kind": "sync", "E": None, "D": 8},
        {"min_batch_tokens": 1024, "pairing": "rolling"},
        {"rate": 3.0, "lengths": {"constant": 512}},
        {"ttft": "2 s"},
        {"model.layers": 30},
        {"cluster.devices": 64, "cluster.profile.gemm": 0.5},
        {"costs.moe.floor": 1e-4, "costs.layers": 10},
        {"policy": {}},
    ],
)
def test_a_variant_is_what_its_text_says(changes: dict[str, object]) -> None:
    """`replace` keeps the tables that it does not touch; a file with all of them gives the same."""
    base = am.Scenario.load("paper-asap").replace(**{"cluster.profile.link": 0.8})
    variant = base.replace(**changes)
    again = am.Scenario.parse(variant.to_toml())
    assert again == variant.replace(name="<text>".strip("<>"))
    assert again.architecture.value == variant.architecture.value
    assert again.profile.value == variant.profile.value
    assert again.devices.value == variant.devices.value
    assert again.layout == variant.layout
    assert again.policy == variant.policy


def test_a_variant_leaves_its_origin_alone() -> None:
    base = am.Scenario.load("paper-asap")
    text = base.to_toml()
    variant = base.replace(D=2, **{"workload.lengths": {"constant": 64}})
    variant.replace(**{"workload.lengths.constant": 128, "slo.ttft": 1.0})
    assert base.to_toml() == text
    assert "64" in variant.to_toml()
    assert "128" not in variant.to_toml()
