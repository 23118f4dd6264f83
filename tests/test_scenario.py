from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from asapmodel import catalog
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.errors import InputError
from asapmodel.policy import Layout, Policy
from asapmodel.scenario import Scenario
from asapmodel.scenario_tables import PolicyTable
from asapmodel.scenario_workload import Constant, Lognormal, TraceLengths, Values, WorkloadTable
from tests.scenario_texts import ASAP, CONTRACT, SYNC, TRACE_CSV


@pytest.fixture
def contract() -> Scenario:
    return Scenario.parse(CONTRACT, where="scenario.toml")


def test_the_contract_example(contract: Scenario) -> None:
    assert contract.name == "scenario"
    assert contract.layout == Layout("asap", 4, 4, 16)
    assert contract.policy == Policy()
    work = contract.workload
    assert (work.arrivals, work.rate, work.duration, work.seed) == ("poisson", 4.0, 300.0, 1)
    assert work.lengths == Lognormal(family="lognormal", mu=7.5733, sigma=1.445)
    assert (work.min_prompt_tokens, work.max_prompt_tokens) == (31, 32768)
    assert (contract.slo.ttft, contract.slo.statistic, contract.slo.quantile) == (5.0, "mean", None)
    nothing = Affine(0.0, 0.0)
    base = LayerCosts(Quadratic(0, 0, 0), nothing, nothing, Plateau(0, 0), nothing, nothing, dense_layers=3)
    assert contract.costs_override.apply(base) == LayerCosts(
        attention=Quadratic(8e-4, 1.8e-7, 2.5e-11),
        dispatch_send=Affine(3e-5, 8e-8),
        dispatch_recv=Affine(1e-5, 2e-8),
        moe=Plateau(3.6e-4, 1.8e-7),
        combine_send=Affine(3e-5, 8e-8),
        combine_recv=Affine(1e-5, 5e-8),
        host_dispatch=220e-6,
        layers=61,
        dense_layers=3,
    )


