"""The study of architectures: what the variants change, gains that must hold, and the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from asapmodel import catalog
from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.studies.models import page
from asapmodel.studies.models_cases import Model, cases, measure, variants, with_model
from asapmodel.studies.models_figure import models_figure
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio


@pytest.fixture(scope="module")
def sparse() -> Model:
    return measure("deepseek-v3.2", {})


def test_cases_are_the_catalogue_and_the_variants() -> None:
    small = {"mixtral-8x22b"}  # fewer experts than devices
    assert set(cases()) == set(catalog.names("models")) - small | set(variants())
    for changes in variants().values():
        with_model("paper-asap", changes)
    few, many = (variants()[name] for name in variants() if "as wide," in name)
    for one in (few, many):
        assert one["model.routed_experts"] * one["model.moe_intermediate"] == 256 * 2048
        assert one["model.experts_per_token"] * one["model.moe_intermediate"] == 8 * 2048


def test_bytes_go_with_the_hidden_size() -> None:
    home = layer_costs(Scenario.load("paper-asap")).costs
    other = with_model("paper-asap", {"model.use": "glm-5"})
    costs, copies = layer_costs(other).costs, other.architecture.value.experts_per_token / 8
    # 6144 values and a scale in 13 x 512 bytes
    assert costs.dispatch_send.per_token == pytest.approx(copies * 6656 / 7680 * home.dispatch_send.per_token)
    assert costs.combine_send.per_token == pytest.approx(copies * 6144 / 7168 * home.combine_send.per_token)
    assert with_model("paper-asap", {}).profile.value == Scenario.load("paper-asap").profile.value


def test_the_gain_is_mostly_uneven_experts(sparse: Model) -> None:
    even = measure("even", {"cluster.profile.expert_load_cv": 0.0})
    assert sparse.gain > 0.25
    assert sparse.tuned_gain > sparse.gain
    assert 0 <= even.gain < sparse.gain / 2
    assert even.busiest == 1.0 < sparse.busiest
    assert sum(sparse.shares) == pytest.approx(1.0)


def test_page_and_figure(sparse: Model, tmp_path: Path) -> None:
    models = [replace(sparse, name=name, rps=(10.0, 12.0 + k, 15.0 + k)) for k, name in enumerate(cases())]
    models[-1] = replace(models[-1], rps=(10.0, 9.0, 11.0))
    text = page(models, {"deepseek-v3.2": Ratio(1.9, 1.8, 2.0)})
    assert not re.search(r"[{}]|nan", text)
    assert f"loses to chunks**: {models[-1].name}" in text
    assert "+90.0% (+80.0% to +100.0%)" in text
    save_figure(models_figure(models), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
