"""What of a policy can be tuned: parameters of the scheduler, their ranges, and how a search sees them.

A search works on a box of real numbers; here they are turned into policies and back. Sizes are searched on a
logarithmic scale in steps of an eighth of an octave, times in steps of 10 ms, choices by their number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asapmodel.scenario import Scenario

__all__ = ["Parameter", "Value", "parameters_of"]

Value = float | int | str
"""Of a parameter, as it is written in `[policy]`."""

_PER_OCTAVE = 8
_SMALLEST = 256  # tokens of a batch or chunk
_WINDOW, _STEP = 0.5, 0.01  # longest window, s; step


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
    """
    policy, longest = scenario.policy, scenario.workload.max_prompt_tokens
    windows = tuple(round(_STEP * k, 3) for k in range(round(_WINDOW / _STEP) + 1))
    if scenario.layout.kind == "sync":
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
