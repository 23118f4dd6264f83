"""Small scenario texts, and how a refusal is checked; shared by the tests of scenarios."""

from pathlib import Path

import pytest

from asapmodel.errors import InputError
from asapmodel.scenario import Scenario

ASAP = '[system]\nkind = "asap"\nD = 4\nT = 4\nE = 16\n'
SYNC = '[system]\nkind = "sync"\nD = 8\nT = 4\n'
TIMES = "give seconds as a number, or text with one of ns, us, ms, s, min, h"
TRACE_CSV = "arrival_s,prompt_tokens,cached_tokens,output_tokens\n0.0,100,,\n"

# The example of the contract; its alternatives, shown there side by side, are in `test_scenario.py`.
CONTRACT = """
[model]     use = "deepseek-v3.2"                 # catalogue name, or fields inline / overriding
[cluster]   use = "cloudmatrix384"
[system]    kind = "asap"                         # "sync" | "asap"
D = 4
T = 4
E = 16
[policy]                                          # names and defaults as documented
min_batch_tokens = 2048
max_batch_tokens = 32768
exclusive_tokens = 16384
batch_window = "50 ms"
pairing = "locked"                                # "rolling"
dual_batch = true
overlap_moe = true
overlap_attention = false
super_kernel = true
chunk_tokens = 0                                  # sync: 0 = unchunked
balance = "tokens"
[workload]
arrivals = "poisson"                              # "gamma" with cv = ..., "trace"
rate = 4.0                                        # requests/s; for a trace: rescales it; absent: as recorded
lengths = { family = "lognormal", mu = 7.5733, sigma = 1.445 }
min_prompt_tokens = 31
max_prompt_tokens = 32768
duration = "300 s"
seed = 1
[slo]       ttft = "5 s"
statistic = "mean"                                # "p50".."p99", or attainment = 0.99
[costs]                                           # overrides the cost models, seconds per layer
attention = { fixed = 8e-4, per_token = 1.8e-7, per_token2 = 2.5e-11 }
dispatch_send = { fixed = 3e-5, per_token = 8e-8 }
dispatch_recv = { fixed = 1e-5, per_token = 2e-8 }
moe = { floor = 3.6e-4, per_token = 1.8e-7 }
combine_send = { fixed = 3e-5, per_token = 8e-8 }
combine_recv = { fixed = 1e-5, per_token = 5e-8 }
host_dispatch = "220 us"
layers = 61
"""
# TOML wants a line end after a table's name; the contract sets the first key beside it for brevity.
for _table in ("model", "cluster", "system", "slo"):
    CONTRACT = CONTRACT.replace(f"[{_table}]  ", f"[{_table}]\n", 1)


def refused(text: str, where: str = "s.toml", **kw: Path) -> str:
    with pytest.raises(InputError) as info:
        Scenario.parse(text, where=where, **kw)
    assert info.value.exit_status == 2
    assert "\n" not in str(info.value)
    return str(info.value)
