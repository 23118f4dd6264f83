"""Whose word holds on which constant, and mistakes in the words."""

from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel.catalog import FIELDS, entry_path, parse_profile
from asapmodel.costing import layer_costs
from asapmodel.models.parameters import Device, Profile
from asapmodel.uncertainties.linear import acting
from asapmodel.uncertainties.measurements import MEASUREMENTS, measurement_of
from asapmodel.uncertainties.sources import Sources, sources_of
from asapmodel.uncertainties.table import Declared
from tests.uncertainty.systems import SYNC, toy

BASE = '[system]\nkind = "sync"\nD = 8\nT = 4\n'
CLUSTER = '[cluster]\nuse = "cloudmatrix384"\n'
PROFILE = entry_path("profiles", "cloudmatrix384-paper").read_text()


def found(scenario: am.Scenario) -> Sources:
    return sources_of(scenario, layer_costs(scenario).costs)


def laws(scenario: am.Scenario) -> dict[str, tuple[str, float, float]]:
    return {one.key: (one.law.law, one.law.low, one.law.high) for one in found(scenario).constants}


def with_profile(folder: Path, text: str) -> am.Scenario:
    (folder / "p.toml").write_text(text)
    return am.Scenario.parse(BASE + '[cluster]\nuse = "cloudmatrix384"\nprofile = "p.toml"\n', base=folder)


def test_the_catalogue_s_word() -> None:
    assert laws(am.Scenario.parse(BASE)) == {
        "cluster.profile.gemm": ("uniform", 0.774, 0.827),
        "cluster.profile.send_latency": ("uniform", pytest.approx(49e-6), pytest.approx(55e-6)),
        "cluster.profile.expert_load_cv": ("uniform", 1.3, 3.2),
        "cluster.profile.collective_link": ("uniform", 0.485, 0.52),
    }


def test_an_override_silences_it_and_the_scenario_has_the_last_word() -> None:
    scenario = am.Scenario.parse(BASE + CLUSTER).replace(**{"cluster.profile.gemm": 0.7})
    assert "cluster.profile.gemm" not in laws(scenario)
    again = scenario.replace(
        **{
            "uncertainty.cluster.profile.gemm": "10 %",
            "uncertainty.cluster.profile.expert_load_cv": "exact",
            "uncertainty.cluster.int8_flops": {"low": "700 TOPS", "high": "800 TOPS", "law": "triangular"},
        }
    )
    assert laws(again) | {"cluster.profile.send_latency": ()} == {
        "cluster.profile.gemm": ("reciprocal", pytest.approx(0.007), 1.0),
        "cluster.profile.send_latency": (),
        "cluster.profile.collective_link": ("uniform", 0.485, 0.52),
        "cluster.int8_flops": ("triangular", 7e14, 8e14),
    }
    (own,) = [one for one in found(again).constants if one.key == "cluster.profile.gemm"]
    assert own.law.value == 0.7
    assert own.law.spread == pytest.approx(0.07)


def test_a_calibrated_profile_brings_its_covariance(tmp_path: Path) -> None:
    text = PROFILE.replace("value = 0.9, unit", "value = 0.9, standard_error = 0.03, unit", 2)
    text += '\n[covariance]\nfields = ["core", "indexer"]\nmatrix = [[9e-4, -4.5e-4], [-4.5e-4, 9e-4]]\n'
    scenario = with_profile(tmp_path, text)
    sources = found(scenario)
    names = [one.key.rpartition(".")[2] for one in sources.constants]
    i, j = names.index("core"), names.index("indexer")
    assert sources.correlation[i, j] == sources.correlation[j, i] == pytest.approx(-0.5)
    assert sources.constants[i].law.high == 1.0
    assert sources.constants[i].origin == "profile p.toml"
    # The scenario's own word on one of them cuts the tie.
    own = found(scenario.replace(**{"uncertainty.cluster.profile.core": "1 %"}))
    assert np.array_equal(own.correlation, np.eye(len(own.constants)))


