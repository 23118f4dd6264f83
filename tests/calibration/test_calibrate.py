"""Calibration: known parameters come back from synthetic tables, profiles go round, mistakes are told."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import asapmodel as am
from asapmodel import catalog
from asapmodel.calibration.laws import law_of
from asapmodel.calibration.measurements import join
from asapmodel.calibration.profile_file import read_covariance
from asapmodel.calibration.tables import read_tables
from asapmodel.cli.app import make_app
from asapmodel.errors import InputError
from asapmodel.models import attention, moe
from asapmodel.models.evaluation import evaluate
from asapmodel.models.parameters import Profile, Split
from asapmodel.models.tiles import tile_expression, tiles
from asapmodel.solvers.robust_fit import robust_fit
from asapmodel.verbs.calibrate import calibrate

MEASURED = Path(__file__).resolve().parents[2] / "studies" / "data" / "measured"
DIE = "ascend-910c-die"


def known_profile(**changes: Any) -> Profile:
    return replace(catalog.load_profile("cloudmatrix384-paper").value, **changes)


def attention_table(path: Path, seed: int, noise: float = 0.02, copies: int = 1) -> Profile:
    """A table by the planner's own law, with noise; returns the profile it was made with."""
    true = known_profile(gemm=0.6, core=0.5, indexer=0.4, attention_overhead=4e-4)
    model, device = catalog.load_architecture("deepseek-v3.2").value, catalog.load_device(DIE).value
    generator, rows = np.random.default_rng(seed), []
    for length in [128, 512, 1024, 2048, 4096, 8192, 16384, 32768] * copies:
        for batch in (1, 4):
            exact = attention.batch_time(model, device, true, Split(1, 4, 1), [length] * batch)
            rows.append((length, batch, 4, max(exact, 6e-4) * np.exp(noise * generator.standard_normal())))
    pd.DataFrame(rows, columns=["length", "batch", "T", "seconds"]).to_csv(path, index=False)
    return true


def test_attention_parameters_come_back(tmp_path: Path) -> None:
    true = attention_table(tmp_path / "a.csv", seed=1)
    found = calibrate(tmp_path / "a.csv", "attention", device=DIE)
    fields = ("gemm", "core", "indexer", "attention_overhead")
    assert tuple(found.found.fields) == fields
    values = {v.name: v for v in found.found.groups[0].values()}
    for name in fields:
        low, high = values[name].interval
        assert low <= getattr(true, name) <= high, name
        assert high / low < 2.0, name
    assert values["tau_f (floor of a module: its host's work)"].value == pytest.approx(6e-4, rel=0.05)
    assert found.profile.vector == known_profile().vector


def test_the_price_of_a_prompt_comes_back_with_detail(tmp_path: Path) -> None:
    """Dense attention, 50 ns a prompt and head beside the planner's law: told apart from the launch by batches."""
    true = known_profile(gemm=0.6, core=0.5, attention_overhead=2e-4)
    model, device = catalog.load_architecture("deepseek-v3").value, catalog.load_device(DIE).value
    generator, rows = np.random.default_rng(2), []
    for length in (4, 16, 64, 256, 1024, 4096):
        for batch in (1, 8, 64, 512):
            for T in (1, 4):
                exact = attention.batch_time(model, device, true, Split(1, T, 1), [length] * batch)
                seconds = exact + 50e-9 * batch * model.heads / T
                rows.append((length, batch, T, seconds * np.exp(0.01 * generator.standard_normal())))
    pd.DataFrame(rows, columns=["length", "batch", "T", "seconds"]).to_csv(tmp_path / "d.csv", index=False)
    found = calibrate(tmp_path / "d.csv", "attention", device=DIE, architecture="deepseek-v3", detail=True)
    group = found.found.groups[0]
    value = group.values()[group.letters.index("tau_q")]
    assert value.value == pytest.approx(50e-9, rel=0.05)
    assert value.interval[0] <= 50e-9 <= value.interval[1]
    assert found.profile.gemm == pytest.approx(0.6, rel=0.05)
    plain = calibrate(tmp_path / "d.csv", "attention", device=DIE, architecture="deepseek-v3")
    assert "tau_q" not in plain.found.groups[0].letters
    assert np.median(np.abs(plain.found.groups[0].held_out)) > 5 * np.median(np.abs(group.held_out))


