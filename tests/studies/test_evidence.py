"""The summary of the evidence: rows, whole nodes, modules across teams, the page."""

import numpy as np
import pytest

from asapmodel.models.elementwise import attention_bytes, expert_operations
from asapmodel.models.tiles import tiles
from asapmodel.studies import evidence, evidence_nodes
from asapmodel.studies.evidence_families import cores
from asapmodel.studies.evidence_modules import MODULE, cross_modules, cross_tables, expert_table, fitted, seconds_of
from asapmodel.studies.evidence_nodes import Node, ascend, hopper, long_prompt, node_rows, published_s
from asapmodel.studies.evidence_products import (
    attention_by_products,
    experts_by_products,
    kernel_letters,
    kernels_of,
    modules_by_products,
)
from asapmodel.studies.evidence_summary import Point, row_of


def test_row_of_errors() -> None:
    """Median, percentile and bias recomputed; without targets nothing is met or missed."""
    row = row_of("a", "b", ("c", "d"), [0.3, -0.1, 0.02], (0.1, 0.2), "why")
    assert row.count == 3
    assert [row.median_error, row.bias] == pytest.approx([0.1, 0.02])
    assert row.p95_error == pytest.approx(np.quantile([0.3, 0.1, 0.02], 0.95))
    assert row.met is False
    assert row_of("a", "b", ("c", "d"), [0.3]).met is None
    with pytest.raises(ValueError, match="no errors"):
        row_of("a", "b", ("c", "d"), [])


def test_node_arithmetic() -> None:
    """Hidden share and scale are inverse to the time they give."""
    node = Node(2.0, 1.0)
    assert node.seconds(0.25) == 2.75
    assert node.hidden(2.75) == pytest.approx(0.25)
    assert node.scaled(6.0) == Node(4.0, 2.0)


def test_published_iterations() -> None:
    """Times follow from the tables' throughput: 64 x 4096 tokens over 3.128 s, 16384 x 8 tokens a node of 8."""
    times = published_s()
    assert 64 * 4096 / times["910C"] == pytest.approx(83805, abs=1)
    assert times["H800, two"] == pytest.approx(16384 * 8 / 62713)


@pytest.mark.parametrize("elementwise", [False, True])
def test_nodes_are_not_predicted_by_themselves(elementwise: bool) -> None:
    """Two micro-batches: each node from the other's hidden share, by hand; nothing hidden is far off."""
    times, scaled, gpus = published_s(), ascend(elementwise).scaled(3.128), hopper(elementwise)
    share = 1 - (times["H800, two"] - gpus.compute_s) / gpus.transfer_s
    rows = {name: point for name, _, point in node_rows(elementwise)}
    by_hand = scaled.compute_s + (1 - share) * scaled.transfer_s
    assert rows["910C, two micro-batches"].predicted == pytest.approx(by_hand)
    assert rows["910C, two micro-batches"].predicted != pytest.approx(times["910C, two"], rel=1e-3)
    for name in ("910C, two micro-batches", "H800, two micro-batches", "8 x H200, 1T hybrid, 32768 tokens"):
        assert abs(rows[name].measured / rows[name].predicted - 1) < 0.10
    assert gpus.seconds() > 1.15 * times["H800, two"] > 1.15 * gpus.seconds(1.0)


def test_traffic_of_a_node_by_hand() -> None:
    """910C: kB a token and layer of the cost models' page, 8192 tokens a die, at the profile's share of 1.6 TB/s."""
    moved = 8192 * (61 * 212992 + 58 * 846848)
    assert ascend(True).compute_s - ascend().compute_s == pytest.approx(moved / (0.841 * 1.6e12), rel=1e-6)
    assert ascend(True).transfer_s == ascend().transfer_s
    assert ascend(True, 0.654).compute_s > ascend(True).compute_s


def test_parabola_of_prefill() -> None:
    """Through three points by Lagrange's formula."""
    s, t = (1024.0, 8192.0, 131072.0), (0.44, 0.72, 7.4)
    value = sum(t[i] * np.prod([(32768 - s[j]) / (s[i] - s[j]) for j in range(3) if j != i]) for i in range(3))
    assert long_prompt().predicted == pytest.approx(float(value))


def test_kernels_are_less_than_modules() -> None:
    """Products of another team leave out part of a module; what was timed is less than the law's; traffic adds.

    Product by product both come nearer still.
    """
    law, timed, full = (cross_modules(content) for content in ("law", "timed", "elementwise"))
    for name, (seconds, predicted) in law.items():
        assert len(seconds) >= 20
        assert 0.5 < np.median(predicted / seconds) < 1.0
        assert np.all(timed[name][1] < predicted)
        assert np.median(np.abs(full[name][1] / seconds - 1)) < 0.6 * np.median(np.abs(timed[name][1] / seconds - 1))
    for name, (seconds, products) in modules_by_products().items():
        before = np.median(np.abs(full[name][1] / seconds - 1))
        assert np.median(np.abs(products / seconds - 1)) < 0.8 * before


