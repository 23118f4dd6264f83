"""Spaces that the tests share."""

from pathlib import Path

__all__ = ["LONG", "SMALL", "write"]

SMALL = """
scenario = ["paper-asap", "paper-chunked"]
objectives = ["slo_throughput_per_device", "devices", "ttft_at_rate", "devices_for_rate", "cost_per_million_tokens"]
rate = 4.0
price = 2.5
[vary]
D = [4, 8]
T = { from = 2, to = 4, factor = 2 }
E = { from = 16, to = 24, step = 8 }
policy.chunk_tokens = [0, 8192]
policy.super_kernel = [true, false]
[constraints]
devices = { max = 40 }
[confirm]
top = 0
"""
"""15 feasible points of 24 different ones, both kinds of system."""

LONG = """
scenario = "paper-asap"
[vary]
D = [4, 8]
exclusive_tokens = { from = 4096, to = 28672, step = 128 }
[confirm]
top = 0
"""
"""386 combinations, half of them feasible: two tasks."""


def write(folder: Path, text: str = SMALL, name: str = "space.toml") -> Path:
    """Write a space file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