def test_a_field_at_the_end_of_its_range_says_so_in_the_profile(tmp_path: Path) -> None:
    """Products twice as fast as the device's peak allows: the share ends at 1, and the file does not hide it."""
    rows = [("projections", n, 1, 0.5 * n * 5e-7) for n in (1024, 2048, 4096, 8192, 16384, 32768)]
    pd.DataFrame(rows, columns=["quantity", "length", "T", "seconds"]).to_csv(tmp_path / "p.csv", index=False)
    found = calibrate(tmp_path / "p.csv", "attention", tmp_path / "p.toml", device=DIE)
    assert "eta_g" in found.found.groups[0].fit.at_bound
    (line,) = [one for one in (tmp_path / "p.toml").read_text().splitlines() if one.startswith("gemm = ")]
    assert "at the end of its range" in line
    (other,) = [one for one in (tmp_path / "p.toml").read_text().splitlines() if one.startswith("core = ")]
    assert "at the end of its range" not in other


def test_intervals_of_attention_cover(tmp_path: Path) -> None:
    """Noise on one table of 32 rows, 40 seeds: each nominal 95 % interval covers at least 85 % of the time."""
    true = attention_table(tmp_path / "a.csv", seed=0, noise=0.0, copies=2)
    data = read_tables([tmp_path / "a.csv"], "attention", DIE)
    law = law_of(data, "attention", known_profile())
    rows = np.arange(len(data))
    names = ("gemm", "core", "indexer", "attention_overhead")
    wanted = np.array([getattr(true, name) for name in names])
    hits, seeds = np.zeros(4), 40
    for seed in range(seeds):
        y = data.seconds * np.exp(0.02 * np.random.default_rng(seed).standard_normal(rows.size))
        fit = robust_fit(lambda p: law.predict(p, rows), y, law.parameters, 0.02, bootstrap=False)
        hits += (fit.intervals[:4, 0] <= wanted) & (wanted <= fit.intervals[:4, 1])
    assert np.all(hits >= 0.85 * seeds)


def test_moe_parameters_come_back_exactly_without_noise(tmp_path: Path) -> None:
    true = known_profile(grouped_gemm=0.45, memory=0.7, tile_padding=40.0, expert_load_cv=0.0)
    model, device = catalog.load_architecture("deepseek-v3.2").value, catalog.load_device(DIE).value
    rows = [
        (n, E, 3e-5 + float(moe.batch_time(model, device, true, Split(1, 1, E), n)))
        for E in (8, 32)
        for n in (16, 64, 512, 2048, 8192, 16384, 65536)
    ]
    pd.DataFrame(rows, columns=["tokens", "E", "seconds"]).to_csv(tmp_path / "m.csv", index=False)
    found = calibrate(tmp_path / "m.csv", "moe", device=DIE)
    assert found.profile.grouped_gemm == pytest.approx(0.45, rel=1e-3)
    assert found.profile.memory == pytest.approx(0.7, rel=1e-3)
    assert found.profile.tile_padding == pytest.approx(40.0, rel=0.02)


@pytest.mark.parametrize(
    ("execution", "field", "share"),
    [("collective", "collective_latency", "collective_link"), ("send", "send_latency", "link")],
)
def test_link_keeps_a_layer_s_time(tmp_path: Path, execution: str, field: str, share: str) -> None:
    """Dispatch 40 us at half the link, combine 80 us at a quarter: the profile's two numbers keep the sum."""
    n, link = np.array([256.0, 1024, 4096, 16384]), catalog.load_device(DIE).value.link_bandwidth
    sent = {"dispatch": (40e-6, 0.5, 7680.0), "combine": (80e-6, 0.25, 14336.0)}
    rows = [(op, x, b, tau + x * 8 * b / (link * eta)) for op, (tau, eta, b) in sent.items() for x in n]
    pd.DataFrame(rows, columns=["quantity", "tokens", "bytes_per_copy", "seconds"]).to_csv(
        tmp_path / "l.csv", index=False
    )
    profile = calibrate(tmp_path / "l.csv", "link", device=DIE, execution=execution).profile
    received = profile.recv_latency if execution == "collective" else 0.0
    bytes_ = profile.dispatch_bytes_per_copy + profile.combine_bytes_per_copy
    total = 2 * (getattr(profile, field) + received) + 4096 * 8 * bytes_ / (link * getattr(profile, share))
    assert total == pytest.approx(sum(row[3] for row in rows if row[1] == 4096), rel=1e-4)


TILED = {"eta_x": 0.8, "eta_m": 0.85, "tau_k": 4e-6, "k_z": 90.0, "B_t": 9e10, "q": 2.0}


