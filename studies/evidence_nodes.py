"""Are modules and whole nodes predicted from the kernels of other teams? Tables for `docs/evidence.md`.

A node's iteration is the sum of its layers' attention, experts and transfers, ``C + t`` with t the transfers. Two
micro-batches hide a share f of the transfers, ``C + (1 - f) t``. Three published iterations of balanced experts know
C, t or f from one another, never from themselves.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.calibration.laws import Law, law_of, link_law
from asapmodel.calibration.measurements import Measurements, join
from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.solvers.robust_fit import robust_fit
from asapmodel.studies.evidence_families import consistent
from asapmodel.studies.evidence_judging import column_of, measured
from asapmodel.studies.evidence_summary import Point, Row, row_of

__all__ = ["Node", "ascend", "cross_modules", "hopper", "long_prompt", "node_rows", "points", "published_s", "summary"]

Array = NDArray[np.float64]

_LAYERS, _DENSE = 61, 3  # layers, those with a dense FFN in place of experts; its FLOP a token are the experts'
_TARGET = 0.10
_PROMPT = 4096
_NO_OVERLAP = "the profile is of another system; launches and element-wise work of this one are not in it"
_KERNELS_ONLY = "a module does more than its products: norms, rotary embedding, quantisation, permutation"


@dataclass(frozen=True, slots=True)
class Node:
    """An iteration of a whole node: seconds of computing and of transfers, over all layers."""

    compute_s: float
    transfer_s: float

    def seconds(self, hidden: float = 0.0) -> float:
        """Time of the iteration with a share of the transfers hidden."""
        return self.compute_s + (1 - hidden) * self.transfer_s

    def hidden(self, seconds: float) -> float:
        """Share of the transfers that must have been hidden for a measured time."""
        return 1 - (seconds - self.compute_s) / self.transfer_s

    def scaled(self, seconds: float) -> "Node":
        """All costs times one factor, so that nothing hidden takes so long."""
        factor = seconds / self.seconds()
        return Node(factor * self.compute_s, factor * self.transfer_s)


def published_s() -> dict[str, float]:
    """Seconds of the published iterations, by name."""
    import pandas as pd

    ascend_ms = pd.read_csv(_path("cann_recipes_prefill_a3"), comment="#")["latency_ms"]
    table = pd.read_csv(_path("deepseek_prefill_published"), comment="#")
    row = table[table["setup"] == "DeepSeek profile-data"].iloc[0]
    tokens = float(row["tokens_per_gpu_batch"]) * float(row["gpus"]) / float(row["nodes"])
    seconds = tokens / float(row["tokens_per_s_per_node"])
    return {"910C": float(ascend_ms[0]) / 1e3, "910C, two": float(ascend_ms[1]) / 1e3, "H800, two": seconds}


def _path(name: str) -> str:
    from importlib.resources import files

    return str(files("asapmodel.studies").joinpath(f"data/measured/{name}.csv"))


@cache
def ascend() -> Node:
    """DeepSeek-R1 on 32 dies, DP32 EP32, two prompts of 4096 tokens a die, costs of the paper's machine."""
    scenario = Scenario.load("paper-default").replace(
        **{"model.use": "deepseek-v3", "D": 32, "T": 1, "E": 32, "lengths": {"constant": _PROMPT}},
        **{"cluster.profile.expert_load_cv": 0.0, "cluster.memory_bytes": 1e13},
    )
    costs, n = layer_costs(scenario).costs, 2.0 * _PROMPT
    compute = float(costs.attention(n, 2.0 * _PROMPT**2)) + float(costs.moe(32 * n))
    transfers = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    return Node(_LAYERS * compute, (_LAYERS - _DENSE) * sum(float(one(n)) for one in transfers))


@cache
def hopper() -> Node:
    """The same on 32 GPUs, four prompts a GPU, from modules (SGLang) and transfers (DeepEP) measured on H100s."""
    data = measured("aiconfigurator_mla_context_h100", "attention", "h100", "deepseek-v3")
    fast = column_of(data, "aiconfigurator_mla_context_h100", "kernel") == "fa3"
    module = data.take(fast & (data.values["s"] >= 128))
    attention = _unseen(module, "attention", {"s": _PROMPT, "p": 0, "N_b": 4, "T": 1})
    experts = measured("aiconfigurator_moe_context_h100", "moe", "h100")
    moe = _unseen(experts.take(experts.values["E"] > 2), "moe", {"n": 32 * 4 * _PROMPT, "E": 32})
    sweep = measured("aiconfigurator_deepep_normal_h100", "link")
    both = [
        sweep.take((sweep.nodes == 4) & (sweep.quantity == name) & (sweep.values["n"] >= 256))
        for name in ("dispatch", "combine")
    ]
    transfers = [_unseen(one, "link", {"n": 4 * _PROMPT}) for one in both]
    return Node(_LAYERS * (attention + moe), (_LAYERS - _DENSE) * sum(transfers))


def _unseen(data: Measurements, model: str, values: dict[str, float]) -> float:
    """Seconds that the law, fitted to all rows of a table, gives for a row that is not in it."""
    first = data.take(np.array([0]))
    row = replace(first, values={**first.values, **{x: np.array([float(v)]) for x, v in values.items()}})
    law = _law(join([data, row]), model)
    own = np.arange(len(data))
    fit = robust_fit(lambda p: law.predict(p, own), data.seconds, law.parameters, data.noise, bootstrap=False)
    return float(law.predict(fit.values, np.array([len(data)]))[0])