def test_the_contract_s_alternatives(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv.gz"
    trace.write_text(TRACE_CSV)

    def workload(lines: str) -> WorkloadTable:
        return Scenario.parse(f"{ASAP}[workload]\n{lines}", base=tmp_path).workload

    assert workload("lengths = { constant = 4096 }").lengths == Constant(constant=4096)
    assert workload("lengths = { values = [1, 2] }").lengths == Values(values=(1, 2))
    assert workload('lengths = { trace = "trace.csv.gz" }').lengths == TraceLengths(trace=str(trace))  # type: ignore[arg-type]
    assert workload('arrivals = "gamma"\ncv = 2').cv == 2.0
    for text in ('arrivals = "trace"\ntrace = "trace.csv.gz"', 'trace = "trace.csv.gz"\nspread = "3 s"'):
        replay = workload(text)
        assert (replay.arrivals, replay.trace, replay.lengths) == ("trace", trace, None)
        assert (replay.rate, replay.duration) == (None, None)
    assert replay.spread == 3.0
    sync = Scenario.parse(f'{SYNC}[policy]\nchunk_tokens = 8192\nbalance = "work"\npairing = "rolling"')
    assert (sync.policy.chunk_tokens, sync.policy.balance, sync.policy.pairing) == (8192, "work", "rolling")


def test_defaults() -> None:
    scenario = Scenario.parse(ASAP)
    assert (scenario.name, scenario.source) == ("text", "<text>")
    assert scenario.policy == Policy()
    assert scenario.workload.arrivals == "poisson"
    assert (scenario.workload.min_prompt_tokens, scenario.workload.max_prompt_tokens) == (1, 32768)
    assert (scenario.workload.rate, scenario.workload.duration, scenario.workload.seed) == (None, 300.0, 1)
    assert (scenario.slo.ttft, scenario.slo.statistic) == (5.0, "mean")
    assert scenario.costs_override.given() == {}
    assert scenario.architecture == catalog.load_architecture("deepseek-v3.2")
    assert scenario.devices == catalog.load_cluster("cloudmatrix384")
    assert scenario.device == catalog.load_device("ascend-910c-die")
    raw = catalog.load_profile("cloudmatrix384-paper")
    assert scenario.profile.value == replace(raw.value, dispatch_bytes_per_copy=7680.0, combine_bytes_per_copy=14336.0)
    assert scenario.profile.assumptions[:-2] == raw.assumptions
    assert {a.kind for a in scenario.profile.assumptions[-2:]} == {"derived"}


def test_precision_decides_peak_weights_and_bytes_of_a_copy() -> None:
    wide = Scenario.parse(ASAP).replace(precision="bf16")
    assert (wide.device.value.product_flops, wide.device.value.weight_bytes) == (376e12, 2.0)
    assert wide.profile.value.dispatch_bytes_per_copy == 14336.0
    chosen = wide.device.assumptions[-1]
    assert (chosen.name, chosen.value, chosen.kind) == ("system.precision", "bf16", "override")
    back = Scenario.parse(wide.to_toml())
    assert back == wide.replace(name="text")
    gpu = Scenario.parse(ASAP).replace(**{"cluster.use": "cloudmatrix384", "cluster.device": "h800"})
    assert gpu.device.value.product_flops == 1979e12
    assert gpu.profile.value.dispatch_bytes_per_copy == 7392.0
    own = gpu.replace(**{"cluster.profile.dispatch_bytes_per_copy": 5000.0})
    assert own.profile.value.dispatch_bytes_per_copy == 5000.0


@pytest.mark.parametrize(
    ("device", "precision", "message"),
    [
        (
            "ascend-910c-die",
            "fp8",
            "system.precision: is 'fp8', but ascend-910c-die has no FP8 peak, only int8 752 TOPS, bf16 376 TFLOPS; "
            "give 'int8' or 'bf16' or 'w8a16', or cluster.fp8_flops",
        ),
        (
            "h800",
            "int8",
            "system.precision: is 'int8', but h800 has no INT8 peak, only fp8 1979 TFLOPS, bf16 989 TFLOPS; "
            "give 'fp8' or 'bf16' or 'w8a16', or cluster.int8_flops",
        ),
        ("ascend-910c-die", "int4", "system.precision: is 'int4'; give 'fp8', 'int8', 'bf16' or 'w8a16'"),
    ],
)
def test_a_precision_that_the_device_has_not_is_refused(device: str, precision: str, message: str) -> None:
    base = Scenario.parse(ASAP).replace(**{"cluster.use": "cloudmatrix384", "cluster.device": device})
    with pytest.raises(InputError) as info:
        base.replace(precision=precision)
    assert str(info.value) == f"<text>: {message}"


def test_a_synchronous_system_has_its_own_defaults() -> None:
    scenario = Scenario.parse(SYNC)
    assert scenario.layout == Layout("sync", 8, 4, 32)
    assert scenario.policy.batch_window == 0.0
    assert Scenario.parse(f'{SYNC}[policy]\nbatch_window = "0.1 s"').policy.batch_window == 0.1
    assert Scenario.parse(f"{SYNC}E = 32").layout.E == 32
    ignored = f"{SYNC}[policy]\nmin_batch_tokens = 9\nmax_batch_tokens = 8\ndual_batch = false\nsuper_kernel = false"
    assert Scenario.parse(ignored).policy.max_batch_tokens == 8


def test_the_policy_table_has_the_fields_of_the_policy() -> None:
    assert list(PolicyTable.model_fields) == [f.name for f in fields(Policy)]


@pytest.mark.parametrize(
    ("slo", "statistic", "quantile"),
    [
        ('statistic = "p99"', "p99", 0.99),
        ('statistic = "p99.9"', "p99.9", 0.999),
        ('statistic = "p1"', "p1", 0.01),
        ("attainment = 0.99", "p99", 0.99),
        ("attainment = 0.9999", "p99.99", 0.9999),
        ('statistic = "mean"', "mean", None),
    ],
)
def test_objectives(slo: str, statistic: str, quantile: float | None) -> None:
    table = Scenario.parse(f"{ASAP}[slo]\n{slo}").slo
    assert table.statistic == statistic
    assert table.quantile == (quantile if quantile is None else pytest.approx(quantile))


def test_overriding_catalogue_entries() -> None:
    scenario = Scenario.parse(
        f"""{ASAP}
[model]
use = "deepseek-v3.2"
layers = 30
[cluster]
use = "cloudmatrix384"
devices = 64
link_bandwidth = "400 GB/s"
memory_bytes = "64 GiB"
profile = {{ gemm = 0.7, host_dispatch = "100 us" }}
""",
        where="mine.toml",
    )
    assert scenario.architecture.value.layers == 30
    assert scenario.architecture.value.hidden == 7168
    assert scenario.devices.value.devices == 64
    assert scenario.device.value.link_bandwidth == 400e9
    assert scenario.device.value.memory_bytes == 64 * 2**30
    assert scenario.profile.value.gemm == 0.7
    assert scenario.profile.value.core == 0.9
    for entry, name, unit in (
        (scenario.architecture, "model.layers", ""),
        (scenario.device, "device.link_bandwidth", "B/s"),
        (scenario.profile, "profile.host_dispatch", "s"),
        (scenario.devices, "cluster.devices", ""),
    ):
        (own,) = [a for a in entry.assumptions if a.name == name]
        assert (own.kind, own.source, own.unit) == ("override", "mine.toml", unit)
    shipped = catalog.load_profile("cloudmatrix384-paper").assumptions
    assert len(scenario.profile.assumptions) == len(shipped) + 2  # and the bytes of copies, which follow from the model


def test_records_given_whole_need_no_catalogue() -> None:
    grouped = ("kv_heads", "head_dim", "window", "windowed_layers")
    latent = [f for f in catalog.FIELDS[type(MODEL)] if f not in grouped]
    model = "\n".join(f"{f} = {8 if 'experts' in f else 9}" for f in latent)
    device = "\n".join(f"{f} = {132 if f == 'multiprocessors' else 1e12}" for f in catalog.FIELDS[type(DEVICE)])
    profile = "\n".join(f"{f} = 1" for f in catalog.FIELDS[type(PROFILE)])
    text = f"{ASAP}[model]\n{model}\n[cluster]\ndevices = 32\n{device}\n[cluster.profile]\n{profile}\n"
    scenario = Scenario.parse(text)
    assert scenario.architecture.value.hidden == 9
    assert scenario.device.value.link_bandwidth == 1e12
    assert scenario.profile.value.gemm == 1.0
    assert {a.kind for e in (scenario.architecture, scenario.device) for a in e.assumptions} == {"override"}
    named = Scenario.parse(
        f'{ASAP}[cluster]\ndevices = 32\ndevice = "ascend-910c-die"\nprofile = "cloudmatrix384-paper"'
    )
    assert named.devices.value == catalog.Cluster(32, "ascend-910c-die", "cloudmatrix384-paper")


MODEL = catalog.load_architecture("deepseek-v3.2").value
DEVICE = catalog.load_device("ascend-910c-die").value
PROFILE = catalog.load_profile("cloudmatrix384-paper").value


def test_costs_override_single_coefficients() -> None:
    costs = Scenario.parse(
        f'{ASAP}[costs]\nattention = {{ fixed = "1 ms" }}\nmoe = {{ floor = 0 }}\ndense = {{ per_token = "10 ns" }}\n'
        'dense_layers = 3\nstep_overhead = "7 ms"\nrequest_latency = 0.03'
    ).costs_override
    one = Affine(1.0, 1.0)
    base = LayerCosts(Quadratic(1, 1, 1), one, one, Plateau(1, 1), one, one, dense=one)
    changed = costs.apply(base)
    assert changed.attention == Quadratic(1e-3, 1, 1)
    assert changed.moe == Plateau(0, 1)
    assert changed.dense == Affine(1.0, 1e-8)
    assert (changed.dense_layers, changed.step_overhead, changed.request_latency) == (3, 7e-3, 0.03)
    assert changed.combine_send == one
    named = {a.name: (a.value, a.unit, a.kind, a.source) for a in costs.assumptions("s.toml")}
    assert named["costs.attention.fixed"] == ("0.001", "s", "override", "s.toml")
    assert named["costs.dense.per_token"] == ("1e-08", "s/token", "override", "s.toml")
    assert named["costs.dense_layers"] == ("3", "", "override", "s.toml")


def test_costs_say_what_they_were_fitted_to() -> None:
    text = (
        f'{ASAP}[costs]\nattention = {{ fixed = "1 ms", per_token2 = 1e-11 }}\n'
        'moe = { floor = 0, per_token = 1e-7 }\nstep_overhead = "7 ms"\n'
        'fitted_to = { "attention.per_token2" = "lone prompts", moe = "a table" }'
    )
    scenario = Scenario.parse(text)
    kinds = {one.name: (one.kind, one.source) for one in scenario.costs_override.assumptions("s.toml")}
    assert kinds == {
        "costs.attention.fixed": ("override", "s.toml"),
        "costs.attention.per_token2": ("fitted", "s.toml (fitted to lone prompts)"),
        "costs.moe.floor": ("fitted", "s.toml (fitted to a table)"),
        "costs.moe.per_token": ("fitted", "s.toml (fitted to a table)"),
        "costs.step_overhead": ("override", "s.toml"),
    }
    assert Scenario.parse(scenario.to_toml()) == scenario


@pytest.mark.parametrize("name", catalog.names("scenarios"))
def test_shipped_scenarios(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.load(name)
    assert (scenario.name, scenario.source) == (name, f"<{name}>")
    assert scenario.layout.devices == 32
    assert (scenario.slo.ttft, scenario.slo.statistic) == (5.0, "mean")
    bounds = (1, 65536) if name.startswith("afd") else (31, 32768)  # the measured requests are all replayed
    assert (scenario.workload.min_prompt_tokens, scenario.workload.max_prompt_tokens) == bounds
    system = name.removesuffix("-fitted").partition("-")[2]
    measured = {"chunk_tokens": 65536, "routing": "fewest_requests", "schedule_ahead": True, "max_seqs": 8}
    measured |= {"pad_groups": True, "idle_steps": True, "context_parallel": True}
    expected = {
        "default": Policy(max_batch_tokens=8192, batch_window=0.0),
        "chunked": Policy(chunk_tokens=8192, batch_window=0.0),
        "asap": Policy(batch_window=0.1),
        "sync": Policy(**measured, batch_window=0.0),  # type: ignore[arg-type]
        "async": Policy(
            chunk_tokens=65536,
            routing="round_robin",
            max_seqs=32,
            micro_batches="split",
            super_kernel=False,
            schedule_ahead=True,
            hide_overhead=False,
        ),
    }
    fitted: dict[str, Any] = {"batch_window": 0.120087} if name.endswith("-fitted") and system != "chunked" else {}
    assert scenario.policy == replace(expected[system], **fitted)
    if name.startswith("afd"):
        assert scenario.workload.rate == 4.0
    elif name.startswith("trace"):
        assert scenario.workload.spread == 3.0
    else:
        assert scenario.workload.duration == 300.0
    assert Scenario.parse(scenario.to_toml(), where=f"<{name}>") == scenario
