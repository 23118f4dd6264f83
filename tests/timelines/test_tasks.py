"""Tasks of both systems: what the streams did, against the engine's own sums and the rules."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asapmodel.engines.graph import Run, exposed_host_dispatch, resource_names, run
from asapmodel.timelines.free import free_tasks
from asapmodel.timelines.lockstep import lockstep_tasks, tasks_per_iteration
from asapmodel.timelines.tasks import PHASES, Tasks
from tests.strategies import Case, cases, queue_cases

ROOM = 200_000
EVER = (-np.inf, np.inf)
COLUMNS = ("track", "phase", "layer", "ready", "due", "start", "end")


def free(case: Case, window: tuple[float, float] = EVER) -> tuple[Tasks, Run]:
    done = run(case.layout, case.policy, case.costs, case.requests, ROOM, window)
    return free_tasks(case.layout, case.policy, case.costs, case.requests, done), done


def lockstep(case: Case, window: tuple[float, float] = EVER, room: int = 2000) -> Tasks:
    tasks, count = lockstep_tasks(case.layout, case.policy, case.costs, case.requests, window, room)
    assert count <= room
    return tasks


def check_streams(tasks: Tasks) -> None:
    """On every stream one task at a time, in the order in which they became ready."""
    assert np.all(np.diff(tasks.start) >= 0)
    assert np.all(tasks.ready <= tasks.due)
    assert np.all(tasks.due <= tasks.start)
    assert np.all(tasks.start <= tasks.end)
    for place in range(len(tasks.tracks)):
        mine = tasks.track == place
        assert np.all(tasks.start[mine][1:] >= tasks.end[mine][:-1])
        assert np.all(np.diff(tasks.ready[mine]) >= 0)


def steps_of(case: Case) -> list[tuple[int, int]]:
    """Phase and layer of a batch's tasks in their order."""
    costs = case.costs
    first = [(0, 0)] if costs.step_overhead > 0 else []
    dense = [(1, layer) for layer in range(costs.dense_layers)]
    return (
        first + dense + [(phase, layer) for layer in range(costs.dense_layers, costs.layers) for phase in range(2, 8)]
    )


