"""What a scenario file may not say: each mistake is one line with file, key and remedy."""

from pathlib import Path

import pytest

from asapmodel import catalog
from asapmodel.errors import InputError
from asapmodel.scenario import Scenario
from tests.scenario_texts import ASAP, SYNC, TIMES, TRACE_CSV, refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # keys, tables, syntax
        (
            ASAP + "[policy]\nbatch_windw = 1",
            "policy.batch_windw: unknown key; the nearest valid key is 'batch_window'",
        ),
        (ASAP + "[polcy]", "polcy: unknown table; the nearest valid table is 'policy'"),
        (ASAP + "[workload]\nD = 8", "workload.D: unknown key; it belongs in [system]"),
        ("rate = 4\n" + ASAP, "rate: unknown key; it belongs in [workload]"),
        (ASAP + "d = 8", "system.d: unknown key; the nearest valid key is 'D'"),
        (ASAP + "[costs]\nmoe = { flor = 1 }", "costs.moe.flor: unknown key; the nearest valid key is 'floor'"),
        (
            ASAP + '[model]\nuse = "deepseek-v3.2"\nlayer = 3',
            "model.layer: unknown key; the nearest valid key is 'layers'",
        ),
        (
            ASAP + '[cluster]\nuse = "cloudmatrix384"\nprofile = { gem = 1 }',
            "cluster.profile.gem: unknown key; the nearest valid key is 'gemm'",
        ),
        ("[system]\nkind = \n", "line 2: not valid TOML: Invalid value; correct the syntax"),
        (ASAP + "D = 5", "line 6: not valid TOML: Cannot overwrite a value; correct the syntax"),
        ("slo = 3\n" + ASAP, "slo: is 3; write a table, [slo] with key = value lines"),
        ("", "system: is missing; add [system] with kind, D and T, and E for kind = 'asap'"),
        # system
        ("[system]\nD = 4\nT = 4", "system.kind: is missing; add kind = ... to system"),
        (ASAP.replace('"asap"', '"aspa"'), "system.kind: is 'aspa'; give 'sync' or 'asap'"),
        (ASAP.replace("D = 4\n", ""), "system.D: is missing; add D = ... to system"),
        (ASAP.replace("T = 4\n", ""), "system.T: is missing; add T = ... to system"),
        (ASAP.replace("E = 16\n", ""), "system.E: is missing; kind = 'asap' needs the number of MoE devices"),
        (ASAP.replace("D = 4", "D = 0"), "system.D: is 0; give a whole number of at least 1"),
        (ASAP.replace("D = 4", "D = -1"), "system.D: is -1; give a whole number of at least 1"),
        (ASAP.replace("D = 4", "D = 4.5"), "system.D: is 4.5; give a whole number"),
        (ASAP.replace("D = 4", 'D = "4"'), "system.D: is '4'; give a whole number"),
        (ASAP.replace("D = 4", "D = true"), "system.D: is true; give a whole number"),
        (
            SYNC + "E = 16",
            "system.E: is 16 for kind = 'sync'; experts are spread over all D x T = 32 devices: "
            "give that, or leave E out",
        ),
        (
            ASAP.replace("D = 4", "D = 400"),
            "system: needs 1616 devices, the cluster has 768; lower D, T or E, or raise cluster.devices",
        ),
        # policy
        (
            ASAP + '[policy]\nbatch_window = "5 GB"',
            f"policy.batch_window: '5 GB' is a size, not a time; {TIMES}",
        ),
        (ASAP + '[policy]\nbatch_window = "5"', f"policy.batch_window: '5' has no unit; {TIMES}"),
        (ASAP + "[policy]\nbatch_window = nan", f"policy.batch_window: is nan, not a finite time; {TIMES}"),
        (ASAP + "[policy]\nbatch_window = -1", "policy.batch_window: is -1; give a number of at least 0"),
        (ASAP + '[policy]\nbatch_window = "-1 s"', "policy.batch_window: is '-1 s'; give a number of at least 0"),
        (ASAP + "[policy]\nmin_batch_tokens = 0", "policy.min_batch_tokens: is 0; give a whole number of at least 1"),
        (ASAP + '[policy]\nmin_batch_tokens = "2k"', "policy.min_batch_tokens: is '2k'; give a whole number"),
        (ASAP + "[policy]\nexclusive_tokens = 0", "policy.exclusive_tokens: is 0; give a whole number of at least 1"),
        (ASAP + '[policy]\npairing = "lokced"', "policy.pairing: is 'lokced'; give 'locked' or 'rolling'"),
        (ASAP + "[policy]\ndual_batch = 1", "policy.dual_batch: is 1; give true or false"),
        (SYNC + "[policy]\ndual_batch = 1", "policy.dual_batch: is 1; give true or false"),
        (
            ASAP + "[policy]\nchunk_tokens = 8192",
            "policy.chunk_tokens: is 8192, but chunks are not available with one queue for all groups; "
            "give routing = 'round_robin', 'fewest_requests', 'fewest_tokens' or 'least_work', "
            "or leave chunk_tokens out",
        ),
        (
            ASAP + "[policy]\nmax_batch_tokens = 10",
            "policy.min_batch_tokens: is 2048, more than max_batch_tokens 10; lower it, or raise max_batch_tokens",
        ),
        # catalogue
        (
            ASAP + '[model]\nuse = "deepseek-v3.1"',
            "model.use: no model 'deepseek-v3.1' in the catalogue; the nearest model is 'deepseek-v3.2'",
        ),
        (
            ASAP + '[cluster]\nuse = "cloudmatrix"',
            "cluster.use: no cluster 'cloudmatrix' in the catalogue; the nearest cluster is 'cloudmatrix384'",
        ),
        (
            ASAP + '[cluster]\nuse = "cloudmatrix384"\ndevice = "910c"',
            "cluster.device: no device '910c' in the catalogue; the nearest device is 'ascend-910c-die'",
        ),
        (
            ASAP + '[cluster]\nuse = "cloudmatrix384"\nlink_bandwidth = 0',
            "cluster.link_bandwidth: is 0; give a number greater than 0",
        ),
        (
            ASAP + '[cluster]\nuse = "cloudmatrix384"\nprofile = { gemm = 1.5 }',
            "cluster.profile.gemm: is 1.5; give a number of at most 1",
        ),
        (
            ASAP + '[model]\nuse = "deepseek-v3.2"\ndense_layers = 62',
            "model.dense_layers: is 62; give at most 61",
        ),
        (
            ASAP + '[model]\nuse = "deepseek-v3.2"\nexperts_per_token = 257',
            "model.experts_per_token: is 257; give at most 256",
        ),
        # workload
        (ASAP + "[workload]\nrate = 0", "workload.rate: is 0; give a number greater than 0"),
        (ASAP + "[workload]\nduration = 0", "workload.duration: is 0; give a number greater than 0"),
        (ASAP + "[workload]\nseed = -1", "workload.seed: is -1; give a whole number of at least 0"),
        (
            ASAP + '[workload]\narrivals = "gamma"',
            "workload.cv: is missing; arrivals = 'gamma' needs the coefficient of variation",
        ),
        (
            ASAP + '[workload]\narrivals = "gamma"\ncv = 0',
            "workload.cv: is 0; give a number greater than 0",
        ),
        (
            ASAP + "[workload]\ncv = 2",
            "workload.cv: is not for arrivals = 'poisson'; leave it out, or give arrivals = 'gamma'",
        ),
        (
            ASAP + '[workload]\narrivals = "bursty"',
            "workload.arrivals: is 'bursty'; give 'poisson', 'gamma' or 'trace'",
        ),
        (
            ASAP + '[workload]\narrivals = "trace"',
            "workload.trace: is missing; arrivals = 'trace' needs it",
        ),
        (
            ASAP + "[workload]\nspread = 3",
            "workload.spread: is only for a replayed trace; leave it out, or give trace",
        ),
        (
            ASAP + "[workload]\nmin_prompt_tokens = 100\nmax_prompt_tokens = 10",
            "workload.min_prompt_tokens: is 100; give at most max_prompt_tokens, 10",
        ),
        (
            ASAP + "[workload]\nlengths = { constant = 0 }",
            "workload.lengths.constant: is 0; give a whole number of at least 1",
        ),
        (
            ASAP + "[workload]\nlengths = { constant = 32769 }",
            "workload.lengths: no length is within the bounds; "
            "give a length from min_prompt_tokens 1 to max_prompt_tokens 32768",
        ),
        (
            ASAP + "[workload]\nlengths = { values = [] }",
            "workload.lengths.values: is []; give at least one entry",
        ),
        (
            ASAP + '[workload]\nlengths = { values = [1, "2"] }',
            "workload.lengths.values.1: is '2'; give a whole number",
        ),
        (
            ASAP + "[workload]\nlengths = { constant = 1, values = [1] }",
            "workload.lengths: has both constant and values; give one of them",
        ),
        (
            ASAP + '[workload]\nlengths = { famly = "lognormal" }',
            "workload.lengths.famly: unknown key; the nearest valid key is 'family'",
        ),
        (
            ASAP + '[workload]\nlengths = { family = "pareto", mu = 1, sigma = 1 }',
            "workload.lengths.family: is 'pareto'; give 'lognormal'",
        ),
        (
            ASAP + '[workload]\nlengths = { family = "lognormal", mu = nan, sigma = 1 }',
            "workload.lengths.mu: is nan; give a finite number",
        ),
        (
            ASAP + '[workload]\nlengths = { family = "lognormal", mu = 1, sigma = inf }',
            "workload.lengths.sigma: is inf; give a finite number",
        ),
        (ASAP + "[workload]\nlengths = 4096", "workload.lengths: is 4096; give a table, key = value"),
        # objective
        (ASAP + '[slo]\nttft = "5 GB"', f"slo.ttft: '5 GB' is a size, not a time; {TIMES}"),
        (ASAP + "[slo]\nttft = 0", "slo.ttft: is 0; give a number greater than 0"),
        (ASAP + '[slo]\nstatistic = "p100"', "slo.statistic: is 'p100'; give 'mean', or 'p1' to 'p99.9'"),
        (
            ASAP + '[slo]\nstatistic = "median"',
            "slo.statistic: is 'median'; give 'mean', or 'p50' to 'p99' (p1 to p99.9)",
        ),
        (ASAP + "[slo]\nattainment = 1.0", "slo.attainment: is 1.0; give a number less than 1"),
        (ASAP + "[slo]\nattainment = 0", "slo.attainment: is 0; give a number greater than 0"),
        (
            ASAP + '[slo]\nattainment = 0.9\nstatistic = "p90"',
            "slo.attainment: cannot be combined with statistic; give one of the two",
        ),
        # costs
        (ASAP + "[costs]\nmoe = { floor = -1 }", "costs.moe.floor: is -1; give a number of at least 0"),
        (ASAP + "[costs]\nmoe = 3", "costs.moe: is 3; give a table, key = value"),
        (
            ASAP + "[costs]\nattention = { fixed = inf }",
            f"costs.attention.fixed: is inf, not a finite time; {TIMES}",
        ),
        (ASAP + "[costs]\nlayers = 0", "costs.layers: is 0; give a whole number of at least 1"),
        (ASAP + "[costs]\ndense_layers = 62", "costs.dense_layers: is 62; give at most layers, 61"),
        (
            f'{ASAP}[costs]\nmoe = {{ floor = 0 }}\nfitted_to = {{ "moe.flor" = "a table" }}',
            "costs.fitted_to.moe.flor: is no coefficient of this table; the nearest is 'moe.floor'",
        ),
        (
            f'{ASAP}[costs]\nfitted_to = {{ moe = "a table" }}',
            "costs.fitted_to.moe: is no coefficient of this table; give the coefficients",
        ),
    ],
)
def test_bad_input_is_one_line_with_file_key_and_remedy(text: str, message: str) -> None:
    assert refused(text) == f"s.toml: {message}"


