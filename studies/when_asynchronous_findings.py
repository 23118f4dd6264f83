"""Everything that the page on when asynchronous execution is worth it reports, computed once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from asapmodel.errors import InputError
from asapmodel.scenario import Scenario
from asapmodel.studies.baselines_systems import overlap_bound
from asapmodel.studies.dp_imbalance_runs import law
from asapmodel.studies.paired_runs import SEEDS, Ratio, ratio_of, slo_rates
from asapmodel.studies.when_asynchronous_laws import LawGain, law_gain
from asapmodel.studies.when_asynchronous_maps import (
    SPREAD,
    Cell,
    budgets,
    lengths_and_load,
    lengths_and_spread,
    networks,
    of_lengths,
    sizes,
    splits,
)
from asapmodel.studies.when_asynchronous_published import Means, modelled_ttft
from asapmodel.studies.when_asynchronous_search import CHUNKS, DEVICES, WINDOW, Pair, best, measured, synchronous
from asapmodel.studies.when_asynchronous_why import Ladder, ladder

__all__ = ["PAPERS", "Findings", "computed", "confirmed", "overlapped", "windowed"]

PAPERS = "the paper's"
_CONSTANT, _MOONCAKE, _AZURE = 0.0, "mooncake_conversation", "azure2023_conv"

Spreads = Mapping[tuple[float, float | str], Pair]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the maps and tables are made of; keys as in `when_asynchronous_maps`."""

    lengths: Mapping[float | str, Pair]
    loads: list[Cell]
    spreads: Spreads
    laws: Mapping[tuple[float, float | str], LawGain]
    budgets: list[Cell]
    sizes: Mapping[int, Pair]
    splits: list[Cell]
    networks: Mapping[tuple[float, float], Pair]
    ladders: Mapping[str, Ladder]
    overlap_rps: Mapping[float, float]
    deployment: Means
    runs: Mapping[str, tuple[float, Ratio]]
    windowed: Mapping[str, float]
    copied_rps: float


def computed() -> Findings:
    """Everything, two to three minutes."""
    lengths = of_lengths()
    spreads = lengths_and_spread(lengths)
    by_size = sizes(lengths[PAPERS])
    slow = networks()
    some = {name: lengths[name] for name in (PAPERS, _AZURE)}
    cases = {
        "the paper's lengths": lengths[PAPERS],
        "constant lengths": lengths[_CONSTANT],
        "Mooncake's lengths": lengths[_MOONCAKE],
        "the paper's, experts balanced": spreads[0.0, PAPERS],
        "constant, experts balanced": spreads[0.0, _CONSTANT],
        "the paper's, link of 25 GB/s": slow[52.0, 25.0],
    }
    decisive = {
        **{name: pair for name, pair in cases.items() if "Mooncake" not in name},
        "the paper's, 16 devices": by_size[16],
    }
    return Findings(
        lengths=lengths,
        loads=lengths_and_load(lengths),
        spreads=spreads,
        laws={key: law_gain({SPREAD: key[0], **law(key[1])}) for key in spreads},
        budgets=budgets(),
        sizes=by_size,
        splits=splits(by_size),
        networks=slow,
        ladders={name: ladder(pair) for name, pair in cases.items()},
        overlap_rps={spread: overlapped(spread) for spread in (0.0, 2.3)},
        deployment=modelled_ttft(),
        runs={name: (pair.gain, confirmed(pair)) for name, pair in decisive.items()},
        windowed={name: windowed(pair) for name, pair in some.items()},
        copied_rps=best(measured(one.replace(replication=2) for one in synchronous({}, DEVICES))).slo_rps,
    )


def confirmed(pair: Pair) -> Ratio:
    """Gain of the best systems by runs of the graph engine; several instances each with their share of the traffic."""
    asap, sync = (one.instances * slo_rates(one.scenario, SEEDS) for one in (pair.best_asap, pair.best_sync))
    return ratio_of(asap, sync)


def windowed(pair: Pair) -> float:
    """TTFT ratio at a tenth of the load if the asynchronous system waits for company as long as the shipped one."""
    waiting = measured([one.scenario.replace(batch_window=WINDOW) for one in pair.asap if one.instances == 1])
    return float(Pair(pair.sync, waiting).ttft_ratios((0.1,))[0])


def overlapped(spread: float) -> float:
    """Most that a synchronous system with all transfers hidden behind computing could serve, requests/s, 32 devices."""
    found = [best(measured(_bounds(spread, DEVICES // n), n)).slo_rps for n in (1, 2)]
    return max(found)


def _bounds(spread: float, devices: int) -> Iterator[Scenario]:
    base = Scenario.load("paper-chunked").replace(**{SPREAD: spread})
    for T in (2, 4, 8):
        for chunk in CHUNKS:
            try:
                yield overlap_bound(base.replace(D=devices // T, T=T, E=devices, chunk_tokens=chunk))
            except InputError:  # does not fit
                continue
