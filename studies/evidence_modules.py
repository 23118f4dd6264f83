"""Modules of one team predicted from kernels of another, with and without what a module does besides its products.

Without: the laws of `asapmodel.models.kernels` as they are. With: what the benchmark timed, by its source, and the
memory traffic of `asapmodel.models.elementwise` at an assumed share of the bandwidth; no constant is fitted to a
module. SGLang's attention was timed without the down-projections (the benchmark hands it their results), its experts
without the shared ones, and with a row for every token of the group on each device.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import sympy
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.calibration.laws import Law, law_of
from asapmodel.calibration.measurements import Measurements
from asapmodel.models.attention import parts
from asapmodel.models.elementwise import Part, attention_bytes, expert_bytes
from asapmodel.models.evaluation import prepare
from asapmodel.models.moe import arithmetic_expression, read_expression
from asapmodel.models.symbols import symbols
from asapmodel.solvers.robust_fit import robust_fit
from asapmodel.studies.evidence_drawn import with_drawn_rows
from asapmodel.studies.evidence_judging import column_of, measured

__all__ = [
    "MODULE",
    "ROUTED",
    "SHARE",
    "attention_module",
    "attention_table",
    "cross_modules",
    "cross_tables",
    "expert_module",
    "expert_table",
    "fitted",
    "kernel_shares",
    "module_law",
    "own_letters",
    "seconds_of",
    "whole_attention",
    "whole_experts",
]

Array = NDArray[np.float64]

SHARE = 0.8
"""Assumed share of an H100's memory bandwidth: aiconfigurator's empirical factor, `hardware_alternatives.csv`."""
MODULE: tuple[Part, ...] = ("module",)
ROUTED: tuple[Part, ...] = ("arrived", "routed")
"""Parts of the layer that SGLang's attention and experts were timed with."""


@cache
def attention_module(elementwise: bool = True) -> sympy.Expr:
    """Seconds of SGLang's attention module as it was timed: no down-projections; with the traffic inside it or not."""
    s, p, B_m, N_b, tau_f, tau_a = symbols("s p B_m N_b tau_f tau_a")
    products = parts()["projections"] + parts()["core"] - _down()
    traffic = attention_bytes("latent", "sglang", MODULE) / (SHARE * B_m) if elementwise else 0
    return sympy.Max(tau_f, tau_a + N_b * (products + (s - p) * traffic))


def _down() -> sympy.Expr:
    """Seconds of a prompt's down-projections to the latents."""
    H, rq, rk, dr, s, p, T, P_8, eta_g = symbols("H rq rk dr s p T P_8 eta_g")
    return 2 * H * (rq + rk + dr) * (s - p) / (T * P_8 * eta_g)


@cache
def whole_attention() -> sympy.Expr:
    """The module, its down-projections, and the traffic around them: residual, norm, quantised input."""
    s, p, B_m, N_b = symbols("s p B_m N_b")
    traffic = attention_bytes("latent", "sglang", ("layer", "input")) / (SHARE * B_m)
    return attention_module() + N_b * (_down() + (s - p) * traffic)


@cache
def expert_module(elementwise: bool = True, every_row: bool = True) -> sympy.Expr:
    """Seconds of the routed experts of n tokens on one of E devices, as SGLang's were timed."""
    n, B_m, tau_f, tau_k, g = symbols("n B_m tau_f tau_k g")
    products = sympy.Max(read_expression(), arithmetic_expression()).subs(g, 0)
    traffic = n * expert_bytes("sglang", ROUTED, every_row) / (SHARE * B_m) if elementwise else 0
    return sympy.Max(tau_f, tau_k + products + traffic)


@cache
def whole_experts() -> sympy.Expr:
    """Routed experts with the rows that arrive, shared ones, and the traffic around them on the tokens' own devices."""
    n, B_m, H, m, g, E, P_8, eta_x = symbols("n B_m H m g E P_8 eta_x")
    traffic = expert_bytes("sglang", ("layer", "home", "returned", "shared")) / (SHARE * B_m)
    return expert_module(every_row=False) + n * (6 * H * m * g / (E * P_8 * eta_x) + traffic)


def attention_table() -> Measurements:
    """Modules of dense attention of SGLang on H100, FlashAttention 3, prompts from 128 tokens."""
    data = measured("aiconfigurator_mla_context_h100", "attention", "h100", "deepseek-v3")
    fast = column_of(data, "aiconfigurator_mla_context_h100", "kernel") == "fa3"
    return data.take(fast & (data.values["s"] >= 128))


