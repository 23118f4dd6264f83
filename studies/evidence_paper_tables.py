"""Tables of the page about the paper: constants, what identifies them, assumptions, weights, rows, bounds."""

import numpy as np

from asapmodel.studies.evidence_paper_assumptions import ASSUMPTIONS, AXES, BUDGET, CELLS, CHOSEN, SHIPPED
from asapmodel.studies.evidence_paper_bounds import gated_bound, most_of_attention
from asapmodel.studies.evidence_paper_cells import average, interval, marginals, predicted, weights
from asapmodel.studies.evidence_paper_fit import fit_of, jacobian
from asapmodel.studies.evidence_paper_rows import FITTED, HINGES, P2P, TARGETS, Value, shortfall
from asapmodel.studies.evidence_paper_systems import CONSTANTS
from asapmodel.studies.evidence_paper_values import (
    error_of,
    limit_of,
    quick_value,
    shown,
    stated,
    typical_error,
    value_of,
)
from asapmodel.studies.pages import markdown_table, plain
from asapmodel.studies.paper import Claim
from asapmodel.studies.paper_model import ROWS

__all__ = [
    "assumptions_table",
    "budget_table",
    "constants_table",
    "gated_table",
    "identifiability_table",
    "peak_table",
    "rows_table",
    "weights_table",
]

_MEASURED = {"core": 0.654, "indexer": 0.654, "gemm": 0.8}  # CloudMatrix384 paper: MLA, INT8 products
_SHORT = {
    "ttft-1-chunked": "TTFT 1, chunked",
    "ttft-4-asap-default": "4: ASAP / Default",
    "ttft-4-asap-chunked": "4: ASAP / chunked",
    "ttft-8-asap-chunked": "8: ASAP / chunked",
    "rps-default": "SLO Default",
    "rps-chunked": "SLO chunked",
    "rps-no-dual": "no dual",
    "rps-no-overlap": "no overlap",
    "decomp-sync-short": "sync share",
    "decomp-queue-short": "queue share",
    "decomp-asap-short": "reduction",
}
"""Columns of the table of assumptions."""


def constants_table() -> str:
    """The fitted constants."""
    chosen, shipped = (fit_of(one).values for one in (CHOSEN, SHIPPED))
    rows = [
        [
            f"`{one.name}`",
            one.why,
            f"{plain(one.centre)} ({one.spread:.2f})",
            plain(shipped[one.name]),
            plain(chosen[one.name]),
        ]
        for one in CONSTANTS
    ]
    header = ["constant", "what", "known before (spread of its logarithm)", "fit, as shipped", "fit, chosen"]
    return markdown_table(header, rows, (3, 4))


def identifiability_table() -> str:
    """Directions of the logarithms of the constants, by what the rows alone say of them."""
    spread = np.array([one.spread for one in CONSTANTS])
    slopes = jacobian(fit_of(CHOSEN).values, CHOSEN)
    _, singular, directions = np.linalg.svd(slopes * spread, full_matrices=False)
    rows = []
    for value, direction in zip(singular, directions, strict=True):
        scaled = direction / direction[np.argmax(np.abs(direction))]
        parts = [f"{x:+.1f} {one.name}" for x, one in zip(scaled, CONSTANTS, strict=True) if abs(x) >= 0.2]
        rows.append([f"{value:.2g}", ", ".join(parts), f"{1 / np.sqrt(1 + value**2):.0%}"])
    header = ["singular value", "direction, in spreads of what is known", "of that spread left"]
    return markdown_table(header, rows, (0, 2))


def weights_table() -> str:
    """How likely the rows that are fitted make every way of every open decision."""
    rows = []
    for axis, ways in marginals().items():
        names = {"False": "no", "True": "yes"}
        rows.append([axis, ", ".join(f"{names.get(way, way)}: {x:.0%}" for way, x in ways.items())])
    return markdown_table(["open", "weight given the fitted rows; equal beforehand"], rows)


