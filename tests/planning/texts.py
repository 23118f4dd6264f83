"""Demands for the tests: small systems with given costs, which are analysed fast."""

__all__ = ["DEMAND", "SYSTEM"]

SYSTEM = """
[system]
kind = "sync"
D = 2
T = 4
[workload]
max_prompt_tokens = 16384
[costs]
attention = { fixed = 8e-4, per_token = 1.8e-7, per_token2 = 2.5e-11 }
dispatch_send = { fixed = 3e-5, per_token = 8e-8 }
dispatch_recv = { fixed = 1e-5, per_token = 2e-8 }
moe = { floor = 3.6e-4, per_token = 1.8e-7 }
combine_send = { fixed = 3e-5, per_token = 8e-8 }
combine_recv = { fixed = 1e-5, per_token = 5e-8 }
host_dispatch = 0.0
layers = 61
"""
"""An instance of 8 devices."""

DEMAND = """
[fleet]
supernode = 24
[class.chat]
lengths = { constant = 1024 }
rate = [20, 60, 80, 50]
max_prompt_tokens = 16384
slo = { ttft = "2 s" }
[class.code]
lengths = { values = [2048, 4096, 12000] }
rate = [4, 8, 6, 9]
max_prompt_tokens = 16384
slo = { ttft = "3 s", statistic = "p95" }
[type.small]
scenario = "small.toml"
price = 2.0
"""