def _law(data: Measurements, model: str) -> Law:
    base = catalog.load_profile("cloudmatrix384-paper").value
    return link_law(data) if model == "link" else law_of(data, model, base, detail=True)


def node_rows() -> list[tuple[str, str, Point]]:
    """Predictions of whole iterations: what is predicted, from what, and measured and predicted seconds."""
    times = published_s()
    scaled = ascend().scaled(times["910C"])
    of_dies, of_gpus = scaled.hidden(times["910C, two"]), hopper().hidden(times["H800, two"])
    shipped = "shipped profile of the paper's machine, nothing fitted"
    first = "the row without, and the hidden share of the H800 node"
    modules = "modules and transfers of other teams on H100, and the hidden share of the 910C rows"
    return [
        ("910C, no overlap", shipped, Point("whole node", times["910C"], ascend().seconds())),
        ("910C, two micro-batches", first, Point("whole node", times["910C, two"], scaled.seconds(of_gpus))),
        ("H800, two micro-batches", modules, Point("whole node", times["H800, two"], hopper().seconds(of_dies))),
        ("8 x H200, 1T hybrid, 32768 tokens", "1024, 8192 and 131072 tokens of the table", long_prompt()),
    ]


def long_prompt() -> Point:
    """Prefill of 32768 tokens by a parabola through the table's other three lengths, against the measured one."""
    import pandas as pd

    table = pd.read_csv(_path("prfaas_prefill_1t"), comment="#")
    lengths, seconds = table["seq_len"].to_numpy(np.float64), table["prefill_s"].to_numpy(np.float64)
    out = lengths == 32768
    law = np.polynomial.Polynomial.fit(lengths[~out], seconds[~out], 2)
    return Point("whole node", float(seconds[out][0]), float(law(32768.0)))


def cross_modules() -> dict[str, tuple[Array, Array]]:
    """Modules of one team (measured, predicted) from kernels of another: long MLA on H100, experts on H100.

    Shares of peak from InferSim's kernels on H800; nothing is known of what a module does besides its products.
    """
    dense = measured("infersim_gemm_h800", "moe", "h800")
    filled = dense.take(_tiles(dense) >= 132)
    core = measured("infersim_mla_prefill_h800", "attention", "h800", "deepseek-v3")
    grouped = measured("infersim_grouped_gemm_decode_h800", "moe", "h800")
    grouped = grouped.take(consistent(grouped))
    attention = {"eta_g": _fitted(filled, "moe")["eta_x"], "eta_c": _fitted(core, "attention")["eta_c"]}
    experts = _fitted(grouped, "moe")
    module = measured("aiconfigurator_mla_context_h100", "attention", "h100", "deepseek-v3")
    fast = column_of(module, "aiconfigurator_mla_context_h100", "kernel") == "fa3"
    large = module.values["N_b"] * module.values["s"] >= 8192
    steps = measured("aiconfigurator_moe_context_h100", "moe", "h100")
    many = (steps.values["n"] / steps.values["E"] >= 1024) & (steps.values["E"] > 2)
    seen = {"MLA module": (module.take(fast & large & (module.values["s"] >= 128)), "attention", attention)}
    seen["MoE module"] = (steps.take(many), "moe", {x: experts[x] for x in ("eta_x", "eta_m", "r_x")})
    return {name: (data.seconds, _by_shares(data, model, values)) for name, (data, model, values) in seen.items()}


def _tiles(data: Measurements) -> Array:
    return np.asarray(np.ceil(data.values["N_x"] / 128) * np.ceil(data.values["N_y"] / 128))


def _fitted(data: Measurements, model: str) -> dict[str, float]:
    law, own = _law(data, model), np.arange(len(data))
    fit = robust_fit(lambda p: law.predict(p, own), data.seconds, law.parameters, data.noise, bootstrap=False)
    return {name: float(value) for name, value in zip(fit.names, fit.values, strict=True)}


def _by_shares(data: Measurements, model: str, values: dict[str, float]) -> Array:
    """Predictions with these letters; floors, launches and element-wise time are left out."""
    law = _law(data, model)
    given = np.array([values.get(one.name, one.lower) for one in law.parameters])
    return law.predict(given, np.arange(len(data)))


def summary() -> list[Row]:
    """Rows of `docs/evidence.md`; errors are those of throughput for nodes, of time for modules."""
    nodes = [
        row_of(
            "whole nodes",
            name,
            (given, "prefill throughput"),
            [one.measured / one.predicted - 1],
            (_TARGET, None),
            _NO_OVERLAP if "no overlap" in name else "",
        )
        for name, given, one in node_rows()
    ]
    words = ("InferSim's kernels, H800", "modules of SGLang, H100, many tokens")
    modules = [
        row_of("across teams", name, words, p / m - 1, (0.06, 0.20), _KERNELS_ONLY)
        for name, (m, p) in cross_modules().items()
    ]
    return nodes + modules


def points() -> list[Point]:
    """Predicted and measured seconds of the nodes and of the modules."""
    modules = [
        Point(name, float(m), float(p)) for name, pair in cross_modules().items() for m, p in zip(*pair, strict=True)
    ]
    return [one for _, _, one in node_rows()] + modules