def test_parts_missing_without_a_catalogue_entry() -> None:
    assert refused(f"{ASAP}[model]\nlayers = 3").startswith("s.toml: model.dense_layers: is missing; give it, or")
    assert "cluster.use: is missing; give one of atlas-a2, b200-nvlink, cloudmatrix384, " in refused(
        f"{ASAP}[cluster]\ndevices = 64"
    )
    device = f'{ASAP}[cluster]\ndevice = "ascend-910c-die"\n'
    assert "cluster.profile.gemm: is missing; give it, or start from use" in refused(device)
    assert "cluster.devices: is missing" in refused(f'{device}profile = "cloudmatrix384-paper"')


def test_traces_are_files_beside_the_scenario_or_shipped(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE_CSV)
    path = tmp_path / "mine.toml"
    path.write_text(f'{ASAP}[workload]\ntrace = "t.csv"')
    scenario = Scenario.load(path)
    assert (scenario.name, scenario.source) == ("mine", str(path))
    assert scenario.workload.trace == tmp_path / "t.csv"
    assert scenario.replace(rate=2.0).workload.trace == tmp_path / "t.csv"
    assert Scenario.parse(scenario.to_toml(), where="mine.toml", base="/") == scenario
    gone = refused(f'{ASAP}[workload]\ntrace = "u.csv"', base=tmp_path)
    assert gone.startswith(f"s.toml: workload.trace: no such file: {tmp_path / 'u.csv'}; paths are relative to")
    both = refused(f'{ASAP}[workload]\ntrace = "t.csv"\nlengths = {{ constant = 1 }}', base=tmp_path)
    assert "workload.lengths: cannot be combined with trace" in both
    assert "workload.arrivals: is 'poisson' although a trace is replayed" in refused(
        f'{ASAP}[workload]\ntrace = "t.csv"\narrivals = "poisson"', base=tmp_path
    )
    assert "workload.trace: is 3" in refused(f"{ASAP}[workload]\ntrace = 3")
    shipped = Scenario.parse(f'{ASAP}[workload]\ntrace = "mooncake_conversation"', base=tmp_path)
    assert shipped.workload.trace == catalog.entry_path("traces", "mooncake_conversation")
    near = refused(f'{ASAP}[workload]\ntrace = "mooncake_conversaton"')
    assert near.endswith("the nearest shipped trace is 'mooncake_conversation'")