def budget_table() -> str:
    """Default's throughput under every batch budget, averaged over the other decisions."""
    rows = []
    for budget in AXES[BUDGET]:
        within = {one.fitted_as: weights()[one.fitted_as] for key, one in CELLS.items() if budget in key}
        share = np.array(list(within.values())) / sum(within.values())
        logs = np.log([predicted()[name]["rps-default"] for name in within])
        middle = float(share @ logs)
        spread = float(np.sqrt(share @ (logs - middle) ** 2))
        rows.append([f"{budget}", plain(float(np.exp(middle))), f"{spread:.0%}"])
    return markdown_table(
        ["batch budget, tokens", "SLO throughput, requests/s", "between combinations"], rows, (0, 1, 2)
    )


def rows_table() -> str:
    """Every row: as shipped, chosen, averaged over what is open."""
    rows = []
    for name, claim in stated().items():
        if name not in ROWS or name.startswith(("buf-", "trace-")) or name in ("slo", "run-length", "host-dispatch"):
            continue
        cells = [shown(claim, value_of(name, one.name)) for one in (SHIPPED, CHOSEN)]
        value, over_cells = value_of(name, CHOSEN.name), ["", ""]
        if name in TARGETS:
            value = average(name)
            over_cells = [shown(claim, value), " to ".join(plain(x) for x in interval(name))]
        line = [name, f"{claim.relation} {claim.value} {claim.unit}", *cells, *over_cells, _standing(name)]
        rows.append([*line, _verdict(claim, value)])
    header = ["row", "paper", "as shipped, refitted", "chosen", "averaged", "5 to 95 %", "standing", "verdict"]
    return markdown_table(header, rows, (1, 2, 3, 4, 5))


def _standing(row: str) -> str:
    if row in (*FITTED, *P2P):
        return "fitted"
    if row in HINGES:
        return "claim in the fit"
    return "of other systems" if row == "comm-share" else "predicted"


def _verdict(claim: Claim, value: Value) -> str:
    if isinstance(value, tuple) or claim.relation not in ("=", "~", "grows as"):
        return "holds" if shortfall(claim, value) == 0 else "**violated**"
    limit = limit_of(claim.id)
    return f"within {limit:.0%}" if abs(error_of(claim.id, value)) <= limit else "**missed**"


def assumptions_table() -> str:
    """Errors of the targets under every assumption."""
    rows = []
    for one in ASSUMPTIONS:
        percents = [f"{100 * error_of(row, quick_value(row, one.name)):+.0f}" for row in _SHORT]
        name = f"**{one.name}**" if one is CHOSEN else one.name
        objective = f"{fit_of(one).objective:.2f}" if one.fitted_as else ""
        rows.append([name, objective, *percents, f"{100 * typical_error(one.name):.0f}"])
    header = ["assumption", "objective", *_SHORT.values(), "median"]
    return markdown_table(header, rows, range(1, len(header)))


def gated_table() -> str:
    """Lower bounds for Default at 4 requests/s."""
    values = fit_of(CHOSEN).values
    rows = []
    for sigma in (0.5, 0.8, 1.1, 1.4):
        for window in (0.001, 0.1, 0.2):
            one = gated_bound(values, sigma, window)
            rows.append([f"{sigma}", f"{window:.1f}", f"{one.ttft:.2f}", f"{one.queue_share:.2f}"])
    return markdown_table(
        ["sigma", "window, s", "TTFT at 4 requests/s, s", "queueing share, short"], rows, (0, 1, 2, 3)
    )


def peak_table() -> str:
    """Upper bounds for the attention groups of ASAP."""
    values = fit_of(CHOSEN).values
    rows = []
    for sigma in (0.8, 1.1, 1.445, 1.8):
        mean, most = most_of_attention(values, sigma)
        _, measured = most_of_attention(values, sigma, shares=_MEASURED)
        rows.append([f"{sigma}", f"{mean:.0f}", f"{most:.1f}", f"{measured:.1f}"])
    header = ["sigma", "mean below the cut, tokens", "most requests/s, all at peak", "at measured shares"]
    return markdown_table(header, rows, (0, 1, 2, 3))
