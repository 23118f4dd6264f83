"""Which architectures profit from asynchrony? Writes `docs/studies/models.md`.

Run as ``python -m asapmodel.studies.models [--output DIR]``, about a minute.
"""

from collections.abc import Mapping, Sequence

from asapmodel import catalog
from asapmodel.studies.models_cases import Model, cases, measure
from asapmodel.studies.models_figure import models_figure
from asapmodel.studies.pages import markdown_table, save_figure
from asapmodel.studies.paired_runs import Ratio, fill, output_folder, ratio_of, slo_rates, write_page

__all__ = ["confirm", "main", "page"]

_SPARSE, _DENSE = "deepseek-v3.2", "deepseek-v3"
_FEW, _MANY = "32 experts, 8 times as wide, 1 a token", "512 experts, half as wide, 16 a token"
_ONE, _SIXTEEN = "1 expert a token", "16 experts a token"
_EVEN, _HALF = "equally busy experts", "half the layers"
_SEEDS = range(6, 10)
_CONFIRMED = (_SPARSE, _DENSE, _ONE, _FEW)


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    models = [measure(name, changes) for name, changes in cases().items()]
    save_figure(models_figure(models), folder / "figures" / "study-models.svg")
    write_page("models", page(models, confirm(models)), folder)


def confirm(models: Sequence[Model]) -> dict[str, Ratio]:
    """Gains of the tuned systems by runs on the same requests."""
    found = {one.name: one for one in models}
    return {
        name: ratio_of(slo_rates(found[name].tuned, _SEEDS), slo_rates(found[name].chunked, _SEEDS))
        for name in _CONFIRMED
    }


def page(models: Sequence[Model], runs: Mapping[str, Ratio]) -> str:
    """The text of the page."""
    found = {one.name: one for one in models}
    known = [found[name] for name in catalog.names("models") if name in found]
    worst, best = (pick(models, key=lambda one: one.tuned_gain) for pick in (min, max))
    losers = [one.name for one in models if one.gain < 0]
    return fill(
        "models",
        spread=f"{found[_SPARSE].asap.profile.value.expert_load_cv:g}",
        table=_table(models),
        runs=_run_table(found, runs),
        least_catalogue=f"{min(one.gain for one in known):+.0%}",
        most_catalogue=f"{max(one.gain for one in known):+.0%}",
        least_tuned=f"{min(one.tuned_gain for one in known):+.0%}",
        most_tuned=f"{max(one.tuned_gain for one in known):+.0%}",
        dense_gain=f"{found[_DENSE].gain:+.0%}",
        dense_tuned=f"{found[_DENSE].tuned_gain:+.0%}",
        sparse_gain=f"{found[_SPARSE].gain:+.0%}",
        sparse_tuned=f"{found[_SPARSE].tuned_gain:+.0%}",
        few_k=f"{found[_ONE].gain:+.0%}",
        few_k_tuned=f"{found[_ONE].tuned_gain:+.0%}",
        many_k=f"{found[_SIXTEEN].gain:+.0%}",
        gain_few=f"{found[_FEW].gain:+.0%}",
        gain_many=f"{found[_MANY].gain:+.0%}",
        busy_few=f"{found[_FEW].busiest:.1f}",
        busy_many=f"{found[_MANY].busiest:.1f}",
        even_gain=f"{found[_EVEN].gain:+.0%}",
        even_tuned=f"{found[_EVEN].tuned_gain:+.0%}",
        half_gain=f"{found[_HALF].gain:+.0%}",
        half_chunk=str(found[_HALF].chunked.policy.chunk_tokens),
        sparse_chunk=str(found[_SPARSE].chunked.policy.chunk_tokens),
        worst=worst.name,
        worst_gain=f"{worst.tuned_gain:+.0%}",
        best=best.name,
        best_gain=f"{best.tuned_gain:+.0%}",
        losers=", ".join(losers) or "nowhere",
    )


def _table(models: Sequence[Model]) -> str:
    lines = []
    for one in models:
        layout, policy = one.tuned.layout, one.tuned.policy
        line = [one.name, *(f"{rps:.1f}" for rps in one.rps), f"{one.gain:+.0%}", f"{one.tuned_gain:+.0%}"]
        line += [*(f"{share:.0%}" for share in one.shares), f"{one.busiest:.2f}"]
        line += [str(one.chunked.policy.chunk_tokens), f"D{layout.D} E{layout.E}, from {policy.min_batch_tokens}"]
        lines.append(line)
    header = ["model", "chunked", "asap", "tuned", "gain", "tuned gain", "attention", "experts", "transfers"]
    return markdown_table([*header, "busiest", "chunk", "tuned is"], lines, range(1, 11))


def _run_table(found: Mapping[str, Model], runs: Mapping[str, Ratio]) -> str:
    lines = [[name, f"{found[name].tuned_gain:+.1%}", str(ratio)] for name, ratio in runs.items()]
    return markdown_table(["model", "queueing engine", "runs (95 % interval)"], lines, (1, 2))


if __name__ == "__main__":
    main()