def expert_table() -> Measurements:
    """Steps of SGLang's experts on H100, balanced, on more than two devices."""
    data = measured("aiconfigurator_moe_context_h100", "moe", "h100")
    return data.take(data.values["E"] > 2)


def fitted(
    data: Measurements, model: str, expression: sympy.Expr | None = None, detail: bool = True
) -> dict[str, float]:
    """Letters fitted to all rows of a table, by the law of `calibration`, or by an expression in place of it."""
    law, own = module_law(data, model, detail), np.arange(len(data))
    if expression is None:
        fit = robust_fit(lambda p: law.predict(p, own), data.seconds, law.parameters, data.noise, bootstrap=False)
    else:
        free = [one for one in law.parameters if one.name in {str(x.name) for x in expression.free_symbols}]
        predict = _prepared(expression, data, [one.name for one in free])
        fit = robust_fit(lambda p: predict(p.tolist()), data.seconds, free, data.noise, bootstrap=False)
    return {name: float(value) for name, value in zip(fit.names, fit.values, strict=True)}


def module_law(data: Measurements, model: str, detail: bool = True) -> Law:
    """The law of `calibration` for a table, with all terms or with the planner's."""
    return law_of(data, model, catalog.load_profile("cloudmatrix384-paper").value, detail)


def _prepared(expression: sympy.Expr, data: Measurements, letters: Sequence[str]) -> Callable[[Sequence[float]], Array]:
    """Seconds of all rows as a function of letters; others come from the rows."""
    needed = {str(x.name) for x in expression.free_symbols} - set(letters)
    return prepare(expression, letters, **{name: x for name, x in data.values.items() if name in needed})


def seconds_of(expression: sympy.Expr, data: Measurements, given: Mapping[str, float]) -> Array:
    """Seconds of an expression for every row, with these letters."""
    return _prepared(expression, data, list(given))(list(given.values()))


@cache
def own_letters() -> tuple[dict[str, float], dict[str, float]]:
    """Letters of SGLang's attention and experts, fitted to its modules with their traffic known."""
    attention = fitted(attention_table(), "attention", attention_module())
    return attention, fitted(expert_table(), "moe", expert_module())


@cache
def kernel_shares() -> tuple[dict[str, float], dict[str, float]]:
    """Shares of peak from InferSim's kernels on H800: of attention, of experts."""
    dense = measured("infersim_gemm_h800", "moe", "h800")
    filled = dense.take(np.ceil(dense.values["N_x"] / 128) * np.ceil(dense.values["N_y"] / 128) >= 132)
    core = measured("infersim_mla_prefill_h800", "attention", "h800", "deepseek-v3")
    grouped = with_drawn_rows(measured("infersim_grouped_gemm_decode_h800", "moe", "h800"))
    experts = fitted(grouped, "moe", detail=False)
    attention = {
        "eta_g": fitted(filled, "moe", detail=False)["eta_x"],
        "eta_c": fitted(core, "attention")["eta_c"],
    }
    return attention, {name: experts[name] for name in ("eta_x", "eta_m", "r_x")}


def cross_tables() -> tuple[Measurements, Measurements]:
    """Rows of many tokens: attention from 8192, experts from 1024 a device."""
    module, steps = attention_table(), expert_table()
    many = module.values["N_b"] * module.values["s"] >= 8192
    return module.take(many), steps.take(steps.values["n"] / steps.values["E"] >= 1024)


def cross_modules(content: str = "law") -> dict[str, tuple[Array, Array]]:
    """Modules of one team (measured, predicted) from kernels of another: many tokens of MLA on H100, experts on H100.

    Parameters
    ----------
    content : str
        What a module is: ``"law"``, the planner's law; ``"timed"``, the products that were timed; ``"elementwise"``,
        these and the memory traffic between them. Floors and launches are left out of all.
    """
    attention, experts = kernel_shares()
    module, steps = cross_tables()
    if content == "law":
        laws = ((module, "attention", attention), (steps, "moe", experts))
        predicted = [_by_law(data, model, values) for data, model, values in laws]
    else:
        traffic, none = content == "elementwise", {"tau_f": 0.0}
        predicted = [
            seconds_of(attention_module(traffic), module, attention | none | {"tau_a": 0.0}),
            seconds_of(expert_module(traffic), steps, experts | none | {"tau_k": 0.0}),
        ]
    pairs = zip((module.seconds, steps.seconds), predicted, strict=True)
    return dict(zip(("MLA module", "MoE module"), pairs, strict=True))


def _by_law(data: Measurements, model: str, values: Mapping[str, float]) -> Array:
    law = module_law(data, model)
    return law.predict(np.array([values.get(one.name, one.lower) for one in law.parameters]), np.arange(len(data)))
