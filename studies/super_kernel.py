"""What does exposed host dispatch cost, and so what is the super kernel worth? Writes `docs/studies/super_kernel.md`.

Run as ``python -m asapmodel.studies.super_kernel [--output DIR]``, about a minute.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.closed_forms.catalogue import BY_NAME
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import backlog
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.paired_runs import Ratio, fill, output_folder, ratio_of, slo_rates, write_page
from asapmodel.studies.super_kernel_figure import loss_figure
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import evaluate, prepare

__all__ = ["HOST_US", "LOSSES", "VARIANTS", "Curve", "closed_form_loss", "main", "measure", "page", "reached"]

Floats = NDArray[np.float64]

HOST_US = (0.0, 50.0, 100.0, 150.0, 220.0, 300.0, 400.0, 550.0, 750.0, 1000.0)
"""Host dispatch of a layer, microseconds; the paper measured 220."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "1,024 tokens": ("batches", {"min_batch_tokens": 1024}),
    "2,048 tokens (paper)": ("batches", {}),
    "4,096 tokens": ("batches", {"min_batch_tokens": 4096}),
    "8,192 tokens": ("batches", {"min_batch_tokens": 8192}),
    "E = 16 (paper)": ("devices", {}),
    "E = 24": ("devices", {"E": 24}),
    "E = 32": ("devices", {"E": 32}),
}
"""Changes of the paper's scenario by what they vary: fewest tokens of a batch, or MoE devices."""

LOSSES = (0.01, 0.05, 0.1)

_STATED_US = 220.0
_FINE = np.linspace(0.0, 2e-3, 4001)  # where the closed form is looked up, s
_LOW_RATE = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One variant over host dispatches: SLO throughput in requests/s, TTFT in s at 1 request/s.

    `reach` is the stability limit over the upper bound of equal batches. `letters` are those of the closed forms, of
    the mean over a backlog's batches without host dispatch; `law` is what they say is lost.
    """

    name: str
    kind: str
    slo_rps: Floats
    ttft_s: Floats
    reach: Floats
    law: Floats
    letters: dict[str, float]

    @property
    def loss(self) -> Floats:
        """Share of the SLO throughput lost."""
        lost: Floats = 1 - self.slo_rps / self.slo_rps[0]
        return lost

    @property
    def group_s(self) -> float:
        """Time of the group's stream for a layer of a mean batch over D, as the experts' to compare with."""
        return (self.letters["A"] + self.letters["t1"] + self.letters["t5"]) / self.letters["D"]


def measure(scenario: Scenario, name: str, host_us: Sequence[float] = HOST_US) -> Curve:
    """Solve a variant without super kernel at each host dispatch; the first must be 0."""
    kind, changes = VARIANTS[name]
    base = scenario.replace(super_kernel=False, **changes)
    letters = _letters(base)
    rows = []
    for host_s in 1e-6 * np.asarray(host_us):
        ready = prepare(base.replace(**{"costs.host_dispatch": float(host_s)}))
        found = capacity(ready.scenario, prepared=ready)
        low = evaluate(ready.scenario, _LOW_RATE, prepared=ready).ttft.mean_s
        most = BY_NAME["prompt_rate_pool"].numeric(**letters | {"M": letters["M"] + host_s})
        rows.append((found.slo_throughput_rps, low, found.stability_limit_rps / float(most)))
    slo, ttft, reach = np.array(rows).T
    return Curve(name, kind, slo, ttft, reach, closed_form_loss(letters, 1e-6 * np.asarray(host_us)), letters)


def _letters(scenario: Scenario) -> dict[str, float]:
    """Letters of the closed forms: phases in the mean over the batches of a backlog, without host dispatch."""
    ready = prepare(scenario)
    batches = backlog(ready)
    phases = ready.costing.costs.phases(batches.n, batches.w)
    values = {
        letter: float(np.mean(one)) for letter, one in zip(("A", "t1", "t2", "M", "t4", "t5"), phases, strict=True)
    }
    values |= {"n": float(batches.n.mean()), "k": batches.prompts / batches.n.size, "F": 0.0}
    costs = ready.costing.costs
    return values | {"D": float(scenario.layout.D), "N_s": float(scenario.policy.slots), "L": float(costs.moe_layers)}


def closed_form_loss(letters: dict[str, float], host_s: Floats) -> Floats:
    """`dispatch_loss` of the closed forms at each host dispatch."""
    return np.asarray(BY_NAME["dispatch_loss"].numeric(**letters, h=host_s), dtype=np.float64)


def reached(host: Floats, loss: Floats, share: float) -> float:
    """Host dispatch from which on the loss is at least `share`, by linear interpolation; infinite if it never is.

    Examples
    --------
    >>> reached(np.array([0.0, 100.0, 200.0]), np.array([0.0, 0.0, 0.04]), 0.01)
    125.0
    """
    below = np.flatnonzero(loss < share)
    k = int(below[-1])
    if k + 1 == loss.size:
        return float("inf")
    return float(np.interp(share, loss[k : k + 2], host[k : k + 2]))


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    scenario = Scenario.load("paper-asap")
    curves = [measure(scenario, name) for name in VARIANTS]
    runs = [slo_rates(scenario.replace(super_kernel=False, **{"costs.host_dispatch": 1e-6 * x})) for x in _CONFIRMED]
    save_figure(loss_figure(curves, HOST_US), folder / "figures" / "study-super_kernel.svg")
    confirmed = {x: ratio_of(one, runs[0]) for x, one in zip(_CONFIRMED[1:], runs[1:], strict=True)}
    write_page("super_kernel", page(curves, confirmed), folder)


_CONFIRMED = (0.0, 100.0, _STATED_US, 400.0, 1000.0)


def page(curves: Sequence[Curve], confirmed: dict[float, Ratio]) -> str:
    """The text of the page."""
    by_name = {one.name: one for one in curves}
    paper, small, large = (by_name[name] for name in ("2,048 tokens (paper)", "1,024 tokens", "8,192 tokens"))
    wide = by_name["E = 32"]
    at = HOST_US.index(_STATED_US)
    added = paper.ttft_s[at] - paper.ttft_s[0]
    return fill(
        "super_kernel",
        table=_table(curves),
        thresholds=_thresholds(curves),
        runs=_runs(paper, confirmed),
        loss=f"{paper.loss[at]:.1%}",
        gain=f"{1 / (1 - paper.loss[at]) - 1:.1%}",
        gain_runs=_gain(confirmed[_STATED_US]),
        early=f"{paper.loss[HOST_US.index(100.0)]:.1%}",
        early_law=f"{paper.law[HOST_US.index(100.0)]:.1%}",
        one=plain(reached(np.array(HOST_US), paper.loss, 0.01)),
        ten=plain(reached(np.array(HOST_US), paper.loss, 0.1)),
        five=plain(reached(np.array(HOST_US), paper.loss, 0.05)),
        small=f"{small.loss[at]:.1%}",
        large=f"{large.loss[at]:.1%}",
        raised=f"{large.slo_rps[at] / paper.slo_rps[0] - 1:+.1%}",
        wide=f"{wide.loss[at]:.1%}",
        wide_end=f"{wide.loss[-1]:.0%}",
        ttft=f"{1e3 * added:.1f}",
        lone=f"{1e-3 * paper.letters['L'] * _STATED_US:.1f}",
        pool=f"{1e3 * paper.letters['M']:.2f}",
        group=f"{1e3 * paper.group_s:.2f}",
        free=plain(1e6 * reached(_FINE, closed_form_loss(paper.letters, _FINE), 1e-9), 2),
        reach=f"{paper.reach[0]:.0%}",
        reach_end=f"{paper.reach[-1]:.0%}",
        end=f"{paper.loss[-1]:.0%}",
        end_law=f"{paper.law[-1]:.0%}",
    )


def _gain(ratio: Ratio) -> str:
    """The super kernel's gain from the ratio without over with it."""
    return str(Ratio(1 / ratio.value, 1 / ratio.high, 1 / ratio.low))