def test_units_and_shares_of_a_file(tmp_path: Path) -> None:
    said = 'gemm = { value = 0.8, low = 0.774, high = 0.827, unit = "1"'
    assert said in PROFILE
    text = PROFILE.replace(said, 'gemm = { value = 80, low = 75, high = 85, law = "triangular", unit = "%"')
    text = text.replace("recv_latency = { value = 10, unit", "recv_latency = { value = 10, standard_error = 2, unit")
    seen = {one.key: one.law for one in found(with_profile(tmp_path, text)).constants}
    gemm, receive = seen["cluster.profile.gemm"], seen["cluster.profile.recv_latency"]
    assert (gemm.law, gemm.low, gemm.value, gemm.high) == ("triangular", 0.75, 0.8, 0.85)
    assert [receive.value, receive.spread] == pytest.approx([10e-6, 2e-6])
    assert (receive.law, receive.low) == ("normal", 0.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("low = 0.774, ", "", r"gemm\.low: is missing; give both ends"),
        ("low = 0.774", "low = 0.81", r"gemm\.low: and high are 0\.81 and 0\.827, but the value is 0\.8"),
        ("low = 0.774", "standard_error = 0.1, low = 0.774", "cannot be combined with standard_error"),
        ("low = 0.774, high = 0.827", 'law = "uniform"', "without a range"),
    ],
)
def test_mistakes_in_a_profile(old: str, new: str, words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        parse_profile(PROFILE.replace(old, new, 1), "p.toml")


def test_costs_are_factors_and_only_what_acts_is_drawn() -> None:
    scenario = toy("costs.moe.per_token = { low = 1e-7, high = 3e-7 }", 'costs.attention = "5 %"')
    assert laws(scenario) == {
        "costs.moe.per_token": ("uniform", pytest.approx(0.5), pytest.approx(1.5)),
        "costs.attention": ("normal", 0.01, np.inf),
    }
    assert found(toy('cluster.profile.gemm = "5 %"')).constants[0].key == "cluster.profile.gemm"
    assert acting(toy('cluster.profile.gemm = "5 %"'), found(toy('cluster.profile.gemm = "5 %"'))).constants == ()
    paper = am.Scenario.load("paper-asap")
    assert {one.key.rpartition(".")[2] for one in acting(paper, found(paper)).constants} == {
        "gemm",
        "send_latency",
        "expert_load_cv",
    }


def test_a_file_goes_round() -> None:
    scenario = toy('"costs.attention.per_token" = "10 %"', "costs.moe.floor = 'exact'", together=0.1)
    assert am.Scenario.parse(scenario.to_toml(), where="toy.toml") == scenario
    assert scenario.uncertainty.declared == (
        Declared("costs.moe.floor"),
        Declared("costs.attention.per_token", relative=0.1),
    )
    assert scenario.replace(uncertainty={}).uncertainty.declared == ()
    assert scenario != scenario.replace(uncertainty={})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('workload.rate = "10 %"', r"uncertainty\.workload: unknown key"),
        ('costs.mo = "3 %"', r"uncertainty\.costs\.mo: is no constant .*; the nearest constant is 'costs\.moe'"),
        ("costs.moe = { low = 1e-7, high = 2e-7 }", r"costs\.moe: is a law of several coefficients"),
        ("costs.moe.per_token = 3e-8", 'give "10 %"'),
        ('costs.moe.per_token = "0 %"', "give a standard deviation above 0"),
        ("costs.moe.per_token = { low = 2e-7, high = 1e-7 }", "give the lower end first"),
        ('costs.moe.per_token = { std = "3" }', "'3' has no unit"),
        ("costs.moe.per_token = { low = 3e-7, high = 4e-7 }", "is outside 3e-07 to 4e-07; give a range that holds"),
        ('costs.moe.floor = "3 %"', "is of a constant that is 0"),
        ("cluster.profile.gemm = { low = 0.5, high = 1.5 }", r"gemm: is 1\.5"),
        ('costs.moe.per_token = { low = 1e-7, high = 3e-7, law = "normal" }', "give 'uniform' or 'triangular'"),
        ('covariance = { keys = ["costs.mo"], matrix = [[1.0]] }', "the nearest constant is 'costs.moe'"),
        ('covariance = { keys = ["costs.moe"], matrix = [[1.0, 0.0]] }', "does not fit the 1 keys"),
        (
            'covariance = { keys = ["costs.moe", "costs.attention"], matrix = [[0.01, 0.02], [0.02, 0.01]] }',
            r"correlate by 2",
        ),
        (
            'covariance = { keys = ["costs.moe", "costs.attention", "costs.dispatch_send"], matrix = '
            "[[0.01, 0.009, -0.009], [0.009, 0.01, 0.009], [-0.009, 0.009, 0.01]] }",
            "is none: correlation has the eigenvalue",
        ),
    ],
)
def test_mistakes_in_a_scenario(line: str, words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.uncertainty(am.Scenario.parse(f"{SYNC}[uncertainty]\n{line}\n"), samples=16)


def test_every_constant_has_its_measurement() -> None:
    for name in FIELDS[Profile]:
        assert measurement_of(f"cluster.profile.{name}") in MEASUREMENTS, name
    for name in FIELDS[Device]:
        assert measurement_of(f"cluster.{name}") in MEASUREMENTS, name
    assert measurement_of("costs.combine_recv.fixed").name == "transfers"
    assert measurement_of("cluster.link_bandwidth").name == "transfers"
    assert measurement_of("cluster.memory_bandwidth").name == "peaks of the device"
