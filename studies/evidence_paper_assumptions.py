"""Assumptions under which the paper's constants are fitted: what the paper leaves open, one decision at a time.

Four decisions enter every end-to-end number, and the text allows each in several ways: what paces the collectives,
whether Default waits for more prompts, the batch budget of Default, when pairs form. Each combination is a *cell*
with a fit of its own, see `asapmodel.studies.evidence_paper_cells`; the objective of the fits, which sees no target,
weighs them. One cell is *chosen* for the shipped scenarios and figures: near the averages, and as shipped in what the
fitted rows cannot tell. What is varied around it beyond that is explanation and no prediction.
"""

from dataclasses import replace
from itertools import product
from typing import Any, Literal, cast

from asapmodel.studies.evidence_paper_systems import Assumption

__all__ = ["ASSUMPTIONS", "AXES", "BUDGET", "CELLS", "CHOSEN", "SHIPPED", "by_name", "cell"]

Collectives = Literal["senders", "hot receivers", "contention"]

BUDGET = "Default's batch budget, tokens"

AXES: dict[str, tuple[Any, ...]] = {
    "collectives": ("senders", "hot receivers", "contention"),
    "Default waits": (False, True),
    BUDGET: (2048, 4096, 8192, 16384, 32768),
    "pairs": ("locked", "rolling", "packed"),
}
"""What the paper leaves open, and the ways its text allows.

Budgets: from the threshold of section 3.3.1 to S of Table 1. Pairs: *locked*, a group takes two batches and none before
both are done; *rolling*, a place is filled when it is free; *packed*, rolling, and a batch goes to the group that has
one (`asapmodel.studies.evidence_paper_packing`).
"""


def cell(collectives: Collectives, default_waits: bool, budget: int, pairs: str) -> Assumption:
    """The assumption with one way of each decision, in the order of `AXES`.

    Examples
    --------
    >>> cell("contention", True, 4096, "locked").name
    'contention, Default waits, 4096, locked'
    """
    name = f"{collectives}, {'Default waits' if default_waits else 'no wait'}, {budget}, {pairs}"
    changes: dict[str, dict[str, Any]] = {"default": {"max_batch_tokens": budget}}
    if pairs != "locked":
        changes["asap"] = {"pairing": "rolling"}
    waits = ("asap", "default") if default_waits else ("asap",)
    return Assumption(name, "", changes, waits, collectives, pairs == "packed", fitted_as=name)


CELLS = {key: cell(cast(Collectives, key[0]), *key[1:]) for key in product(*AXES.values())}
"""Every cell by its ways."""

CHOSEN = replace(
    cell("contention", True, 8192, "locked"),
    name="contention, Default waits",
    why="a lone group sends at the rate of one-sided writes, the busiest receiver sets the pace under load, as it does "
    "for the experts; Default waits as long as ASAP (section 5.1: it *aggregates* requests)",
)


def _one(name: str, why: str, *ways: Any) -> Assumption:
    return replace(cell(*ways), name=name, why=why)


def _variant(name: str, why: str, changes: dict[str, dict[str, Any]], refitted: bool = False) -> Assumption:
    every = {
        system: dict(CHOSEN.changes.get(system, {})) | changes.get(system, {}) for system in (*CHOSEN.changes, *changes)
    }
    return replace(CHOSEN, name=name, why=why, changes=every, fitted_as=name if refitted else "")


def _near(name: str, why: str, budget: int = 8192, pairs: str = "locked") -> Assumption:
    return _one(name, why, "contention", True, budget, pairs)


_SYNC = ("default", "chunked")
_PADDED = {"routing": "round_robin", "pad_groups": True}

SHIPPED = _one(
    "as shipped",
    "locked pairs, Default up to 8192 tokens a group, only ASAP waits for more prompts",
    *("senders", False, 8192, "locked"),
)

ASSUMPTIONS = (
    SHIPPED,
    replace(
        SHIPPED,
        name="one law of lengths",
        why="log-normal to 100k: the mean below the cut follows",
        lengths="one law",
        fitted_as="one law of lengths",
    ),
    _one("Default waits", "section 5.1: it aggregates requests", "senders", True, 8192, "locked"),
    _one("hot receivers", "busiest expert device receives most", "hot receivers", False, 8192, "locked"),
    _one("contention", "as chosen, but Default does not wait, up to 8192 tokens", "contention", False, 8192, "locked"),
    CHOSEN,
    _near("+ Default 2048", "Default's batch ends at the threshold of section 3.3.1", 2048),
    _near("+ Default 4096", "smaller batches of Default", 4096),
    _near("+ Default 16384", "larger ones", 16384),
    _near("+ Default 32768", "S of Table 1, the limit of its memory", 32768),
    _near("+ rolling", "a group takes a batch whenever one of its two places is free", pairs="rolling"),
    _near("+ packed", "3.3.2: pairs are sought", pairs="packed"),
    _variant(
        "+ ASAP queues per group",
        "prompts bound to a group at arrival, in turn",
        {"asap": {"routing": "round_robin", "pairing": "rolling"}},
    ),
    _variant(
        "+ synchronous queues per group",
        "the same for the synchronous systems",
        {name: {"routing": "round_robin"} for name in _SYNC},
    ),
    _variant(
        "+ one prompt a group",
        "an iteration takes one prompt, or one chunk, a group",
        {"default": {"chunk_tokens": 32768, "max_seqs": 1}, "chunked": {"max_seqs": 1}},
    ),
    _variant(
        "+ balance by work",
        "groups balanced by attention work, which the paper calls impossible",
        {name: {"balance": "work"} for name in _SYNC},
    ),
    _variant(
        "+ padding",
        "groups in lockstep padded to the largest, as vllm-ascend does ([deployments](evidence-deployments.md)), with "
        "queues per group",
        dict.fromkeys(_SYNC, _PADDED),
        refitted=True,
    ),
    _variant(
        "+ measured overheads",
        "20 ms an iteration and 18 ms outside, as the [measured deployment](evidence-deployments.md) has them",
        {"all": {"costs.step_overhead": 0.02, "costs.request_latency": 0.0184}},
        refitted=True,
    ),
    _variant("+ streams on attention", "section 3.5 read literally", {"asap": {"overlap_attention": True}}),
    replace(
        CHOSEN, name="+ Weibull lengths", why="shape 0.6, scaled", lengths="Weibull", fitted_as="+ Weibull lengths"
    ),
    replace(
        CHOSEN,
        name="+ lengths of traces",
        why="the conversation hours of Mooncake and Azure put together, which have the stated mean and range, scaled",
        lengths="traces",
        fitted_as="+ lengths of traces",
    ),
    _variant(
        "+ objective on p90",
        "5 s for the 90th percentile in place of the mean",
        {"all": {"statistic": "p90"}},
        refitted=True,
    ),
)


def by_name(name: str) -> Assumption:
    """The assumption of a name."""
    return {one.name: one for one in (*CELLS.values(), *ASSUMPTIONS)}[name]
