"""Ratios of paired runs: exact where the ratio is constant, Student's interval, and pages with all fields filled."""

from pathlib import Path

import numpy as np
import pytest

from asapmodel.scenario import Scenario
from asapmodel.studies.paired_runs import Ratio, ratio_of, slo_rates, write_page


def test_a_constant_ratio_has_no_width() -> None:
    below = np.array([3.0, 5.0, 4.0])
    found = ratio_of(1.2 * below, below)
    assert (found.value, found.low, found.high) == pytest.approx((1.2, 1.2, 1.2))
    assert str(Ratio(1.2, 1.1, 1.3)) == "+20.0% (+10.0% to +30.0%)"


def test_interval_is_students() -> None:
    above, below = np.exp([0.1, 0.2, 0.3]), np.ones(3)
    half = 4.302652729911275 * 0.1 / np.sqrt(3)  # t of 2 degrees of freedom
    found = ratio_of(above, below)
    assert np.log([found.value, found.low, found.high]) == pytest.approx([0.2, 0.2 - half, 0.2 + half])


def test_runs_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="3 and 2 runs are no pairs"):
        ratio_of(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="at least two"):
        ratio_of(np.ones(1), np.ones(1))


def test_rates_are_those_of_single_runs() -> None:
    scenario = Scenario.load("paper-default").replace(duration=60.0)
    one, two = slo_rates(scenario, (3, 4))
    assert slo_rates(scenario, (4,)).tolist() == [two]
    assert one != two


def test_page_goes_where_it_should(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_page("some", "text", tmp_path)
    assert (tmp_path / "studies" / "some.md").read_text(encoding="utf-8") == "text"
    assert "text" in capsys.readouterr().out
