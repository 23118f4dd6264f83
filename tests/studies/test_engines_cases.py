"""The random cases: reproducible, public scenarios, hard ones among them, and the tables of truth are of these."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from asapmodel.scenario import Scenario
from asapmodel.studies.engines_cases import DEVELOPMENT_SEED, draw
from asapmodel.studies.engines_rows import DATA, FILES, SEEDS, read_rows

CASES = draw(DEVELOPMENT_SEED, 40)


def test_a_case_does_not_depend_on_the_count() -> None:
    assert [case.hash for case in draw(DEVELOPMENT_SEED, 3)] == [case.hash for case in CASES[:3]]
    assert draw(DEVELOPMENT_SEED + 1, 1)[0].hash != CASES[0].hash


def test_systems_alternate_and_degrees_are_in_range() -> None:
    assert [case.system for case in CASES[:4]] == ["sync", "asap", "sync", "asap"]
    for case in CASES:
        layout = case.scenario.layout
        assert 2 <= layout.D <= 16
        assert 1 <= layout.T <= 8
        assert 4 <= layout.E <= 64


def test_a_case_can_be_written_to_a_file(tmp_path: Path) -> None:
    for case in CASES[:4]:
        file = tmp_path / f"{case.index}.toml"
        file.write_text(case.scenario.to_toml(), encoding="utf-8")
        again = Scenario.load(file)
        assert (again.layout, again.policy, again.workload) == (
            case.scenario.layout,
            case.scenario.policy,
            case.scenario.workload,
        )


def test_every_regime_occurs() -> None:
    words = Counter((name, word) for case in CASES for name, word in case.regime.items())
    for word in ("attention", "moe", "transfers", "latency"):
        assert words["bound", word] > 0, word
    for word in ("whole", "locked", "rolling", "single"):
        assert words["batching", word] > 0, word
    for word in ("lognormal", "constant", "trace", "values"):
        assert words["law", word] > 0, word
    assert words["gaps", "gap cv 2"] > 5


@pytest.mark.parametrize("name", list(FILES))
def test_truth_is_of_these_cases_and_its_noise_is_stated(name: str) -> None:
    rows = read_rows(DATA / FILES[name])
    cases = draw(SEEDS[name], max(row.index for row in rows) + 1)
    assert all(row.hash == cases[row.index].hash for row in rows)
    assert len({(row.index, row.utilisation) for row in rows}) == len(rows)
    light = [row for row in rows if row.utilisation <= 0.8]
    assert np.median([row.mean_half_width for row in light]) < 0.01
    assert np.median([row.p99_half_width for row in light]) < 0.03
    assert np.median([row.saturation_error for row in rows]) < 0.005
