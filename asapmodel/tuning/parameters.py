"""What of a policy can be tuned: parameters of the scheduler, their ranges, and how a search sees them.

A search works on a box of real numbers; here they are turned into policies and back. Sizes are searched on a
logarithmic scale in steps of an eighth of an octave, times in steps of 10 ms, choices by their number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asapmodel.policy import AT_ARRIVAL, Kind, Policy
from asapmodel.policy_rules import batching_of, is_vllm_like
from asapmodel.scenario import Scenario

__all__ = ["Parameter", "Value", "parameters_of"]

Value = float | int | str
"""Of a parameter, as it is written in `[policy]`."""

_PER_OCTAVE = 8
_SMALLEST = 256  # tokens of a batch or chunk
_WINDOW, _STEP = 0.5, 0.01  # longest window, s; step
_PROMPTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 0)  # of a step, at most; 0 is any number


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key of `[policy]` with the values a search may give it, in order."""

    key: str
    values: tuple[Value, ...]

    def nearest(self, value: Value) -> int:
        """Place of a value, or of the nearest number."""
        if value in self.values:
            return self.values.index(value)
        numbers = [one for one in self.values if not isinstance(one, str)]
        assert not isinstance(value, str)
        near = min(numbers, key=lambda one: abs(one - value))
        return self.values.index(near)


def _sizes(low: int, high: int) -> tuple[int, ...]:
    """Token numbers from `low` to `high`, eight an octave."""
    count = round(_PER_OCTAVE * math.log2(high / low))
    return tuple(dict.fromkeys(round(low * 2 ** (k / _PER_OCTAVE)) for k in range(count + 1)))


def _of_queues(kind: Kind, policy: Policy, longest: int) -> list[Parameter]:
    """Parameters of groups with queues of their own, or with a limit on the prompts of a step."""
    batching = batching_of(kind, policy)
    sizes = _sizes(_SMALLEST, max(policy.max_batch_tokens, policy.chunk_tokens, 2 * _SMALLEST))
    found = [Parameter("routing", AT_ARRIVAL) if policy.queue_per_group else Parameter("balance", ("tokens", "work"))]
    if batching == "chunks":
        found += [Parameter("chunk_tokens", sizes), Parameter("max_seqs", _PROMPTS)]
        if policy.queue_per_group and policy.hide_overhead:  # which stands in the way of False
            found.append(Parameter("schedule_ahead", (False, True)))
    elif batching == "min_tokens":
        found += [
            Parameter("min_batch_tokens", sizes),
            Parameter("exclusive_tokens", _sizes(4 * _SMALLEST, max(longest, 8 * _SMALLEST))),
        ]
    else:
        found.append(Parameter("max_batch_tokens", sizes))
    if kind == "asap":
        found.append(
            Parameter("micro_batches", ("none", "split") if batching == "chunks" else ("none", "split", "pair"))
        )
    return found


def parameters_of(scenario: Scenario, only: Sequence[str] = ()) -> list[Parameter]:
    """The parameters that act on a scenario's kind of system.

    Parameters
    ----------
    scenario : Scenario
        Its longest prompt and largest batch bound the ranges.
    only : sequence of str, optional
        Keys to keep; default all.

    Examples
    --------
    >>> [one.key for one in parameters_of(Scenario.load("paper-asap"))]
    ['min_batch_tokens', 'exclusive_tokens', 'batch_window', 'pairing']
    >>> [one.key for one in parameters_of(Scenario.load("paper-chunked"))]
    ['chunk_tokens', 'balance', 'batch_window']
    >>> [one.key for one in parameters_of(Scenario.load("afd-async"))]
    ['routing', 'chunk_tokens', 'max_seqs', 'micro_batches']
    """
    policy, longest = scenario.policy, scenario.workload.max_prompt_tokens
    windows = tuple(round(_STEP * k, 3) for k in range(round(_WINDOW / _STEP) + 1))
    if is_vllm_like(policy):
        found = _of_queues(scenario.layout.kind, policy, longest)
        if scenario.layout.kind == "sync":
            found.append(Parameter("batch_window", windows))
    elif scenario.layout.kind == "sync":
        sizes = _sizes(_SMALLEST, max(policy.max_batch_tokens, policy.chunk_tokens, 2 * _SMALLEST))
        found = [
            Parameter("chunk_tokens", (0, *sizes)),
            Parameter("balance", ("tokens", "work")),
            Parameter("batch_window", windows),
        ]
    else:
        found = [
            Parameter("min_batch_tokens", _sizes(_SMALLEST, max(policy.max_batch_tokens, 2 * _SMALLEST))),
            Parameter("exclusive_tokens", _sizes(4 * _SMALLEST, max(longest, 8 * _SMALLEST))),
            Parameter("batch_window", windows),
        ]
        if policy.dual_batch:
            found.append(Parameter("pairing", ("locked", "rolling")))
    return [one for one in found if not only or one.key in only]
