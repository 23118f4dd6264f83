"""The comparison of the engines: errors, the page and its figures, and the targets on cases with stored truth."""

import json
import math
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest

from asapmodel.engines.effort import QUICK, EffortName
from asapmodel.engines.queueing import analyse
from asapmodel.studies.engines import TARGETS, page, target_rows
from asapmodel.studies.engines_errors import Error, case_errors, group, load, slo_rate, spread
from asapmodel.studies.engines_figures import draw_figures, errors_figure, parity_figure
from asapmodel.studies.engines_speed import Speed, judged


@pytest.fixture(scope="module")
def errors() -> list[Error]:
    """Three synchronous cases at all their utilisations."""
    return [e for case, rows in load("development", "sync", slice(0, 6)) for e in case_errors(case, rows, slo=True)[0]]


def test_errors_are_relative_to_truth(errors: list[Error]) -> None:
    for error in errors:
        assert error.mean_s == pytest.approx((1 + error.mean) * error.row.mean_s)
        assert math.isnan(error.slo) == (error.row.utilisation < 0.6)
    assert set(group(errors, "system")) == {"sync"}
    assert sum(len(some) for some in group(errors, "utilisation").values()) == len(errors)


def test_above_four_fifths_the_utilisation_is_the_engines_own(errors: list[Error]) -> None:
    for error in errors:
        assert error.point is not None
        share = error.point.rate_rps / error.saturation_rps
        if error.row.utilisation > 0.8:
            assert share == pytest.approx(error.row.utilisation)
        else:
            assert error.point.rate_rps == error.row.rate_rps


def test_slo_rate_inverts_the_curve(errors: list[Error]) -> None:
    analysis = analyse(errors[0].case.problem)
    rate = 0.7 * analysis.saturation_rps
    assert slo_rate(analysis, analysis.at(rate).ttft.mean) == pytest.approx(rate, rel=1e-3)
    assert slo_rate(analysis, 1e-9) == 0.0
    assert slo_rate(analysis, 1e9) == pytest.approx(analysis.saturation_rps, rel=2e-3)


def test_page_and_figures(errors: list[Error], tmp_path: Path) -> None:
    chosen = draw_figures(errors, tmp_path)
    for name in ("errors", "parity", "laws"):
        ET.parse(tmp_path / f"engines-{name}.svg")
    prepare: dict[EffortName, float] = {"full": 1e-2, "quick": 1e-3}
    grids = {(effort, count): 5e3 for effort in prepare for count in (19, 200)}
    speed = Speed("sync", prepare, prepare, 1e-4, 1e-3, 1e-3, grids, 2e4, 1e-2)
    text = page({"development": errors, "held_out": errors}, errors, [speed], chosen)
    for name in TARGETS:
        assert name in text
    assert "{" not in text.replace("{ ", "")
    json.dumps([errors_figure(errors), parity_figure(errors)])  # nothing but plain numbers


def test_other_walks_give_other_answers_near_by(errors: list[Error]) -> None:
    for error in errors[:4]:
        (other,), _ = case_errors(error.case, [error.row], partial(analyse, walk=3))
        assert other.mean_s != error.mean_s
        assert other.mean_s == pytest.approx(error.mean_s, rel=0.1)
        assert other.saturation_rps == error.saturation_rps


@pytest.mark.parametrize("system", ["sync", "asap"])
def test_the_quick_effort_is_a_coarser_answer_to_the_same_question(system: str) -> None:
    """Errors on some seen cases; `docs/engines.md` has those on all."""
    engine = partial(analyse, effort=QUICK)
    found = [
        e for case, rows in load("development", system, slice(0, 40)) for e in case_errors(case, rows, engine, True)[0]
    ]
    mean, saturation = spread([e.mean for e in found]), spread([e.saturation for e in found])
    assert mean[0] < 0.06
    assert spread([e.slo for e in found])[0] < 0.04
    assert saturation[0] < 0.02
    full = [e for case, rows in load("development", system, slice(0, 40)) for e in case_errors(case, rows)[0]]
    assert all(a.mean_s != b.mean_s for a, b in zip(found, full, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("system", ["sync", "asap"])
def test_targets_on_development_cases(system: str) -> None:
    """Median and 95th percentile of absolute errors against the graph engine, as promised."""
    found = [e for case, rows in load("development", system) for e in case_errors(case, rows, slo=True)[0]]
    for name, (median, p95, count) in target_rows(found).items():
        wanted = TARGETS[name][3]
        assert count > 80
        assert median <= wanted[0], name
        assert p95 <= wanted[1], name


@pytest.mark.parametrize(
    ("shown", "target", "more", "cell"),
    [
        ("12", "10", False, "12, missed"),
        ("10", "10", False, "10"),
        ("480", "5000", True, "480, missed"),
        ("5355", "5000", True, "5355"),
        ("0.36", "", False, "0.36"),
    ],
)
def test_a_number_says_whether_it_misses_its_target(shown: str, target: str, more: bool, cell: str) -> None:
    assert judged(shown, target, more) == cell
