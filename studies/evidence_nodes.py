"""Are modules and whole nodes predicted from the kernels of other teams? Tables for `docs/evidence.md`.

A node's iteration is the sum of its layers' attention, experts and transfers, ``C + t`` with t the transfers. Two
micro-batches hide a share f of the transfers, ``C + (1 - f) t``. Three published iterations of balanced experts know
C, t or f from one another, never from themselves. Each is predicted twice: by products alone, and with the memory
traffic between them (`asapmodel.models.elementwise`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.laws import link_law
from asapmodel.calibration.measurements import Measurements, join
from asapmodel.costing import layer_costs
from asapmodel.models.elementwise import attention_bytes, expert_bytes
from asapmodel.models.evaluation import evaluate
from asapmodel.models.parameters import Split
from asapmodel.scenario import Scenario
from asapmodel.solvers.robust_fit import robust_fit
from asapmodel.studies.evidence_judging import measured
from asapmodel.studies.evidence_modules import (
    attention_table,
    cross_modules,
    expert_table,
    module_law,
    own_letters,
    seconds_of,
    whole_attention,
    whole_experts,
)
from asapmodel.studies.evidence_products import modules_by_products
from asapmodel.studies.evidence_summary import Point, Row, row_of

__all__ = ["Node", "ascend", "hopper", "long_prompt", "node_rows", "points", "published_s", "summary"]

Array = NDArray[np.float64]

_LAYERS, _DENSE = 61, 3  # layers, those with a dense FFN in place of experts; its FLOP a token are the experts'
_TARGET = 0.10
_PROMPT = 4096
_WITH = ", with element-wise traffic"
_WITHOUT = "without what a layer does between its products; not judged"
_NO_OVERLAP = "the profile is of another system; launches of this one are not in it"
_PRODUCTS = ", product by product"
_TRAFFIC = "one share of peak for all products, no launches; not judged"
_SEEN = "looked at before: no blind test; shallow products are slower there than InferSim's, the core faster"
_SEEN_EXPERTS = "looked at before: no blind test; steps were timed one by one from an idle device"


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
def ascend(elementwise: bool = False, core: float | None = None) -> Node:
    """DeepSeek-R1 on 32 dies, DP32 EP32, two prompts of 4096 tokens a die, costs of the paper's machine.

    With `elementwise` the kernels of cann-recipes-infer, whose iterations these are, at the profile's share of the
    memory bandwidth; what the three dense layers do between products is left out. `core` is another share of peak for
    the attention core than the profile's.
    """
    scenario = Scenario.load("paper-default").replace(
        **{"model.use": "deepseek-v3", "D": 32, "T": 1, "E": 32, "lengths": {"constant": _PROMPT}},
        **{"cluster.profile.expert_load_cv": 0.0, "cluster.memory_bytes": 1e13},
        **({} if core is None else {"cluster.profile.core": core}),
    )
    costs, n = layer_costs(scenario).costs, 2.0 * _PROMPT
    compute = _LAYERS * (float(costs.attention(n, 2.0 * _PROMPT**2)) + float(costs.moe(32 * n)))
    if elementwise:
        device = scenario.device.value
        given = (scenario.architecture.value, device, Split(32, 1, 32))
        attention, experts = (
            float(evaluate(one, *given)) for one in (attention_bytes("latent", "cann"), 32 * expert_bytes("cann"))
        )
        moved = n * (_LAYERS * attention + (_LAYERS - _DENSE) * experts)
        compute += moved / (scenario.profile.value.memory * device.memory_bandwidth)
    transfers = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    return Node(compute, (_LAYERS - _DENSE) * sum(float(one(n)) for one in transfers))


@cache
def hopper(elementwise: bool = False) -> Node:
    """The same on 32 GPUs, four prompts a GPU, from modules (SGLang) and transfers (DeepEP) measured on H100s.

    With `elementwise` what was timed is kept apart from what was not: modules are fitted with their traffic known, and
    the down-projections, the shared experts and the traffic around modules are added; a device gets rows for the
    tokens that have an expert there, not for all.
    """
    attention, moe = _modules_apart() if elementwise else _modules()
    sweep = measured("aiconfigurator_deepep_normal_h100", "link")
    both = [
        sweep.take((sweep.nodes == 4) & (sweep.quantity == name) & (sweep.values["n"] >= 256))
        for name in ("dispatch", "combine")
    ]
    transfers = [_unseen(one, "link", {"n": 4 * _PROMPT}) for one in both]
    return Node(_LAYERS * (attention + moe), (_LAYERS - _DENSE) * sum(transfers))


_ATTENTION = {"s": _PROMPT, "p": 0, "N_b": 4, "T": 1}
_EXPERTS = {"n": 32 * 4 * _PROMPT, "E": 32}


def _modules() -> tuple[float, float]:
    """Seconds of the modules of one layer, by the laws of `calibration` fitted to the tables."""
    return _unseen(attention_table(), "attention", _ATTENTION), _unseen(expert_table(), "moe", _EXPERTS)


def _modules_apart() -> tuple[float, float]:
    """The same with known traffic, completed by what was not timed."""
    attention, experts = own_letters()
    one = seconds_of(whole_attention(), _row(attention_table(), _ATTENTION), attention)
    return float(one[0]), float(seconds_of(whole_experts(), _row(expert_table(), _EXPERTS), experts)[0])


def _row(data: Measurements, values: Mapping[str, float]) -> Measurements:
    """A row that is not in the table."""
    first = data.take(np.array([0]))
    return replace(first, values={**first.values, **{x: np.array([float(v)]) for x, v in values.items()}})


def _unseen(data: Measurements, model: str, values: Mapping[str, float]) -> float:
    """Seconds that the law, fitted to all rows of a table, gives for a row that is not in it."""
    every = join([data, _row(data, values)])
    law = link_law(every) if model == "link" else module_law(every, model)
    own = np.arange(len(data))
    fit = robust_fit(lambda p: law.predict(p, own), data.seconds, law.parameters, data.noise, bootstrap=False)
    return float(law.predict(fit.values, np.array([len(data)]))[0])


def node_rows(elementwise: bool = False) -> list[tuple[str, str, Point]]:
    """Predictions of whole iterations: what is predicted, from what, and measured and predicted seconds.

    The last is not made of layers, and the same either way.
    """
    times = published_s()
    dies, gpus = ascend(elementwise), hopper(elementwise)
    scaled = dies.scaled(times["910C"])
    of_dies, of_gpus = scaled.hidden(times["910C, two"]), gpus.hidden(times["H800, two"])
    shipped = "shipped profile of the paper's machine, nothing fitted"
    first = "the row without, and the hidden share of the H800 node"
    modules = "modules and transfers of other teams on H100, and the hidden share of the 910C rows"
    return [
        ("910C, no overlap", shipped, Point("whole node", times["910C"], dies.seconds())),
        ("910C, two micro-batches", first, Point("whole node", times["910C, two"], scaled.seconds(of_gpus))),
        ("H800, two micro-batches", modules, Point("whole node", times["H800, two"], gpus.seconds(of_dies))),
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


def summary() -> list[Row]:
    """Rows of `docs/evidence.md`; errors are those of throughput for nodes, of time for modules.

    Nodes with element-wise traffic and modules by products have the target; what leaves more out stands beside them.
    """
    return [*_node_summary(), *_module_summary()]


def _node_summary() -> list[Row]:
    rows = []
    for (name, given, plain), (_, _, full) in zip(node_rows(), node_rows(True), strict=True):
        words, layered = (given, "prefill throughput"), plain != full
        if layered:
            error = plain.measured / plain.predicted - 1
            rows.append(row_of("whole nodes", name, words, [error], note=_WITHOUT))
        note = _NO_OVERLAP if "no overlap" in name else ""
        error = full.measured / full.predicted - 1
        rows.append(row_of("whole nodes", name + _WITH * layered, words, [error], (_TARGET, None), note))
    return rows


def _module_summary() -> list[Row]:
    words = ("InferSim's kernels, H800", "modules of SGLang, H100, many tokens")
    rows, traffic, products = [], cross_modules("elementwise"), modules_by_products()
    for name, why in (("MLA module", _SEEN), ("MoE module", _SEEN_EXPERTS)):
        plain, moved, full = (p / m - 1 for m, p in (one[name] for one in (cross_modules(), traffic, products)))
        rows.append(row_of("across teams", name, words, plain, note=_WITHOUT))
        rows.append(row_of("across teams", name + _WITH, words, moved, note=_TRAFFIC))
        rows.append(row_of("across teams", name + _PRODUCTS, words, full, (0.06, 0.20), why))
    return rows


def points() -> list[Point]:
    """Predicted and measured seconds of the nodes, with element-wise traffic, and of the modules, by products."""
    modules = [
        Point(name, float(m), float(p))
        for name, pair in modules_by_products().items()
        for m, p in zip(*pair, strict=True)
    ]
    return [one for _, _, one in node_rows(True)] + modules
