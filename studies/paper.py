"""Does the model reproduce the ASAP paper? Every number of its text against the model; writes `docs/paper.md`.

Run as ``python -m asapmodel.studies.paper``. Rows marked *calibrated* are those that a constant of the catalogue was
fitted to; all others are predictions, and misses are shown as misses.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from asapmodel.studies.pages import markdown_table, plain
from asapmodel.studies.paper_figures import draw
from asapmodel.studies.paper_model import ROWS, Paper

__all__ = ["CALIBRATED", "SEEN", "Claim", "Verdict", "claims", "judge", "main"]

CALIBRATED = {
    "attn-batch-ratio": "core, indexer",
    "rps-asap": "core, indexer",
    "ttft-1-default": "attention_overhead",
    "ttft-1-asap": "batch_window",
    "moe-inflection": "tile_padding",
    "p2p-ratio-1k": "send_latency, p2p_handshake, p2p_link",
    "p2p-ratio-8k": "send_latency, p2p_handshake, p2p_link",
    "async-512": "send_latency",
}
"""Rows a constant was fitted to, and the constants."""

SEEN = {
    "rps-default": "max_batch_tokens of Default, expert_load_cv, grouped_gemm",
    "rps-chunked": "expert_load_cv, grouped_gemm, no copies in synchronous receives",
    "ttft-1-chunked": "no copies in synchronous receives, expert_load_cv",
    "rps-no-overlap": "combine-send at the rate of the pool",
}
"""Rows nothing was fitted to, but that were in view when an assumption was chosen among those the evidence allows."""

TOLERANCE = 0.25  # of a stated number, for the verdict; the relative error is always printed


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the table of claims."""

    id: str
    section: str
    role: str
    system: str
    quantity: str
    condition: str
    relation: str
    value: str
    unit: str
    note: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim held against the model."""

    claim: Claim
    model: str
    error: str
    standing: str  # calibrated, seen, predicted, input, identity, not modelled
    verdict: str  # holds, off, miss, -


def claims() -> list[Claim]:
    """Rows of the shipped table."""
    text = files("asapmodel.studies").joinpath("data/paper_claims.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [Claim(**row) for row in csv.DictReader(lines)]


def judge(claim: Claim, paper: Paper) -> Verdict:
    """Evaluate one claim."""
    if claim.id not in ROWS:
        return Verdict(claim, "-", "-", "not modelled", "-")
    found = ROWS[claim.id](paper)
    standing = _standing(claim)
    if claim.relation == "between":
        low, high = (float(x) for x in claim.value.split(".."))
        first, last = found if isinstance(found, tuple) else (found, found)
        shown = plain(first) if first == last else f"{plain(first)} to {plain(last)}"
        return Verdict(claim, shown, "-", standing, "holds" if low <= first and last <= high else "miss")
    assert isinstance(found, float)
    value = float(claim.value)
    if claim.relation in "<>":
        holds = found < value if claim.relation == "<" else found > value
        return Verdict(claim, plain(found), "-", standing, "holds" if holds else "miss")
    error = found / value - 1
    verdict = "holds" if abs(error) <= 0.1 else "off" if abs(error) <= TOLERANCE else "miss"
    return Verdict(claim, plain(found), f"{error:+.1%}", standing, verdict)


def _standing(claim: Claim) -> str:
    if claim.id in CALIBRATED:
        return "calibrated"
    if claim.id in SEEN:
        return "seen"
    if claim.role == "given":
        return "input"
    return "identity" if claim.id.startswith("buf-") or claim.id == "dispatch-bytes" else "predicted"


def main(folder: Path = Path("docs")) -> None:
    """Write the page and its figures into `folder`, and print the table."""
    paper = Paper()
    verdicts = [judge(claim, paper) for claim in claims()]
    for verdict in verdicts:
        print(
            f"{verdict.claim.id:22} {verdict.claim.value:>14} {verdict.model:>16} {verdict.error:>8}  "
            f"{verdict.standing:12} {verdict.verdict}"
        )
    draw(paper, folder / "figures")
    (folder / "paper.md").write_text(page(verdicts, paper), encoding="utf-8")
    print(f"wrote {folder / 'paper.md'}")


def page(verdicts: list[Verdict], paper: Paper) -> str:
    """The text of `docs/paper.md`."""
    rows = [
        [
            v.claim.id,
            v.claim.section,
            f"{v.claim.system}: {v.claim.quantity}" + (f" ({v.claim.condition})" if v.claim.condition else ""),
            f"{v.claim.relation} {v.claim.value} {v.claim.unit}",
            v.model,
            v.error,
            v.standing,
            f"**{v.verdict}**" if v.verdict == "miss" else v.verdict,
        ]
        for v in verdicts
    ]
    table = markdown_table(["row", "section", "what", "paper", "model", "error", "standing", "verdict"], rows, (4, 5))
    predicted = [v for v in verdicts if v.standing == "predicted"]
    tally = {name: sum(v.verdict == name for v in predicted) for name in ("holds", "off", "miss")}
    template = files("asapmodel.studies").joinpath("data/paper_page.md").read_text(encoding="utf-8")
    return template.format(
        table=table,
        count=len(predicted),
        **tally,
        capacities=_capacities(paper),
        variants=_variants(),
        replications=paper.replications,
    )


def _capacities(paper: Paper) -> str:
    stated = {"default": 6.8, "chunked": 10.5, "asap": 20.0, "no-super": 18.87, "no-overlap": 17.8, "no-dual": 17.5}
    rows = []
    for name, value in stated.items():
        found = paper.rps(name)
        low, high = found.interval_rps or (found.slo_throughput_rps,) * 2
        rows.append(
            [
                name,
                plain(value),
                plain(found.slo_throughput_rps),
                f"{found.slo_throughput_rps / value - 1:+.1%}",
                f"{plain(low)} to {plain(high)}",
                plain(found.stability_limit_rps),
                found.limited_by,
                _label(f"rps-{name}"),
            ]
        )
    header = ["system", "paper", "model", "error", "95 % interval", "stability limit", "limited by", "standing"]
    return markdown_table(header, rows, (1, 2, 3, 5))


def _label(row: str) -> str:
    return "calibrated" if row in CALIBRATED else "seen" if row in SEEN else "predicted"


def _variants() -> str:
    """What the answer depends on most: assumptions the paper does not settle, one changed at a time."""
    variants: list[tuple[str, dict[str, object]]] = [
        ("as shipped", {}),
        ("Default: whole prompts up to 2048 tokens a group", {"max_batch_tokens": 2048}),
        ("Default: up to 32768 tokens a group (section 4.2)", {"max_batch_tokens": 32768}),
        ("narrower lengths: mu 7.9271, sigma 1.1", {"lengths": {"family": "lognormal", "mu": 7.9271, "sigma": 1.1}}),
        ("perfect expert balance", {"cluster.profile.expert_load_cv": 0.0}),
        (
            "attention core and indexer at 65 % of peak (measured for MLA)",
            {"cluster.profile.core": 0.65, "cluster.profile.indexer": 0.65},
        ),
        ("asap: rolling pairs", {"pairing": "rolling"}),
    ]
    rows = []
    for name, changes in variants:
        paper = Paper(changes=changes)
        row = [name]
        for system in ("default", "chunked", "asap"):
            touched = not changes or not _only_other(changes, system)
            row.append(plain(paper.rps(system).slo_throughput_rps) if touched else "")
        rows.append(row)
    return markdown_table(["variant", "default", "chunked", "asap"], rows, (1, 2, 3))


def _only_other(changes: dict[str, object], system: str) -> bool:
    """Whether a change cannot touch a system."""
    only = {"max_batch_tokens": "default", "pairing": "asap"}
    return any(key in only and only[key] != system for key in changes)


if __name__ == "__main__":
    main()
