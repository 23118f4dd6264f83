"""Small systems whose answers scale in known ways."""

import asapmodel as am

__all__ = ["SYNC", "toy"]

SYNC = """
[system]
kind = "sync"
D = 2
T = 1
[policy]
max_batch_tokens = 8192
[workload]
lengths = { values = [512, 1024, 4096] }
[slo]
ttft = "2 s"
[costs]
layers = 10
attention = { fixed = 0.0, per_token = 1e-7, per_token2 = 1e-11 }
dispatch_send = { fixed = 0.0, per_token = 4e-8 }
dispatch_recv = { fixed = 0.0, per_token = 4e-8 }
moe = { floor = 0.0, per_token = 2e-7 }
combine_send = { fixed = 0.0, per_token = 0.0 }
combine_recv = { fixed = 0.0, per_token = 0.0 }
host_dispatch = 0.0
"""
"""Costs are all its own: nothing of the catalogue acts on it."""

_FACTORS = ("attention", "dispatch_send", "dispatch_recv", "moe")


def toy(*lines: str, together: float | None = None) -> am.Scenario:
    """The system with lines of `[uncertainty]`; `together`: one factor of that deviation on all costs."""
    text = SYNC + "[uncertainty]\n" + "\n".join(lines)
    if together is not None:
        keys = [f"costs.{name}" for name in _FACTORS]
        row = [together**2] * len(keys)
        text += f"\ncovariance = {{ keys = {keys!r}, matrix = {[row] * len(keys)!r} }}".replace("'", '"')
    return am.Scenario.parse(text, where="toy.toml")