def _runs(paper: Curve, confirmed: dict[float, Ratio]) -> str:
    lines = [
        [plain(x), f"{-paper.loss[HOST_US.index(x)]:+.1%}", f"{0 - paper.law[HOST_US.index(x)]:+.1%}", str(ratio)]
        for x, ratio in confirmed.items()
    ]
    header = ["host dispatch, us", "queueing engine", "closed form", "graph engine (95 % interval)"]
    return markdown_table(header, lines, (0, 1, 2, 3))


def _table(curves: Sequence[Curve]) -> str:
    shown = [HOST_US.index(x) for x in (0.0, 100.0, _STATED_US, 400.0, 1000.0)]
    lines = [
        [
            one.name,
            f"{one.letters['n']:,.0f}",
            f"{1e3 * one.letters['M']:.2f}",
            f"{1e3 * one.group_s:.2f}",
            *(f"{one.slo_rps[k]:.2f}" for k in shown),
            f"{1e3 * (one.ttft_s[HOST_US.index(_STATED_US)] - one.ttft_s[0]):.1f}",
        ]
        for one in curves
    ]
    header = ["", "mean batch, tokens", "experts, ms", "group / D, ms", *(f"{HOST_US[k]:g} us" for k in shown)]
    return markdown_table([*header, "TTFT at 1/s, 220 us: ms more"], lines, range(1, 10))


def _thresholds(curves: Sequence[Curve]) -> str:
    host = np.array(HOST_US)
    lines = []
    for one in curves:
        found = [_shown(reached(host, one.loss, share), host[-1]) for share in LOSSES]
        law = [_shown(1e6 * reached(_FINE, closed_form_loss(one.letters, _FINE), share), host[-1]) for share in LOSSES]
        lines.append([one.name, *(f"{a} / {b}" for a, b in zip(found, law, strict=True))])
    return markdown_table(["", *(f"{share:.0%} lost from, us" for share in LOSSES)], lines, (1, 2, 3))


def _shown(value: float, most: float) -> str:
    return f"above {most:g}" if value > most else f"{value:.0f}"


if __name__ == "__main__":
    main()
