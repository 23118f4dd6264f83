"""The paper's evidence: what is fitted, that targets are not, the objective's minimum, packing, the bounds' logic."""

import tomllib
from dataclasses import asdict, replace

import numpy as np
import pytest

import asapmodel as am
from asapmodel.calibration.profile_file import read_covariance
from asapmodel.costing import layer_costs
from asapmodel.models.imbalance import expected_maximum
from asapmodel.studies import evidence_paper_fit
from asapmodel.studies.evidence_paper_assumptions import ASSUMPTIONS, CHOSEN, SHIPPED, by_name
from asapmodel.studies.evidence_paper_bounds import gated_bound, most_of_attention
from asapmodel.studies.evidence_paper_cells import single_run
from asapmodel.studies.evidence_paper_fit import (
    covariance,
    deviation_of,
    fit_of,
    jacobian,
    logs_of,
    objective,
    residuals,
    starts,
    stored_fits,
)
from asapmodel.studies.evidence_paper_profile import NAME, profile_text
from asapmodel.studies.evidence_paper_rows import (
    FITTED,
    HINGES,
    P2P,
    SAME_REQUESTS,
    SCATTER,
    SLO_ROWS,
    TARGETS,
    model_value,
    shortfall,
)
from asapmodel.studies.evidence_paper_systems import CONSTANTS, EXPERT_LOAD_CV, Systems, mu_of
from asapmodel.studies.paper import claims
from asapmodel.studies.paper_model import ROWS, Paper
from asapmodel.uncertainties.sources import sources_of

CLAIMS = {claim.id: claim for claim in claims()}
VALUES = fit_of(CHOSEN).values


def test_only_what_may_be_fitted_is_fitted() -> None:
    """At most eight constants; shapes, claims, two TTFTs of an idle system and one throughput."""
    assert len(CONSTANTS) + len(P2P) <= 8
    roles = {row: CLAIMS[row].role for row in (*FITTED, *HINGES, *P2P)}
    targets = [row for row, role in roles.items() if role == "target"]
    assert sorted(targets) == ["rps-asap", "ttft-1-asap", "ttft-1-default"]
    assert set(TARGETS) == {row for row, claim in CLAIMS.items() if claim.role == "target"} - set(targets)


def test_constants_of_the_catalogue_give_the_catalogue_s_systems() -> None:
    """Where every constant is the shipped one, so is every number of the shipped study."""
    paper = Paper(1)
    profile = paper.parts[2]
    cut = paper.scenarios["asap"].workload.max_prompt_tokens
    values = {"core": profile.core, "attention_overhead": profile.attention_overhead, "sigma": 1.445}
    one = Systems(values | {"mean_tokens": 0.0, "batch_window": 0.1}, by_name("one law of lengths"), 1)
    one_scenario, shipped = one.scenario("asap"), paper.scenarios["asap"]
    assert cut == 32768
    assert one_scenario.policy == shipped.policy
    assert one_scenario.replace(**{"cluster.profile.expert_load_cv": 2.3}).profile.value == profile
    assert mu_of(1.445) == pytest.approx(7.5733, abs=5e-5)
    assert one.ttft("default", 1.0) == pytest.approx(paper.ttft("default", 1.0), rel=0.05)


def test_lengths_below_the_cut_have_the_fitted_mean() -> None:
    drawn = Systems(VALUES, CHOSEN, 1).ready("asap").requests(20.0).prompt
    assert drawn.mean() == pytest.approx(VALUES["mean_tokens"], rel=0.05)
    assert drawn.max() <= 32768


@pytest.mark.parametrize(("row", "holding", "violating"), [("comm-share", 0.2, 0.22), ("attn-len-aware", 3e-3, 1e-3)])
def test_claims_count_where_they_are_violated(row: str, holding: float, violating: float) -> None:
    assert shortfall(CLAIMS[row], holding) == 0.0
    assert shortfall(CLAIMS[row], violating) == pytest.approx(
        abs(np.log(violating / {"comm-share": 0.2}.get(row, 2e-3)))
    )


def test_residuals_are_what_the_objective_says() -> None:
    """Recomputed from the model's values: the density of four normal logarithms, two of them correlated."""
    found = residuals(VALUES, CHOSEN, 1)
    systems = Systems(VALUES, CHOSEN, 1)
    off = np.array(
        [
            np.log(ROWS["attn-batch-ratio"](systems.laws)) - np.log(4.2),
            np.log(systems.ttft("default", 1.0) / 0.533),
            np.log(systems.ttft("asap", 1.0) / 0.350),
            np.log(systems.slo_rate("asap", "queueing") / 20.0),
        ]
    )
    spread = np.diag([0.02**2, 0.03**2 + 0.14**2, 0.03**2 + 0.065**2, 0.03**2 + 0.03**2])
    spread[1, 2] = spread[2, 1] = 0.87 * 0.14 * 0.065
    assert float(found[:4] @ found[:4]) == pytest.approx(float(off @ np.linalg.solve(spread, off)))
    assert deviation_of("ttft-8-default") == pytest.approx(0.4512, abs=1e-4)
    assert deviation_of("attn-len-aware") == pytest.approx(0.1)
    priors = [np.log(VALUES[one.name] / one.centre) / one.spread for one in CONSTANTS]
    assert found[-len(CONSTANTS) :] == pytest.approx(priors)
    assert objective(VALUES, CHOSEN, 1) == pytest.approx(0.5 * float(found @ found))