def test_traffic_of_a_module_by_hand() -> None:
    """Experts on 256 devices: a row of 21 504 B for every token, 8/256 copies of 39 936 B, at 0.8 of 3.35 TB/s."""
    (seconds, full), (_, timed) = (cross_modules(content)["MoE module"] for content in ("elementwise", "timed"))
    last = seconds.size - 1  # 524288 tokens on 256 devices
    moved = 524288 * (21504 + 39936 * 8 / 256)
    assert full[last] - timed[last] == pytest.approx(moved / (0.8 * 3.35e12), rel=1e-9)
    free = fitted(expert_table(), "moe")["c_m"]
    assert f"{1e9 * free:.1f} {1e9 * 21504 / (0.8 * 3.35e12):.1f}" == "9.4 8.0"  # as the cost models' page says


def test_a_module_by_products_by_hand() -> None:
    """The first attention module: three products in tiles, a core, 116 992 B a token at T = 1, eight more launches."""
    module, _ = cross_tables()
    every, v = kernel_letters(), {name: float(x[0]) for name, x in module.values.items()}
    dense, core = every["dense"], every["core"]
    tokens, heads, q = v["N_b"] * v["s"], 128 / v["T"], dense["q"]
    total = core["tau_k"] + 11 * dense["tau_k"]
    for width, depth in ((192 * heads, 1536), (256 * heads, 512), (7168, 128 * heads)):
        t_x, t_y, waves = (float(x[0]) for x in tiles(tokens, width, 132))
        step = max(2 * t_x * t_y * 132 / (1978e12 * dense["eta_x"]), (t_x + t_y) / dense["B_t"])
        moved = (width * depth + tokens * depth + 2 * tokens * width) / (3.35e12 * dense["eta_m"])
        total += (moved**q + (waves * (depth + dense["k_z"]) * step) ** q) ** (1 / q)
    total += v["N_b"] * heads * 320 * v["s"] * (v["s"] + 1) / (989e12 * core["eta_c"])
    between = float(seconds_of(attention_bytes("latent", "sglang", MODULE), module, {})[0])
    total += tokens * between / (0.8 * 3.35e12)
    assert attention_by_products(module)[0] == pytest.approx(total, rel=1e-9)
    assert kernels_of(expert_operations(), ("arrived", "routed")) == 4


def test_experts_by_products_by_hand() -> None:
    """The last step: one expert with 16384 rows on each of 256 devices, 21 504 B a token and 39 936 B a copy."""
    _, steps = cross_tables()
    one = kernel_letters()["grouped"]
    q, total = one["q"], 2 * one["tau_k"] + 4 * kernel_letters()["dense"]["tau_k"]
    for width, depth in ((4096, 7168), (7168, 2048)):
        t_x, t_y, waves = (float(x[0]) for x in tiles(16384, width, 132, heights=(128,)))
        assert (t_x, waves) == (128, np.ceil(128 * np.ceil(width / t_y) / 132))
        moved = (width * depth + 16384 * depth + 2 * 16384 * width) / (3.35e12 * one["eta_m"])
        step = max(2 * t_x * t_y * 132 / (1978e12 * one["eta_x"]), (t_x + t_y) / one["B_t"])
        total += (moved**q + (waves * (depth + one["k_z"]) * step) ** q) ** (1 / q)
    total += 524288 * (21504 + 39936 * 8 / 256) / (0.8 * 3.35e12)
    assert experts_by_products(steps)[-1] == pytest.approx(total, rel=1e-9)


def test_rows_of_kernels_and_page() -> None:
    """A measured row counts once; the page has every row and no unfilled field."""
    import vl_convert

    tests = cores()
    twice = [*tests, *tests]
    assert [row.count for row in evidence.kernel_rows(twice)] == [one.errors.size for one in tests]
    rows = [*evidence.kernel_rows(tests), *evidence_nodes.summary()]
    text = evidence.page(rows)
    assert "{" not in text
    assert text.count("| whole nodes |") == 7  # three of them with and without element-wise traffic
    judged = [row for row in rows if row.met is not None]
    assert f"{sum(bool(row.met) for row in judged)} of {len(judged)} lines" in text
    points = [("kernels", one) for one in evidence.kernel_points(tests)]
    points += [("gains", Point("gain", 2.9, 2.3, "ratio"))]
    assert "Rates in requests/s" in vl_convert.vegalite_to_svg(evidence.overview(points), vl_version="5.21")