def products(path: Path, device: str, noise: float = 0.01, groups: int = 1) -> None:
    """A table of dense products by the law of tiles on an H800, with noise."""
    generator, rows = np.random.default_rng(4), []
    for m in (16, 64, 256, 1024, 4096, 16384):
        for n, k in ((128, 65536), (512, 16384), (2112, 7168), (4096, 1536), (7168, 2048), (24576, 512)):
            cut = dict(zip(("t_x", "t_y", "N_w"), tiles(m, n, 132), strict=True))
            sizes = {"G": 1, "N_x": m, "N_y": n, "N_z": k}
            exact = evaluate(tile_expression(), catalog.load_device("h800").value, **sizes, **cut, **TILED)
            rows.append((groups, m, n, k, device, float(exact[0]) * np.exp(noise * generator.standard_normal())))
    columns = ["groups", "rows", "width", "depth", "device", "seconds"]
    pd.DataFrame(rows, columns=columns).assign(quantity="grouped_gemm").to_csv(path, index=False)


def test_constants_of_products_in_tiles_come_back(tmp_path: Path) -> None:
    """By the command line, in detail; held-out rows are predicted within their noise."""
    products(tmp_path / "g.csv", "h800")
    options = ["--model", "moe", "--detail", "-o", str(tmp_path / "p.toml"), "--json"]
    shown = CliRunner().invoke(make_app(), ["calibrate", str(tmp_path / "g.csv"), *options])
    assert shown.exit_code == 0
    found = calibrate(tmp_path / "g.csv", "moe", detail=True)
    group = found.found.groups[0]
    assert set(group.letters) == set(TILED)
    for letter, value in zip(group.letters, group.values(), strict=True):
        low, high = value.interval
        assert low <= TILED[letter] <= high, letter
        assert high / low < 2.0, letter
    assert np.median(np.abs(group.held_out)) < 0.01
    assert json.loads(shown.stdout)["fields"] == pytest.approx(found.found.fields)
    profile = catalog.load_profile(str(tmp_path / "p.toml")).value
    assert (profile.grouped_gemm, profile.memory) == pytest.approx((0.8, 0.85), rel=0.05)


@pytest.mark.parametrize(
    ("device", "groups", "detail"), [("h800", 1, False), ("h800", 2, True), (DIE, 1, True)]
)  # without detail, in groups, on a device whose multiprocessors are not known
def test_other_products_are_not_cut_into_tiles(tmp_path: Path, device: str, groups: int, detail: bool) -> None:
    products(tmp_path / "g.csv", device, groups=groups)
    data = read_tables([tmp_path / "g.csv"], "moe")
    names = [one.name for one in law_of(data, "moe", known_profile(), detail).parameters]
    assert names == ["eta_x", "eta_m", "r_x", "tau_k", "q"]


def test_a_profile_goes_round_through_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attention_table(tmp_path / "a.csv", seed=2)
    first = calibrate(tmp_path / "a.csv", "attention", tmp_path / "p.toml", device=DIE)
    assert catalog.load_profile(str(tmp_path / "p.toml")).value == first.profile
    plain = 'name = "x"\n[cluster]\nuse = "cloudmatrix384"\nprofile = "p.toml"\n[system]\nkind = "sync"\nD = 8\nT = 4\n'
    (tmp_path / "s.toml").write_text(plain.removeprefix('name = "x"\n'))
    scenario = am.Scenario.load(tmp_path / "s.toml")
    filled = replace(first.profile, dispatch_bytes_per_copy=7680.0, combine_bytes_per_copy=14336.0)
    assert scenario.profile.value == filled
    monkeypatch.chdir(tmp_path.parent)
    assert scenario.replace(D=4).profile.value == filled
    assert am.Scenario.parse(scenario.to_toml()).profile.value == filled
    kinds = {a.name: a.kind for a in am.evaluate(scenario, rate=0.5).assumptions}
    assert kinds["profile.core"] == "fitted"
    shared = am.Scenario.load("paper-default").replace(**{"cluster.profile.use": str(tmp_path / "p.toml")})
    assert shared.profile.value.gemm == first.profile.gemm


def test_a_second_calibration_keeps_the_first_s_uncertainty(tmp_path: Path) -> None:
    attention_table(tmp_path / "a.csv", seed=3)
    calibrate(tmp_path / "a.csv", "attention", tmp_path / "p.toml", device=DIE)
    names, before = read_covariance(tmp_path / "p.toml")
    table = MEASURED / "deepgemm_grouped.csv"
    calibrate(table, "moe", tmp_path / "q.toml", device="h800", base=str(tmp_path / "p.toml"))
    after_names, after = read_covariance(tmp_path / "q.toml")
    assert set(names) < set(after_names)
    rows = [after_names.index(name) for name in names]
    np.testing.assert_allclose(after[np.ix_(rows, rows)], before)
    text = tomllib.loads((tmp_path / "q.toml").read_text())
    assert text["gemm"]["standard_error"] == pytest.approx(before[0, 0] ** 0.5)
    assert text["provenance"]["tables"] == ["deepgemm_grouped.csv"]
    assert "DeepGEMM" in text["provenance"]["sources"][0]


