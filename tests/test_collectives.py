"""Profiles with ``collectives = "contention"``: costs, assumptions, catalogue, calibration and the command line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel import catalog
from asapmodel.catalog import _schema
from asapmodel.costing import layer_costs, length_grid
from asapmodel.models import collectives, link, moe
from asapmodel.models.parameters import Profile, Split
from asapmodel.models.replication import with_copies
from asapmodel.typical import backlog_batches
from asapmodel.verbs.calibrate import calibrate
from tests.cli.helpers import process

KEY = "cluster.profile.collectives"
DEFAULT = am.Scenario.load("paper-default")
CONTENDED = DEFAULT.replace(**{KEY: "contention"})
PAPER = catalog.entry_path("profiles", "cloudmatrix384-paper").read_text()


def with_line(line: str) -> str:
    return f"{line}\n{PAPER}"


@pytest.mark.parametrize("name", ["paper-default", "paper-chunked", "paper-asap", "trace-default"])
def test_senders_are_the_default_to_the_last_bit(name: str) -> None:
    scenario = am.Scenario.load(name)
    assert scenario.profile.value.collectives == "senders"
    assert layer_costs(scenario) == layer_costs(am.Scenario.load(name).replace())
    assert layer_costs(scenario.replace(**{KEY: "senders"})).costs == layer_costs(scenario).costs


def test_default_costs_are_the_models() -> None:
    """Transfers and experts of a synchronous system from the laws themselves, bit by bit."""
    layout = DEFAULT.layout
    hardware = (DEFAULT.architecture.value, DEFAULT.device.value, DEFAULT.profile.value)
    split = Split(layout.D, layout.T, layout.E)
    costs = layer_costs(DEFAULT).costs
    for name, law in link.synchronous(*hardware, split).items():
        found = getattr(costs, name)
        assert (found.fixed, found.per_token) == tuple(law)
    batches = backlog_batches(layout, DEFAULT.policy, length_grid(DEFAULT))
    assert (costs.moe.floor, costs.moe.per_token) == tuple(moe.reduce(*hardware, split, batches))


@pytest.mark.parametrize("copies", [1, 2])
def test_contention_is_in_transfers_and_experts(copies: int) -> None:
    before, after = (layer_costs(one.replace(replication=copies)) for one in (DEFAULT, CONTENDED))
    profile = CONTENDED.profile.value
    split = Split(8, 4, 32)
    hardware = (with_copies(CONTENDED.architecture.value, copies), CONTENDED.device.value, profile)
    share = profile.collective_link / profile.link
    for name in ("dispatch_send", "combine_send"):
        old, new = getattr(before.costs, name), getattr(after.costs, name)
        assert new.fixed == old.fixed
        assert new.per_token == pytest.approx(old.per_token * share, rel=1e-14)
    added = collectives.busiest(*hardware, split)
    assert after.costs.moe.per_token == before.costs.moe.per_token + added
    assert after.costs.moe.floor == before.costs.moe.floor
    (row,) = [one for one in after.assumptions if one.name == "contention in costs.moe.per_token"]
    assert (row.value, row.unit, row.kind) == (f"{added:.4g}", "s/token", "derived")
    assert added > 0
    same = replace(after.costs, moe=before.costs.moe)
    assert replace(same, dispatch_send=before.costs.dispatch_send, combine_send=before.costs.combine_send) == (
        before.costs
    )


def test_the_asynchronous_system_is_as_it_was() -> None:
    scenario = am.Scenario.load("paper-asap")
    found = layer_costs(scenario.replace(**{KEY: "contention"}))
    assert found.costs == layer_costs(scenario).costs
    assert not [one for one in found.assumptions if one.name.startswith("contention")]


def test_a_word_of_the_catalogue() -> None:
    said = 'collectives = { value = "contention", kind = "fitted", fitted_to = "runs", source = "own fit of runs" }'
    value, assumptions = _schema.parse_entry(Profile, with_line(said), "x.toml", "profile")
    assert value == replace(catalog.load_profile("cloudmatrix384-paper").value, collectives="contention")
    (one,) = [a for a in assumptions if a.name == "profile.collectives"]
    assert (one.value, one.unit, one.kind) == ("contention", "", "fitted")
    assert one.source == "own fit of runs (fitted to runs)"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('collectives = { value = "both", kind = "assumed", source = "s" }', "collectives: is 'both'; give 'senders'"),
        ('collectives = { value = 1, kind = "assumed", source = "s" }', "collectives.value: is 1"),
        ('collectives = { value = "senders", kind = "assumed" }', "collectives.source: is missing"),
        ('collectives = { value = "senders", kind = "fitted", source = "s" }', "collectives.fitted_to: goes with kind"),
        (
            'collectives = { value = "senders", unit = "1", kind = "assumed", source = "s" }',
            "collectives.unit: unknown",
        ),
    ],
)
def test_bad_words_are_refused(line: str, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        _schema.parse_entry(Profile, with_line(line), "x.toml", "profile")


def test_a_scenario_s_own_word() -> None:
    (one,) = [a for a in CONTENDED.profile.assumptions if a.name == "profile.collectives"]
    assert (one.value, one.kind) == ("contention", "override")
    assert am.Scenario.parse(CONTENDED.to_toml(), where=CONTENDED.source) == CONTENDED
    with pytest.raises(am.InputError, match=r"cluster.profile.collectives: is 'both'; give 'senders' or 'contention'"):
        DEFAULT.replace(**{KEY: "both"})
    with pytest.raises(am.InputError, match=r"uncertainty.cluster.profile.collectives: is no constant"):
        DEFAULT.replace(**{f"uncertainty.{KEY}": "10 %"})


def test_a_calibration_keeps_the_word_of_its_base(tmp_path: Path) -> None:
    tokens, link = np.array([256.0, 1024, 4096, 16384]), catalog.load_device("ascend-910c-die").value.link_bandwidth
    lines = [
        f"{quantity},{n:.0f},{sent},{50e-6 + n * 8 * sent / (0.6 * link)}"
        for quantity, sent in (("dispatch", 7680), ("combine", 14336))
        for n in tokens
    ]
    (tmp_path / "l.csv").write_text("\n".join(["quantity,tokens,bytes_per_copy,seconds", *lines]) + "\n")
    path = tmp_path / "p.toml"
    calibrate(tmp_path / "l.csv", "link", path, device="ascend-910c-die", base="cloudmatrix384-fitted")
    profile = catalog.load_profile(str(path)).value
    assert profile.collectives == "contention"
    assert profile.collective_link == pytest.approx(0.6, rel=1e-3)


def test_compare_of_the_fitted_scenarios_on_the_command_line(tmp_path: Path) -> None:
    """As three processes would have it: written out, read again, compared; the answers are those of Python."""
    names = [f"paper-{name}-fitted" for name in ("default", "chunked", "asap")]
    paths = [tmp_path / f"{name}.toml" for name in names]
    for name, path in zip(names, paths, strict=True):
        path.write_text(am.Scenario.load(name).to_toml())
    answer = process(["compare", *map(str, paths), "--horizon", "300s", "--json"])
    assert (answer.status, answer.err) == (0, "")
    found = [row["slo_throughput_rps"] for row in json.loads(answer.out)["capacity"]]
    wanted = [am.capacity(am.Scenario.load(name), horizon="300 s").slo_throughput_rps for name in names]
    assert found == pytest.approx(wanted, rel=1e-9)
    assert found == pytest.approx([8.18, 11.14, 19.77], rel=5e-3)