@pytest.mark.slow
def test_scatter_of_single_runs() -> None:
    """Deviations and correlation as the objective has them, by 48 runs of five minutes."""
    logs = []
    for seed in range(2000, 2048):
        one = single_run(CHOSEN, seed)
        logs.append([np.log(model_value(row, one)) for row in SCATTER])
    found = np.std(logs, axis=0, ddof=1)
    assert found == pytest.approx(list(SCATTER.values()), rel=0.35)  # three standard errors of 48 runs
    assert np.corrcoef(np.transpose(logs))[0, 1] == pytest.approx(SAME_REQUESTS, abs=0.12)


@pytest.mark.slow
def test_the_stored_point_is_a_minimum() -> None:
    """Objective as stored, and not lower 5 % of a constant away in either direction, within the optimiser."""
    stored = fit_of(CHOSEN)
    assert objective(stored.values, CHOSEN) == pytest.approx(stored.objective, abs=2e-3)
    for name in stored.values:
        for factor in (0.95, 1.05):
            moved = stored.values | {name: stored.values[name] * factor}
            assert objective(moved, CHOSEN) > stored.objective - 0.02, (name, factor)


def test_the_objective_chooses_among_one_decision_at_a_time() -> None:
    """The chosen assumption is decided by rows that are fitted, not by targets."""
    among = [one for one in ASSUMPTIONS if not one.name.startswith("+")]
    assert min(among, key=lambda one: fit_of(one).objective) is CHOSEN


def test_starts_are_the_centre_and_draws_within_bounds() -> None:
    points = starts(3)
    assert points[0] == pytest.approx(logs_of({one.name: one.centre for one in CONSTANTS}))
    assert not np.array_equal(points[1], points[2])


def test_packing_finds_pairs_and_serves_everyone() -> None:
    """One group: packing and rolling pairs are one rule; four groups: batches meet, prompts wait for each other."""
    packed = by_name("+ packed")
    own = Systems(VALUES, packed, 1)
    rolling = Systems(VALUES, CHOSEN, 1).scenario("asap").replace(pairing="rolling")
    assert own.ttft("asap", 4.0) > Systems(VALUES, SHIPPED, 1).ttft("asap", 4.0)
    from asapmodel.studies.evidence_paper_packing import PackedPrepared
    from asapmodel.verbs.evaluate import prepare

    lone = rolling.replace(D=1)
    ready = prepare(lone, 6)
    same = PackedPrepared(lone, ready.costing, 6)
    assert same.ttft(3.0) == pytest.approx(ready.ttft(3.0), rel=1e-12)


def test_contention_is_cheap_alone_and_dear_together() -> None:
    senders, contention = Systems(VALUES, by_name("Default waits")), Systems(VALUES, CHOSEN)
    one, other = (systems.costing("default").costs for systems in (senders, contention))

    def iteration(costs, groups: int) -> float:  # type: ignore[no-untyped-def]
        moves = sum(getattr(costs, name)(2000.0) for name in ("dispatch_send", "combine_send"))
        return float(moves + costs.moe(2000.0 * groups))

    assert iteration(other, 1) < iteration(one, 1)
    assert iteration(other, 8) > iteration(one, 8)
    # equal groups: senders are hidden behind the busiest receiver
    whole = one.dispatch_send.per_token + one.combine_send.per_token
    sent = other.dispatch_send.per_token + other.combine_send.per_token
    chi = 1 + EXPERT_LOAD_CV * expected_maximum(32) / np.sqrt(256 / 32)
    assert sent + 8 * contention.receiving("default") == pytest.approx(chi * whole)
    assert contention.receiving("asap") == senders.receiving("default") == 0.0


def test_hot_receivers_have_senders_at_the_share_of_collectives() -> None:
    """The senders of the shipped law, and the excess of the busiest device over them with the experts."""
    senders, hot = Systems(VALUES, SHIPPED), Systems(VALUES, by_name("hot receivers"))
    one, other = (systems.costing("default").costs for systems in (senders, hot))
    assert (other.dispatch_send, other.combine_send) == (one.dispatch_send, one.combine_send)
    whole = one.dispatch_send.per_token + one.combine_send.per_token
    chi = 1 + EXPERT_LOAD_CV * expected_maximum(32) / np.sqrt(256 / 32)
    assert other.moe.per_token - one.moe.per_token == pytest.approx((chi - 1) * whole / 8)
    assert hot.costing("asap").costs == senders.costing("asap").costs