def test_command_line(tmp_path: Path) -> None:
    table, out, plot = str(MEASURED / "infersim_dsa_prefill_logits_h800.csv"), tmp_path / "p.toml", tmp_path / "p.svg"
    arguments = ["calibrate", table, "--model", "attention", "--device", "h800", "-o", str(out), "--plot", str(plot)]
    shown = CliRunner().invoke(make_app(), arguments)
    assert shown.exit_code == 0
    assert "indexer" in shown.stdout
    assert plot.read_text().startswith("<svg")
    again = CliRunner().invoke(make_app(), [*arguments, "--json", "--force"])
    answer = json.loads(again.stdout)
    assert answer["fields"]["indexer"] == catalog.load_profile(str(out)).value.indexer
    assert len(answer["residuals"]) == 12
    assert isinstance(CliRunner().invoke(make_app(), arguments).exception, InputError)


GOOD = "length,seconds\n" + "".join(f"{n},{1e-6 * n}\n" for n in (512, 1024, 2048, 4096, 8192, 16384))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (GOOD, {"device": None}, "t.csv: device: is missing; give --device, or a column with catalogue names"),
        (GOOD, {"device": "h1000"}, "t.csv: device: no device 'h1000' in the catalogue; the nearest device is 'h100'"),
        (
            GOOD.replace("length", "lenght"),
            {},
            "t.csv: lenght: is no column of a table of measurements; the nearest known column is 'length'",
        ),
        (
            GOOD.replace("length", "batch"),
            {},
            "t.csv: length: is missing; add it: a table of module needs length, prefix, batch, T",
        ),
        (GOOD.replace("1024", "many"), {}, "t.csv: row 2, length: is many; give a number above 0"),
        (
            GOOD.replace("seconds", "hours"),
            {},
            "t.csv: seconds: is missing; give one of seconds, latency_ms, latency_us",
        ),
        (
            "length,seconds\n512,1e-3\n",
            {},
            "t.csv: has 1 rows of all rows for 5 parameters (gemm, core, indexer, "
            "attention_overhead, tau_f (floor of a module: its host's work)); measure at least 5, better twice as many",
        ),
        ("length,seconds\n", {}, "t.csv: has no rows; give a table of measurements"),
        (
            "length,quantity,seconds\n512,modul,1e-3\n",
            {},
            "t.csv: row 1, quantity: is 'modul'; give one of module, sparse_core, dense_core, "
            "grouped_core, indexer, projections",
        ),
        (
            "length,prefix,seconds\n512,512,1e-3\n",
            {},
            "t.csv: row 1, prefix: is not below length; give cached tokens of the prompt",
        ),
        (GOOD, {"model": "attn"}, "--model: is 'attn'; give one of attention, moe, link"),
        (GOOD, {"model": "link"}, "t.csv: quantity: is missing; add a column with dispatch or combine"),
    ],
)
def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: dict[str, str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(text)
    given = {"model": "attention", "device": DIE} | options
    with pytest.raises(InputError) as info:
        calibrate("t.csv", given.pop("model"), **given)  # type: ignore[arg-type]
    assert str(info.value) == message


def test_a_table_of_another_model_says_which() -> None:
    with pytest.raises(InputError, match="measures link, not attention; give --model link"):
        calibrate(MEASURED / "deepep_low_latency.csv", "attention", device="h800-network")


def test_one_length_leaves_things_open_and_says_so(tmp_path: Path) -> None:
    rows = "".join(f"8192,{b},{b * 5e-3 + 4e-4}\n" for b in range(1, 9))
    (tmp_path / "t.csv").write_text("length,batch,seconds\n" + rows)
    found = calibrate(tmp_path / "t.csv", "attention", device=DIE)
    assert any("cannot tell" in line or "hardly determines" in line for line in found.found.warnings)
    assert any("8 rows for 5 parameters" in line for line in found.found.warnings)


@pytest.mark.parametrize("path", sorted(MEASURED.glob("*.csv")), ids=lambda path: path.stem)
def test_tables_are_read_with_positive_times(path: Path) -> None:
    for model in ("attention", "moe", "link"):
        try:
            data = read_tables([path], model, "h800")
        except InputError:
            continue
        assert len(data) > 0
        assert np.all(data.seconds < 1.0)
        assert np.all(data.seconds > 1e-6)
        assert len(join([data, data])) == 2 * len(data)
        return
    assert path.stem.startswith(("cann_recipes", "prfaas", "step3", "xdeepserve", "deepseek_", "deepep_ascend_normal"))