def test_files_that_are_not_there_or_not_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def message(path: str | Path) -> str:
        with pytest.raises(InputError) as info:
            Scenario.load(path)
        assert "\n" not in str(info.value)
        return str(info.value)

    monkeypatch.chdir(tmp_path)
    assert message("paper-asp") == (
        "paper-asp: no such file or shipped scenario; give a file or a shipped scenario; the nearest is 'paper-asap'"
    )
    assert message(tmp_path) == f"{tmp_path}: is a directory; give a .toml file"
    Path("latin.toml").write_bytes(b"# \xe9\n")
    assert message("latin.toml") == "latin.toml: is not UTF-8 text (byte 2); save it as UTF-8"
    assert "no such file" in message("x" * 5000)
    assert "no such file" in message("a\0b")
    Path("paper-asap").write_text(SYNC)
    assert Scenario.load("paper-asap").layout.kind == "sync", "a file goes before a shipped name"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            'use = "qwen3-235b-a22b"\nkv_lora_rank = 512',
            "model.kv_lora_rank: is given beside kv_heads = 4; latent attention has no kv_heads, "
            "grouped-query attention no low ranks: give one of the two",
        ),
        ('use = "qwen3-235b-a22b"\nkv_heads = 5', "model.kv_heads: is 5 for 64 heads; give a divisor: query heads"),
        ('use = "deepseek-v3.2"\nq_lora_rank = 0', "model.q_lora_rank: is missing; latent attention needs it;"),
        ('use = "qwen3-235b-a22b"\nhead_dim = 0', "model.head_dim: is missing; grouped-query attention needs kv_heads"),
        (
            'use = "gpt-oss-120b"\nwindow = 0',
            "model.windowed_layers: is 18 of 36 layers, with window = 0; give at most",
        ),
        ('use = "qwen3-235b-a22b"\nkv_heads = 0', "model.q_lora_rank: is missing; latent attention needs it;"),
    ],
)
def test_a_model_has_one_kind_of_attention(lines: str, message: str) -> None:
    assert message in refused(f"{ASAP}[model]\n{lines}")
