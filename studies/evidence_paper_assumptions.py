"""Assumptions under which the paper's constants are fitted: what the paper leaves open, one decision at a time.

Which one is called *chosen* is decided by the objective of the fit alone, which sees no target. What is varied around
it beyond that, and which of these variants come out best, is explanation and no prediction.
"""

from dataclasses import replace
from typing import Any

from asapmodel.studies.evidence_paper_systems import Assumption

__all__ = ["ASSUMPTIONS", "CHOSEN", "SHIPPED", "by_name"]

_BOTH = ("asap", "default")
SHIPPED = Assumption("as shipped", "locked pairs, Default up to 8192 tokens a group, only ASAP waits for more prompts")
CHOSEN = Assumption(
    "contention, Default waits",
    "a lone group sends at the rate of one-sided writes, the busiest receiver sets the pace under load, as it does for "
    "the experts; Default waits as long as ASAP (section 5.1: it *aggregates* requests)",
    waits=_BOTH,
    collectives="contention",
)
_ROLLING: dict[str, Any] = {"pairing": "rolling"}


def _variant(
    name: str, why: str, changes: dict[str, dict[str, Any]], packed: bool = False, refitted: bool = False
) -> Assumption:
    return replace(CHOSEN, name=name, why=why, changes=changes, packed=packed, refitted=refitted)


def _budget(tokens: int) -> dict[str, dict[str, Any]]:
    return {"default": {"max_batch_tokens": tokens}}


ASSUMPTIONS = (
    SHIPPED,
    replace(SHIPPED, name="one law of lengths", why="log-normal to 100k: the mean below the cut follows", one_law=True),
    replace(SHIPPED, name="Default waits", why="section 5.1: it aggregates requests", waits=_BOTH),
    replace(SHIPPED, name="hot receivers", why="busiest expert device receives most", collectives="hot receivers"),
    replace(SHIPPED, name="contention", why="as chosen, but Default does not wait", collectives="contention"),
    CHOSEN,
    _variant("+ Default 2048", "Default's batch ends at the threshold of section 3.3.1", _budget(2048)),
    _variant("+ Default 4096", "smaller batches of Default", _budget(4096)),
    _variant("+ Default 32768", "S of Table 1, the limit of its memory", _budget(32768)),
    _variant("+ packed", "3.3.2: pairs are sought", {"asap": _ROLLING}, packed=True),
    _variant("+ packed, Default 4096", "both", {"asap": _ROLLING} | _budget(4096), packed=True, refitted=True),
    _variant(
        "+ ASAP queues per group",
        "prompts bound to a group at arrival, in turn",
        {"asap": {"routing": "round_robin", "pairing": "rolling"}},
    ),
    _variant(
        "+ synchronous queues per group",
        "the same for the synchronous systems",
        {name: {"routing": "round_robin"} for name in ("default", "chunked")},
    ),
    _variant(
        "+ one prompt a group",
        "an iteration takes one prompt, or one chunk, a group",
        {
            "default": {"chunk_tokens": 32768, "max_seqs": 1},
            "chunked": {"max_seqs": 1},
        },
    ),
    _variant(
        "+ balance by work",
        "groups balanced by attention work, which the paper calls impossible",
        {name: {"balance": "work"} for name in ("default", "chunked")},
    ),
    _variant("+ streams on attention", "section 3.5 read literally", {"asap": {"overlap_attention": True}}),
    _variant(
        "+ objective on p90",
        "5 s for the 90th percentile in place of the mean",
        {"all": {"statistic": "p90"}},
        refitted=True,
    ),
)


def by_name(name: str) -> Assumption:
    """The assumption of a name."""
    return {one.name: one for one in ASSUMPTIONS}[name]
