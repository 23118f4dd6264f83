from collections.abc import Mapping
from dataclasses import replace

import pytest
import sympy

from asapmodel.models import memory
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.parameters import Split

GIVEN = paper_deployment()
ARCHITECTURE, DEVICE, _, SPLIT = GIVEN


def bytes_of(expressions: Mapping[str, sympy.Expr], split: Split = SPLIT, **variables: float) -> dict[str, float]:
    return {name: float(evaluate(x, ARCHITECTURE, DEVICE, split, **variables)) for name, x in expressions.items()}


def test_table_2_to_the_byte() -> None:
    attention = bytes_of(memory.attention_buffers(), S=32768)
    experts = bytes_of(memory.moe_buffers(), S=32768)
    assert attention == {"expert ids": 65536, "expert results": 939524096, "arrival flags": 2}
    assert experts == {"token metadata": 256, "tokens": 15032385536, "arrival flags": 2}
    assert experts["tokens"] == 14 * 2**30
    assert max(attention["arrival flags"], experts["token metadata"], experts["arrival flags"]) < 1024


def test_flags_are_whole_bytes() -> None:
    split = Split(D=3, T=3, E=17)
    assert bytes_of(memory.attention_buffers(), split, S=32768)["arrival flags"] == 3
    assert bytes_of(memory.moe_buffers(), split, S=32768)["arrival flags"] == 2


def test_weights_add_up_to_the_model() -> None:
    alone = bytes_of(memory.weights(), Split(D=1, T=1, E=1))
    embeddings = alone.pop("embeddings") / 2  # activation width
    assert sum(alone.values()) + embeddings == pytest.approx(671e9, rel=0.01)  # sec. 5.1: 671B parameters


def test_attention_is_split_over_the_group_but_not_its_indexer() -> None:
    one, four = (bytes_of(memory.weights(), Split(D=1, T=T, E=16)) for T in (1, 4))
    for name in ("attention", "dense", "embeddings"):
        assert one[name] == 4 * four[name]
    assert one["indexer"] == four["indexer"]


def test_cache_is_1280_bytes_per_token_and_layer() -> None:
    size = float(evaluate(memory.cache_bytes(), *GIVEN, S=32768, N_s=1))
    assert size == 1280 * 61 * 32768


def test_the_paper_deployments_fit() -> None:
    asap = memory.fits(ARCHITECTURE, DEVICE, SPLIT, "asap", S=32768, slots=2)
    assert asap.fits
    alive = asap.items["moe"]["activations"]
    assert asap.used["moe"] - alive == pytest.approx(17 * 3 * 7168 * 2048 * 58 + 15032385536 + 258)
    assert alive == 8 * 16384 * 7168 * 2 + 18432 * (2048 + 7168 * 2)  # eight batches' copies, rows of one
    assert asap.headroom["moe"] == 64e9 - asap.used["moe"]
    sync = memory.fits(ARCHITECTURE, DEVICE, Split(D=8, T=4, E=32), "sync", S=32768, slots=1)
    assert sync.fits
    assert list(sync.items) == ["device"]
    assert sync.items["device"]["all-to-all buffers"] == 2 * 939524096


def test_too_few_expert_devices_do_not_fit() -> None:
    small = memory.fits(ARCHITECTURE, DEVICE, Split(D=4, T=4, E=8), "asap", S=32768, slots=2)
    assert not small.fits
    assert small.headroom["moe"] < 0 < small.headroom["attention"]
    roomy = memory.fits(ARCHITECTURE, replace(DEVICE, memory_bytes=128e9), Split(D=4, T=4, E=8), "asap", 32768, 2)
    assert roomy.fits


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind"):
        memory.fits(ARCHITECTURE, DEVICE, SPLIT, "hybrid", S=32768, slots=1)
