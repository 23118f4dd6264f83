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
from asapmodel.studies.evidence_drawn import DECODE, PREFILL, draws, with_drawn_rows, with_padded_rows
from asapmodel.studies.evidence_judging import column_of, measured


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


def law_over_measured(v: dict[str, np.ndarray], padding: float, shares: tuple[float, float]) -> np.ndarray:
    """The planner's law for grouped products, written out: weights read or padded rows multiplied, the slower."""
    weights = v["G"] * v["N_y"] * v["N_z"]
    multiplying = 2 * weights * (v["N_x"] + padding) / (v["P_8"] * shares[0])
    return np.asarray(np.maximum(weights / (v["B_m"] * shares[1]), multiplying))


def shipped_shares(name: str) -> tuple[float, float]:
    profile = catalog.load_profile(name).value
    assert profile.tile_padding == 64
    return profile.grouped_gemm, profile.memory


def test_padding_counts_once_in_the_profile_of_h20() -> None:
    """Rows of tokens and half a tile give the measured time where products are large; 0.919 was of stated rows."""
    data = with_padded_rows(measured(PREFILL, "moe", "h20"))
    v, shares = data.values, shipped_shares("h20-nvlink")
    large = v["N_x"] >= 1000
    tokens = {**v, "N_x": v["N_x"] - 64}
    for rows, padding in ((v, 0.0), (tokens, 64.0)):
        total = law_over_measured(rows, padding, shares)[large].sum() / data.seconds[large].sum()
        assert total == pytest.approx(1.0, abs=0.003)
    once_more = law_over_measured(v, 64.0, shares)[large].sum() / data.seconds[large].sum()
    assert once_more > 1.005
    earlier = law_over_measured(tokens, 64.0, (0.919, 0.71))[large].sum() / data.seconds[large].sum()
    assert earlier == pytest.approx(0.973, abs=0.003)
    moved = v["N_y"] * v["N_z"] + v["N_x"] * (v["N_z"] + 2 * v["N_y"])
    reading, multiplying = moved / v["B_m"] / 0.7, 2 * v["N_x"] * v["N_y"] * v["N_z"] / v["P_8"] / shares[0]
    assert (reading / multiplying).max() < 0.6  # so the table says nothing of memory


def test_the_groups_that_are_drawn_lack_half_a_tile() -> None:
    """On H20, of the models of 96 and 128 experts that come first: 25 lines, 50 draws."""
    data = measured(PREFILL, "moe", "h20")
    groups, rows = (column_of(data, PREFILL, one)[:25].tolist() for one in ("num_local_experts", "tokens_per_expert"))
    lacking = [(-one) % 128 for one in draws(list(zip(groups, rows, strict=True)), 1)]
    assert np.mean([one.mean() for one in lacking]) == pytest.approx(63, abs=0.5)


def test_the_profile_of_h800_on_its_own_table() -> None:
    """Right to 3 % where weights are read and 7 % for large products, a fifth too fast at the inflection."""
    stated = measured(DECODE, "moe", "h800")
    rows = stated.values["N_x"]
    predicted = 9e-6 + law_over_measured(with_drawn_rows(stated).values, 64.0, shipped_shares("h800-nvlink"))
    error = predicted / stated.seconds - 1
    few, between, many = (float(np.median(error[x])) for x in (rows < 32, (rows >= 200) & (rows < 1000), rows >= 1000))
    assert (few, between, many) == pytest.approx((-0.028, -0.206, -0.068), abs=0.003)


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
