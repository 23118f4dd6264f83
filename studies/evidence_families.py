"""Which rows of which public table a kernel law is fitted to, and which it has to predict: products, cores, modules."""

import numpy as np

from asapmodel.calibration.measurements import Measurements
from asapmodel.studies.evidence_drawn import DECODE, PREFILL, with_drawn_rows, with_equal_rows, with_padded_rows
from asapmodel.studies.evidence_judging import Judged, column_of, judge, measured

__all__ = ["attention_module", "cores", "dense_gemm", "grouped_gemm", "moe_module"]

_DSA = "aiconfigurator_dsa_context_vllm"


def _split(family: str, name: str, data: Measurements, model: str) -> Judged:
    """Every other row, predicted by the others."""
    odd = np.arange(len(data)) % 2 == 1
    return judge(family, name, ("every other row", data.take(~odd)), ("the others", data.take(odd)), model)


def grouped_gemm() -> list[Judged]:
    """Grouped products: rows held out, another team's benchmark, a later release, other models."""
    family, out = "grouped GEMM", []
    stated = measured(DECODE, "moe", "h800")
    decode, few = with_drawn_rows(stated), np.isin(stated.values["G"], (64, 16, 4, 1))
    pair = (("256, 32, 8, 2 experts a device", decode.take(~few)), ("64, 16, 4, 1", decode.take(few)))
    out.append(judge(family, "H800, InferSim", *pair, "moe"))
    printed = measured("deepgemm_grouped", "moe", "h800")
    masked = column_of(printed, "deepgemm_grouped", "layout") == "masked"
    deepgemm = with_equal_rows(printed, ~masked)
    out.append(judge(family, "H800, across teams", ("InferSim, all", decode), ("DeepGEMM, all", deepgemm), "moe"))
    early = np.array(["02-25" in one for one in column_of(deepgemm, "deepgemm_grouped", "version")])
    march = ("March, contiguous", deepgemm.take(~early & ~masked))
    out.append(judge(family, "H800, next release", ("DeepGEMM, February", deepgemm.take(early)), march, "moe"))
    prefill = with_padded_rows(measured(PREFILL, "moe", "h20"))
    out.append(_split(family, "H20, InferSim", prefill, "moe"))
    widths = column_of(prefill, PREFILL, "hidden_size")
    pair = (("models of width 2048", prefill.take(widths == 2048)), ("wider models", prefill.take(widths > 2048)))
    out.append(judge(family, "H20, across models", *pair, "moe"))
    return out


def dense_gemm() -> list[Judged]:
    """Dense products: rows held out, another team's, many rows and few, another device."""
    family = "dense GEMM"
    h800, deepgemm = (measured(name, "moe", "h800") for name in ("infersim_gemm_h800", "deepgemm_dense"))
    large = deepgemm.values["N_x"] >= 4096
    first = ~large & (np.arange(len(deepgemm)) < len(deepgemm) // 2)  # both releases print the same small products
    pairs = [("InferSim, all", h800), ("DeepGEMM, m = 4096", deepgemm.take(large))]
    return [
        _split(family, "H800, InferSim", h800, "moe"),
        judge(family, "H800, across teams", pairs[0], pairs[1], "moe"),
        judge(family, "H800, across teams, few rows", pairs[0], ("DeepGEMM, m = 64, 128", deepgemm.take(first)), "moe"),
        _split(family, "H20, InferSim", measured("infersim_gemm_h20", "moe", "h20"), "moe"),
    ]


def cores() -> list[Judged]:
    """Kernels of attention on H800: dense core, sparse core, indexer scores."""
    dense = measured("infersim_mla_prefill_h800", "attention", "h800", "deepseek-v3")
    ends = np.isin(dense.values["s"], (1024, 8192))
    sparse = measured("infersim_dsa_prefill_attn_h800", "attention", "h800")
    short = np.arange(len(sparse)) < 2
    indexer = measured("infersim_dsa_prefill_logits_h800", "attention", "h800")
    half = indexer.values["s"] - indexer.values["p"] == 2048
    one = (("1024, 8192 tokens", dense.take(ends)), ("4096, 16384, 32768", dense.take(~ends)))
    two = (("4096, 8192 keys", sparse.take(short)), ("16384 to 131072 keys", sparse.take(~short)))
    three = (("2048 queries", indexer.take(half)), ("4096 queries", indexer.take(~half)))
    return [
        judge("MLA core", "H800, InferSim", *one, "attention"),
        judge("sparse core", "H800, InferSim", *two, "attention"),
        judge("indexer", "H800, InferSim", *three, "attention"),
    ]


def attention_module() -> list[Judged]:
    """Whole modules: batch sizes held out, another GPU held out."""
    family, out = "attention module", []
    data = measured(_DSA, "attention")
    system, kernel, cache = (column_of(data, _DSA, column) for column in ("system", "kernel", "kv_dtype"))
    for gpu, code, kept in dict.fromkeys(zip(system, kernel, cache, strict=True)):
        ours = (system == gpu) & (kernel == code) & (cache == kept)
        words = f"DSA, {gpu.split('_')[0].upper()}, {code}, {kept} cache"
        out.append(_batches(family, words, data.take(ours)))
        if code.startswith("FLASHINFER"):
            below = data.values["N_b"] * data.values["s"] < 65536
            out.append(_batches(family, f"{words}, below 65536 tokens", data.take(ours & below)))
    plain = cache == "bfloat16"
    first, other = (data.take((system == gpu) & plain) for gpu in ("h100_sxm", "h200_sxm"))
    out.append(judge(family, "DSA, across GPUs", ("H100, all rows", first), ("H200, all rows", other), "attention"))
    dense = measured("aiconfigurator_mla_context_h100", "attention", "h100", "deepseek-v3")
    kernel = column_of(dense, "aiconfigurator_mla_context_h100", "kernel")
    for code in dict.fromkeys(kernel):
        out.append(_batches(family, f"MLA, H100, {code}", dense.take(kernel == code)))
    return out


def _batches(family: str, name: str, data: Measurements) -> Judged:
    even = np.round(np.log2(data.values["N_b"])).astype(np.int64) % 2 == 0
    pair = (("batches of 1, 4, 16, ...", data.take(even)), ("2, 8, 32, ...", data.take(~even)))
    return judge(family, name, *pair, "attention")


def moe_module() -> list[Judged]:
    """MoE steps, balanced: numbers of devices held out."""
    data = measured("aiconfigurator_moe_context_h100", "moe", "h100")
    kept, out = np.isin(data.values["E"], (4, 16, 64, 256)), []
    for name, rows in (("H100, balanced", kept | True), ("H100, without EP 2", data.values["E"] > 2)):
        seen = ("the others", data.take(~kept & rows))
        out.append(judge("MoE module", name, ("EP 4, 16, 64, 256", data.take(kept)), seen, "moe"))
    return out