def check_durations(case: Case, tasks: Tasks, host: float) -> None:
    """As the costs say for the batch's tokens and work: so these are the right ones."""
    n, w = tasks.batches.tokens[tasks.batch].astype(np.float64), tasks.batches.work[tasks.batch]
    laws = [np.full(len(n), case.costs.step_overhead), case.costs.dense_layer(n, w), *case.costs.phases(n, w, host)]
    expected = np.choose(tasks.phase, laws)
    spent = tasks.end - tasks.start
    if case.policy.schedule_ahead and case.policy.hide_overhead:  # a step that was formed ahead has no overhead
        expected = np.where((tasks.phase == 0) & (spent < 1e-12), 0.0, expected)
    np.testing.assert_allclose(spent, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(cases(kind="asap"))
def test_batches_of_free_execution(case: Case) -> None:
    """Every batch goes through its phases and layers without a gap between them, from its release to its end."""
    tasks, done = free(case)
    check_streams(tasks)
    check_durations(case, tasks, exposed_host_dispatch(case.layout, case.policy, case.costs))
    assert len(tasks.batches.number) == done.batches
    assert tasks.batches.prompts.sum() == len(case.requests.arrival)
    head = 0
    for b in range(done.batches):
        mine = np.flatnonzero(tasks.batch == b)
        assert list(zip(tasks.phase[mine], tasks.layer[mine], strict=True)) == steps_of(case)
        assert np.array_equal(tasks.ready[mine][1:], tasks.end[mine][:-1])
        own = slice(head, head + int(tasks.batches.prompts[b]))
        assert set(done.outcome.start[own]) == {tasks.ready[mine[0]]}
        assert set(done.outcome.end[own]) == {tasks.end[mine[-1]]}
        assert tasks.batches.tokens[b] == (case.requests.prompt - case.requests.cached)[own].sum()
        groups = {tasks.tracks[k].device for k in tasks.track[mine] if not tasks.tracks[k].shared}
        assert groups == {f"group {tasks.batches.group[b]}"}
        head = own.stop


@settings(max_examples=100, deadline=None)
@given(queue_cases(kind="asap"))
def test_steps_of_queues_per_group(case: Case) -> None:
    """Parts of a step go through their phases without a gap; their tokens are the prompts' own, each once."""
    tasks, done = free(case)
    check_streams(tasks)
    check_durations(case, tasks, exposed_host_dispatch(case.layout, case.policy, case.costs))
    known, requests = tasks.batches, case.requests
    moe = np.flatnonzero((tasks.phase == 5) & (tasks.layer == case.costs.dense_layers))
    assert np.array_equal(np.sort(tasks.batch[moe]), np.unique(tasks.batch[moe]))
    parts = tasks.batch[moe]  # every token passes the experts of a layer once
    assert known.tokens[parts].sum() == (requests.prompt - requests.cached).sum()
    assert known.work[parts].sum() == (requests.prompt**2 - requests.cached**2).sum()
    assert len(np.unique(known.number)) == done.batches
    begins, ends = np.full(done.batches, np.inf), np.zeros(done.batches)
    np.minimum.at(begins, known.number[tasks.batch], tasks.ready)
    np.maximum.at(ends, known.number[tasks.batch], tasks.end)
    assert set(done.outcome.start) <= set(begins)
    assert set(done.outcome.end) <= set(ends)
    for b in range(len(known.number)):
        mine = np.flatnonzero(tasks.batch == b)
        assert np.array_equal(tasks.ready[mine][1:], tasks.end[mine][:-1])
        assert {(tasks.phase[k], tasks.layer[k]) for k in mine} <= set(steps_of(case))
        assert {tasks.tracks[k].device for k in tasks.track[mine]} <= {f"group {known.group[b]}", "MoE devices"}


@settings(max_examples=60, deadline=None)
@given(queue_cases(kind="asap"))
def test_halves_of_a_step(case: Case) -> None:
    """The first is the smaller one, by a token at most, and both have the step's work between them."""
    assume(case.policy.micro == "split")
    tasks, done = free(case)
    known = tasks.batches
    for step in range(done.batches):
        mine = np.flatnonzero(known.number == step)
        *before, first, second = mine if len(mine) > 1 else (None, mine[0], mine[0])
        if len(mine) == 1:
            assert known.tokens[first] == 1
            continue
        assert 0 <= known.tokens[second] - known.tokens[first] <= 1
        assert (known.shade[first], known.shade[second]) == (0, 1)
        for part in before:
            assert known.tokens[part] == known.tokens[first] + known.tokens[second]
            assert known.work[part] == known.work[first] + known.work[second]


@settings(max_examples=60, deadline=None)
@given(st.one_of(cases(kind="asap"), queue_cases(kind="asap")))
def test_streams_of_free_execution(case: Case) -> None:
    """A task is due when it and its stream are free; seconds busy and blocked are those that the engine counts."""
    tasks, done = free(case)
    for place in range(len(tasks.tracks)):
        mine = np.flatnonzero(tasks.track == place)
        free_at = np.concatenate([[0.0], tasks.end[mine][:-1]])
        assert np.array_equal(tasks.due[mine], np.maximum(tasks.ready[mine], free_at))
    assert np.all((tasks.start == tasks.due) | np.isin(tasks.phase, [3, 6]))  # only these ask for a buffer
    seconds: dict[str, list[float]] = {}
    streams = {"all": "", "compute": "", "send": "_send", "receive": "_receive"}
    for one in tasks.use(0.0, done.makespan_s):
        name = ("moe" if one.device == "MoE devices" else "attention") + streams[one.stream]
        seconds.setdefault(name, []).append(one.busy * done.makespan_s)
        seconds.setdefault(f"{name}_blocked", []).append(one.blocked * done.makespan_s)
        assert one.busy + one.blocked + one.idle == pytest.approx(1.0)
    assert {name for name in seconds if "blocked" not in name} == {*chain(*resource_names(case.policy))}
    for name, values in seconds.items():
        assert np.mean(values) == pytest.approx(done.busy_s.get(name, 0.0), rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(cases(kind="asap"))
def test_shades_tell_active_batches_apart(case: Case) -> None:
    tasks, _ = free(case)
    known = tasks.batches
    ends = {b: tasks.end[tasks.batch == b].max() for b in known.number}
    begins = {b: tasks.ready[tasks.batch == b].min() for b in known.number}
    for group in range(case.layout.D):
        mine = known.number[known.group == group]
        for at, b in enumerate(mine):
            together = [a for a in mine[:at] if ends[a] > begins[b]]
            before = together or mine[:at][-1:].tolist()
            assert all(known.shade[a] != known.shade[b] for a in before)


def check_window(whole: Tasks, window: tuple[float, float], part: Tasks) -> None:
    """What is recorded of a window is what the whole run has there, in the same order."""
    kept = (whole.end > window[0]) & (whole.due < window[1])
    assert np.array_equal(whole.batches.number[whole.batch[kept]], part.batches.number[part.batch])
    for name in COLUMNS:
        assert np.array_equal(getattr(whole, name)[kept], getattr(part, name)), name


@settings(max_examples=80, deadline=None)
@given(st.one_of(cases(), queue_cases()))
def test_a_window_is_a_part_of_the_run(case: Case) -> None:
    asap = case.layout.kind == "asap"
    whole = free(case)[0] if asap else lockstep(case)
    last = float(whole.end.max())
    for window in pairwise([0.0, 0.3 * last, float(np.median(whole.start)), 0.8 * last, 2.0 * last]):
        if window[0] < window[1]:
            check_window(whole, window, free(case, window)[0] if asap else lockstep(case, window))


@settings(max_examples=60, deadline=None)
@given(cases(kind="sync"))
def test_iterations_of_lockstep_execution(case: Case) -> None:
    """They begin and end where requests do, hold all tokens, and cost what the engine's tally says."""
    done = run(case.layout, case.policy, case.costs, case.requests)
    tasks = lockstep(case)
    check_streams(tasks)
    D, costs = case.layout.D, case.costs
    ends = [tasks.end[tasks.batch // D == k].max() for k in range(len(tasks.batches.number) // D)]
    begins = [tasks.ready[tasks.batch // D == k].min() for k in range(len(ends))]
    for found, times in ((ends, done.outcome.end), (begins, done.outcome.start)):
        nearest = np.array(found)[np.abs(np.subtract.outer(times, found)).argmin(axis=1)]
        np.testing.assert_allclose(times, nearest, rtol=1e-9)
    assert tasks.batches.tokens.sum() == (case.requests.prompt - case.requests.cached).sum()
    assert np.all((tasks.batches.prompts > 0) == (tasks.batches.tokens > 0))
    assert np.count_nonzero(tasks.batches.tokens) == done.batches
    spent = tasks.end - tasks.start
    own = spent[tasks.phase == 2].sum() + sum(
        costs.attention(n, w) * costs.dense_layers
        for n, w in zip(tasks.batches.tokens.tolist(), tasks.batches.work.tolist(), strict=True)
        if n > 0
    )
    assert own / D == pytest.approx(done.busy_s["attention"], rel=1e-9)
    assert spent[tasks.phase == 5].sum() / D == pytest.approx(done.busy_s["moe"], rel=1e-9)
    moves = np.isin(tasks.phase, [3, 4, 6, 7])
    assert spent[moves].sum() / D == pytest.approx(done.busy_s["transfers"], rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(queue_cases(kind="sync"))
def test_iterations_with_queues_per_group(case: Case) -> None:
    """Formed ahead or not, padded or not: they begin and end where requests do, and cost what the tally says."""
    done = run(case.layout, case.policy, case.costs, case.requests)
    tasks = lockstep(case)
    check_streams(tasks)
    D, known = case.layout.D, tasks.batches
    assert known.tokens.sum() == (case.requests.prompt - case.requests.cached).sum()
    work = (case.requests.prompt**2 - case.requests.cached**2).sum()
    # The hardest slice paces a batch that is cut by tokens.
    assert known.work.sum() >= work if case.policy.context_parallel else known.work.sum() == work
    assert np.count_nonzero(known.tokens) == done.batches
    assert np.all((known.prompts > 0) == (known.tokens > 0))
    if case.policy.max_seqs:
        assert known.prompts.max() <= case.policy.max_seqs
    ends = [tasks.end[tasks.batch // D == k].max() for k in range(len(known.number) // D)]
    begins = [tasks.ready[tasks.batch // D == k].min() for k in range(len(ends))]
    for found, times in ((ends, done.outcome.end), (begins, done.outcome.start)):
        nearest = np.array(found)[np.abs(np.subtract.outer(times, found)).argmin(axis=1)]
        np.testing.assert_allclose(times, nearest, rtol=1e-9)
    spent = tasks.end - tasks.start
    assert spent[tasks.phase == 5].sum() / D == pytest.approx(done.busy_s["moe"], rel=1e-9)
    moves = np.isin(tasks.phase, [3, 4, 6, 7])
    assert spent[moves].sum() / D == pytest.approx(done.busy_s["transfers"], rel=1e-9)
    blocked = (tasks.start - tasks.due).sum()
    assert (spent.sum() + blocked) / D == pytest.approx(done.busy_s["engine"], rel=1e-9)
    if not case.policy.pad_groups and case.costs.dense_layers == 0:
        assert spent[tasks.phase == 2].sum() / D == pytest.approx(done.busy_s["attention"], rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(cases(kind="sync"))
def test_waiting_at_barriers(case: Case) -> None:
    """In an iteration a group is busy or blocked; without dense layers the latter is what the engine loses there."""
    done = run(case.layout, case.policy, case.costs, case.requests)
    tasks = lockstep(case)
    blocked = (tasks.start - tasks.due).sum()
    busy = (tasks.end - tasks.start).sum()
    assert (busy + blocked) / case.layout.D == pytest.approx(done.busy_s["engine"], rel=1e-9)
    assert np.array_equal(tasks.ready, tasks.due)
    assume(case.costs.dense_layers == 0)
    assert blocked / case.layout.D == pytest.approx(done.busy_s["barrier"], rel=1e-9, abs=1e-9 * busy)


@settings(max_examples=30, deadline=None)
@given(cases(kind="sync"))
def test_durations_of_lockstep_execution(case: Case) -> None:
    """Own attention is that of the own batch; what groups do together that of the largest, or of all."""
    tasks, costs, D = lockstep(case), case.costs, case.layout.D
    n, w = tasks.batches.tokens.reshape(-1, D).astype(np.float64), tasks.batches.work.reshape(-1, D)
    row = tasks.batch // D
    most = costs.phases(n.max(axis=1)[row], 0.0 * row)
    own = n.ravel()[tasks.batch], w.ravel()[tasks.batch]
    laws = [costs.step_overhead + 0.0 * row, costs.dense_layer(*own), costs.attention(*own), *most[1:]]
    laws[PHASES.index("moe")] = costs.moe(n.sum(axis=1)[row])
    np.testing.assert_allclose(tasks.end - tasks.start, np.choose(tasks.phase, laws), rtol=1e-6, atol=1e-12)
    some = np.bincount(row)
    assert some.max() <= tasks_per_iteration(case.layout, costs)


@settings(max_examples=10, deadline=None)
@given(cases(kind="sync"))
def test_iterations_beyond_the_room_are_counted(case: Case) -> None:
    tasks, count = lockstep_tasks(case.layout, case.policy, case.costs, case.requests, EVER, 1)
    assert len(tasks.batches.number) == case.layout.D
    assert count == len(lockstep(case).batches.number) // case.layout.D