@pytest.mark.parametrize("name", ["default", "chunked", "asap"])
def test_shipped_scenarios_are_the_chosen_systems(name: str) -> None:
    """Policy and costs of ``paper-NAME-fitted`` are the study's, and the queueing engine's SLO throughput, too."""
    systems, shipped = Systems(VALUES, CHOSEN), am.Scenario.load(f"paper-{name}-fitted")
    wanted = systems.scenario(name)
    assert shipped.policy == wanted.policy
    assert shipped.workload.model_copy(update={"lengths": wanted.workload.lengths}) == wanted.workload
    assert shipped.profile.value == wanted.profile.value
    mine, other = (asdict(one.costs) for one in (layer_costs(shipped), systems.costing(name)))
    for law, value in mine.items():
        assert value == pytest.approx(other[law], rel=1e-6), law
    found = am.capacity(shipped, horizon="300 s").slo_throughput_rps
    assert found == pytest.approx(systems.slo_rate(name, "queueing"), rel=2e-3)
    assert found == pytest.approx({"default": 8.18, "chunked": 11.14, "asap": 19.8}[name], rel=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rps"), [("default", 8.08), ("chunked", 11.05), ("asap", 19.8)])
def test_shipped_scenarios_by_runs(name: str, rps: float) -> None:
    """As the page has them: eight runs of 300 s."""
    found = am.capacity(am.Scenario.load(f"paper-{name}-fitted"), "graph", 8)
    assert found.slo_throughput_rps == pytest.approx(rps, rel=0.01)


def test_shipped_profile_is_the_chosen_fit() -> None:
    profile = am.catalog.load_profile(NAME).value
    assert (profile.core, profile.indexer) == (VALUES["core"], VALUES["core"])
    assert profile.attention_overhead == pytest.approx(VALUES["attention_overhead"])
    assert (profile.expert_load_cv, profile.collectives) == (EXPERT_LOAD_CV, CHOSEN.collectives)
    base = am.catalog.load_profile("cloudmatrix384-paper").value
    fields = ("core", "indexer", "attention_overhead", "expert_load_cv", "collectives")
    assert replace(profile, **{field: getattr(base, field) for field in fields}) == base


def test_covariance_of_the_profile() -> None:
    """By least squares of rows and priors together; the shipped file has it."""
    slopes = jacobian(VALUES, CHOSEN)
    stacked = np.vstack([slopes, np.diag([1 / one.spread for one in CONSTANTS])])
    logs = np.linalg.pinv(stacked) @ np.linalg.pinv(stacked).T
    assert covariance(slopes) == pytest.approx(logs, rel=1e-8)
    core, overhead = VALUES["core"], VALUES["attention_overhead"]
    wanted = np.outer([core, core, overhead], [core, core, overhead])
    places = [0, 0, 1]
    wanted *= logs[np.ix_(places, places)]
    path = am.catalog.entry_path("profiles", NAME)
    names, matrix = read_covariance(path)
    assert names == ("core", "indexer", "attention_overhead")
    assert matrix == pytest.approx(wanted, rel=1e-3)
    shipped, again = (tomllib.loads(text) for text in (path.read_text(encoding="utf-8"), profile_text(slopes)))
    errors = [[tables[name].pop("standard_error") for name in names] for tables in (shipped, again)]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)
    assert errors[0] == pytest.approx(np.sqrt(np.diag(matrix)) * [1, 1, 1e3], rel=0.01)
    del shipped["covariance"], again["covariance"]
    assert shipped == again
    scenario = am.Scenario.load("paper-asap-fitted")
    sources = sources_of(scenario, layer_costs(scenario).costs)
    keys = [one.key.rpartition(".")[2] for one in sources.constants]
    one, other = keys.index("core"), keys.index("indexer")
    assert sources.correlation[one, other] == pytest.approx(1.0)
    assert sources.constants[one].relative_std == pytest.approx(np.sqrt(logs[0, 0]), rel=0.01)
    # what the lengths and the window leave open is in it
    known = np.sqrt(np.diag(np.linalg.inv(np.linalg.inv(logs)[:2, :2])))
    assert np.all(np.sqrt(np.diag(logs)[:2]) > 1.4 * known)


def test_bound_is_below_the_model() -> None:
    """An iteration whose company costs nothing is shorter than the model's own, at the same TTFT alone."""
    bound = gated_bound(VALUES, VALUES["sigma"], VALUES["batch_window"])
    systems = Systems(VALUES, CHOSEN)
    assert bound.ttft < systems.ttft("default", 4.0)


def test_attention_at_its_peak_bounds_the_throughput() -> None:
    mean, most = most_of_attention(VALUES, 1.445)
    assert mean == pytest.approx(3890, rel=0.02)
    narrow_mean, narrow = most_of_attention(VALUES, 0.8)
    assert narrow_mean > mean
    assert narrow < most


def test_rows_without_runs_are_those_of_the_paper_study() -> None:
    systems = Systems(VALUES, CHOSEN, 1)
    assert model_value("dispatch-bytes", systems) == ROWS["dispatch-bytes"](systems.laws)
    with pytest.raises(ValueError, match="eaas-512"):
        model_value("eaas-512", systems)
    assert set(SLO_ROWS) <= set(CLAIMS)


def test_file_is_read_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = stored_fits()
    text = evidence_paper_fit.format_fits(fits, "two\nlines")
    assert text.startswith("# two\n# lines\n")
    assert f'[fit."{CHOSEN.fitted_as}"]' in text
