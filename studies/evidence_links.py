"""Which dispatches and combines a latency and a share of the link are fitted to, and which they have to predict."""

import numpy as np

from asapmodel.studies.evidence_judging import Judged, column_of, judge, measured

__all__ = ["links"]

_SUPERNODE = "cloudmatrix_dispatch_combine"


def links() -> list[Judged]:
    """All tables of transfers."""
    return [*_gpus(), *_unified_bus()]


def _gpus() -> list[Judged]:
    """DeepEP on H100s: token counts held out, and on one node another release."""
    out = []
    sweep = measured("aiconfigurator_deepep_normal_h100", "link")
    again = measured("aiconfigurator_deepep_normal_single_node", "link")
    same = column_of(again, "aiconfigurator_deepep_normal_single_node", "system") == "h100_sxm"
    for nodes, operation in ((x, y) for x in (1, 2, 4) for y in ("dispatch", "combine")):
        data = sweep.take((sweep.nodes == nodes) & (sweep.quantity == operation))
        odd = np.arange(len(data)) % 2 == 1
        family, name = "NVLink" if nodes == 1 else "RDMA", f"{operation}, H100, {nodes} x 8"
        pair = (("every other count", data.take(~odd)), ("the others", data.take(odd)))
        out.append(judge(family, name, *pair))
        many = data.values["n"] >= 256
        if nodes > 1:
            pair = (("every other count", data.take(~odd & many)), ("the others", data.take(odd & many)))
            out.append(judge(family, f"{name}, from 256 tokens", *pair))
        else:
            later = ("0.5.12", again.take(same & (again.quantity == operation)))
            out.append(judge(family, f"{name}, next release", ("release 0.5.6", data), later))
    return out


def _unified_bus() -> list[Judged]:
    """910C: one team's kernels at 8 to 32 devices against another's at 8 and 256."""
    out = []
    ascend = measured("deepep_ascend_low_latency", "link", "ascend-910c-die")
    matrix = measured(_SUPERNODE, "link", "ascend-910c-die")
    ours = np.array([one.startswith("CM384") for one in column_of(matrix, _SUPERNODE, "system")])
    for operation in ("dispatch", "combine"):
        fitted = ("sgl-kernel-npu, EP 8, 16, 32", ascend.take(ascend.quantity == operation))
        seen = ("CloudMatrix, EP 8, 256", matrix.take(ours & (matrix.quantity == operation)))
        out.append(judge("Unified Bus", f"{operation}, 910C", fitted, seen))
    return out
