"""From a space to its answer: screen all points, settle the front in full, confirm the best by runs.

Large spaces are screened roughly, small ones with the quick effort of the queueing engine. Both have larger errors than
the full effort, so the front of the screened points is evaluated again, closely and then in full, then the points that
could be in the front if screening were off by as much as the margins of its effort, and so on until there is none.
Within these margins the front is that of full answers throughout.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from asapmodel.errors import NoAnswer
from asapmodel.exploration.designs import Designs, designs_of
from asapmodel.exploration.evaluation import Confirmation, Level, Task, confirm, evaluate
from asapmodel.exploration.objectives import OBJECTIVES, add_derived, front_of, near_front, ranking
from asapmodel.exploration.result import Exploration
from asapmodel.exploration.store import Store, clear, read_result
from asapmodel.exploration.table import points_table
from asapmodel.exploration.workforce import FEW_POINTS, Run, workforce
from asapmodel.files import check_writable

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.exploration.space import Space

__all__ = ["PIECE", "explore_space"]

PIECE = 128
"""Points of a task of screening: some tenths of a second to two, which is what an interrupted run loses."""

_AGAIN = 16
"""Points of a task of looking again closely."""

_NEXT: dict[Level, Level] = {"rough": "close", "quick": "close", "close": "full"}

Progress = Callable[[str, int, int], None] | None


def explore_space(
    space: Space,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress = None,
) -> Exploration:
    """Answer a space; see `asapmodel.verbs.explore.explore`."""
    if output is not None:
        check_writable(output, force=True)
        finished = None if force else read_result(output, space.digest)
        if finished is not None:
            return Exploration.of(space, *finished, reused=True)
    designs = designs_of(space)
    if not designs.count:
        raise NoAnswer(_nothing(space, designs))
    points = points_table(space, designs)  # before any work: a price may be missing
    if output is not None and force:
        clear(output)
    store = Store(output, space.digest)
    with workforce(designs.count, workers, scheduler) as run:
        explorer = _Explorer(space, designs, store, run, progress)
        table = explorer.settled(points, explorer.screened())
        best = ranking(table, space.objectives)[: space.confirm.top]
        runs = explorer.confirmed(table["point"].iloc[best].tolist())
    table = table.assign(on_front=front_of(table, space.objectives))
    if runs is not None:
        table = table.merge(runs, on="point", how="left")
    more = {
        "objectives": list(space.objectives),
        "combinations": designs.combinations,
        "left_out": [list(one) for one in designs.left_out],
    }
    store.finish(table, more)
    return Exploration.of(space, table, more, reused=False)


class _Explorer:
    """The stages, each of which takes what the store has and computes the rest."""

    def __init__(self, space: Space, designs: Designs, store: Store, run: Run, progress: Progress) -> None:
        self.space, self.designs, self.store, self.run, self.progress = space, designs, store, run, progress

    def screened(self) -> pd.DataFrame:
        """All points roughly, or with the quick effort where there are few."""
        effort: Level = "rough" if self.designs.count > FEW_POINTS else "quick"
        tasks = [Task(piece, effort, self.space.rate) for piece in self.designs.pieces(PIECE)]
        return self._stage(effort, "screening", evaluate, range(len(tasks)), tasks, [_size(task) for task in tasks])

    def settled(self, points: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
        """The whole table; the front, what is near it and the candidates to confirm are evaluated with the full effort.

        Raises
        ------
        NoAnswer
            If no point has a value of every objective.
        """
        while True:
            table = add_derived(points.merge(measures, on="point"))
            order = ranking(table, self.space.objectives)
            if not len(order):
                raise NoAnswer(_none_valued(self.space, table))
            wanted = max(int(front_of(table, self.space.objectives).sum()), self.space.confirm.top)
            first = table.iloc[order[:wanted]]
            chosen = first[first["effort"] != "full"]
            if chosen.empty:  # the front is settled: now those that screening may have put too low
                chosen = table[near_front(table, self.space.objectives)]
            if chosen.empty:
                return table
            again = self._again(chosen)
            measures = measures.set_index("point")
            measures.loc[again["point"]] = again.set_index("point")
            measures = measures.reset_index()

    def _again(self, chosen: pd.DataFrame) -> pd.DataFrame:
        """Points of one effort, the least among the chosen, more closely."""
        effort = next(one for one in _NEXT if one in set(chosen["effort"]))
        numbers = chosen.loc[chosen["effort"] == effort, "point"].tolist()
        size = 1 if effort == "close" else _AGAIN
        pieces = [numbers[k : k + size] for k in range(0, len(numbers), size)]
        tasks = [Task(tuple(map(self.designs.point, one)), _NEXT[effort], self.space.rate) for one in pieces]
        names, sizes = [one[0] for one in pieces], [len(one) for one in pieces]
        return self._stage(_NEXT[effort], "settling the front", evaluate, names, tasks, sizes)

    def confirmed(self, numbers: Sequence[int]) -> pd.DataFrame | None:
        """Points with the graph engine."""
        if not numbers:
            return None
        tasks = []
        for number in numbers:
            group = self.designs.point(number)
            scenario = group.scenario.replace(**group.policies[0])
            tasks.append(Confirmation(number, scenario, self.space.confirm.replications))
        return self._stage("graph", "confirming with the graph engine", confirm, numbers, tasks, [1] * len(tasks))

    def _stage(
        self,
        stage: str,
        title: str,
        function: Callable[[Any], pd.DataFrame],
        names: Sequence[int],
        tasks: Sequence[Any],
        sizes: Sequence[int],
    ) -> pd.DataFrame:
        """Parts of a stage, one under the other in the order of the tasks."""
        import pandas as pd

        parts: dict[int, pd.DataFrame] = {}
        for place, name in enumerate(names):
            found = self.store.get(f"{stage}-{name:07d}")
            if found is not None:
                parts[place] = found
        todo = [place for place in range(len(tasks)) if place not in parts]
        done = sum(sizes[place] for place in parts)
        self._report(title, done, sum(sizes))
        for k, part in self.run(function, [tasks[place] for place in todo]):
            self.store.put(f"{stage}-{names[todo[k]]:07d}", part)
            parts[todo[k]] = part
            done += sizes[todo[k]]
            self._report(title, done, sum(sizes))
        return pd.concat([parts[place] for place in range(len(tasks))], ignore_index=True)

    def _report(self, title: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(title, done, total)


def _size(task: Task) -> int:
    return sum(len(group.policies) for group in task.groups)


def _nothing(space: Space, designs: Designs) -> str:
    reasons = ", ".join(f"{one.reason} ({one.points:,})" for one in designs.left_out)
    return f"{space.source}: none of {designs.combinations:,} points is feasible; left out by {reasons}"


def _none_valued(space: Space, table: pd.DataFrame) -> str:
    counts = [
        f"{OBJECTIVES[name].column} ({table[OBJECTIVES[name].column].isna().sum():,})" for name in space.objectives
    ]
    status = ", ".join(f"{name} ({count:,})" for name, count in table["status"].value_counts().items())
    return (
        f"{space.source}: none of {len(table):,} feasible points has a value of every objective; "
        f"without {', '.join(counts)}; status: {status}"
    )
