"""The study of elasticities: a few cases in small, and its page."""

import pytest

from asapmodel.studies.elasticities import PARTS, Row, measure, page
from asapmodel.studies.engines_cases import DEVELOPMENT_SEED, draw


@pytest.fixture(scope="module")
def measured() -> list[tuple[list[Row], float]]:
    return [measure(case, (6000, 3000), 3) for case in draw(DEVELOPMENT_SEED, 4)]


def test_limits_agree_with_runs(measured: list[tuple[list[Row], float]]) -> None:
    for rows, total in measured:
        assert [row.part for row in rows] == list(PARTS)
        for row in rows:
            assert row.limit == pytest.approx(row.limit_truth, abs=0.06)
            assert row.ttft == pytest.approx(row.ttft_truth, abs=0.3 + 4 * row.truth_error)
        assert total == pytest.approx(1.0, abs=0.3)


def test_page(measured: list[tuple[list[Row], float]]) -> None:
    rows = [row for some, _ in measured for row in some]
    sums = {system: [total for some, total in measured if some[0].system == system] for system in ("sync", "asap")}
    text = page(rows, sums)
    assert text.count("| synchronous |") == text.count("| asynchronous |") == len(PARTS) + 1
    assert "{" not in text
