"""Calibrated profiles of the catalogue: made again from the tables, and what they may and may not say."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel import catalog
from asapmodel.calibration.profile_file import read_covariance
from asapmodel.studies.catalogue_profiles import main, profile_text
from asapmodel.studies.catalogue_recipes import RECIPES, merged_share


def numbers(text: str) -> dict[str, float]:
    tables = tomllib.loads(text)
    return {name: float(row["value"]) for name, row in tables.items() if isinstance(row, dict) and "value" in row}


@pytest.mark.parametrize(
    "name", ["cloudmatrix384-measured", "h800-nvlink", *(pytest.param(x, marks=pytest.mark.slow) for x in RECIPES)]
)
def test_the_tables_give_the_shipped_numbers(name: str) -> None:
    shipped = catalog.entry_path("profiles", name).read_text(encoding="utf-8")
    again = numbers(profile_text(name))
    assert again.keys() == numbers(shipped).keys()
    for field, value in numbers(shipped).items():
        assert again[field] == pytest.approx(value, rel=1e-3), field


@pytest.mark.parametrize("name", RECIPES)
def test_fitted_numbers_have_an_error_and_others_say_whose_they_are(name: str) -> None:
    path = catalog.entry_path("profiles", name)
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    fitted = {key for key, row in tables.items() if isinstance(row, dict) and "standard_error" in row}
    recipe = RECIPES[name]
    assert fitted == {field for fit in recipe.fits for field in fit.fields.values()} - set(recipe.numbers)
    for field, other in recipe.taken.items():
        if field not in fitted:
            assert tables[field]["kind"] == "assumed"
            assert tables[field]["source"].startswith(f"as in {other}: ")
    if fitted:
        fields, matrix = read_covariance(path)
        assert set(fields) == fitted
        errors = [tables[field]["standard_error"] for field in fields]
        assert np.sqrt(np.diag(matrix)) == pytest.approx(errors, rel=0.01)
        assert np.linalg.eigvalsh(matrix / np.outer(errors, errors)).min() > -1e-4


def test_copies_that_are_merged() -> None:
    """The share against counting all ways in which 3 copies fall on 4 places, one of them one's own."""
    ways = np.array(np.meshgrid(*[range(4)] * 3)).reshape(3, -1).T
    others = [len(set(way) - {0}) for way in ways.tolist()]
    assert merged_share(4, 3) == pytest.approx(np.mean(others) / 3)


@pytest.mark.parametrize("name", catalog.names("clusters"))
def test_every_cluster_serves_a_model(name: str) -> None:
    small = {"model.use": "qwen3-30b-a3b", "cluster.use": name}
    one = am.Scenario.load("paper-chunked").replace(**small, D=2, T=4, chunk_tokens=8192)
    apart = am.Scenario.load("paper-asap").replace(**small, D=1, T=4, E=4)
    for scenario in (one, apart):
        answer = am.capacity(scenario)
        assert 0.5 < answer.stability_limit_rps < 1e4
        kinds = {a.name: a.kind for a in answer.assumptions}
        assert kinds["profile.dispatch_bytes_per_copy"] == "derived"


def test_writing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"cloudmatrix384-measured": RECIPES["cloudmatrix384-measured"]}
    monkeypatch.setattr("asapmodel.studies.catalogue_profiles.RECIPES", chosen)
    main(["--output", str(tmp_path)])
    written = catalog.load_profile(str(tmp_path / "cloudmatrix384-measured.toml")).value
    assert written == catalog.load_profile("cloudmatrix384-measured").value
