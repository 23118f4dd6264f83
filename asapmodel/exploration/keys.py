"""Keys of a scenario that a space varies: where they belong, which systems they act on, their column in the table."""

from asapmodel.policy import Kind

__all__ = ["acts", "column", "part"]

_IGNORED = {
    "asap": {"policy.chunk_tokens", "policy.balance"},
    "sync": {
        "system.E",
        "policy.min_batch_tokens",
        "policy.exclusive_tokens",
        "policy.pairing",
        "policy.dual_batch",
        "policy.overlap_moe",
        "policy.overlap_attention",
        "policy.super_kernel",
    },
}
_FLAT = ("system", "policy", "workload", "slo")


def part(key: str) -> str:
    """Where a key is varied: ``"kind"``, ``"layout"``, ``"policy"``, or ``"setting"`` for all other tables.

    Examples
    --------
    >>> [part(key) for key in ("system.kind", "system.E", "policy.pairing", "cluster.device")]
    ['kind', 'layout', 'policy', 'setting']
    """
    if key == "system.kind":
        return "kind"
    return {"system": "layout", "policy": "policy"}.get(key.partition(".")[0], "setting")


def acts(key: str, kind: Kind, chunked: bool = False) -> bool:
    """Whether a key makes a difference to a kind of system, `chunked` if prompts are cut.

    Examples
    --------
    >>> acts("policy.pairing", "asap"), acts("policy.pairing", "sync"), acts("system.D", "sync")
    (True, False, True)
    """
    if chunked and key == "policy.max_batch_tokens":
        return False
    return key not in _IGNORED[kind]


def column(key: str) -> str:
    """Name of a key's column: without its table where scenarios may leave it out.

    Examples
    --------
    >>> column("policy.pairing"), column("cluster.device"), column("system.kind")
    ('pairing', 'cluster.device', 'system')
    """
    if key == "system.kind":
        return "system"
    table, _, name = key.partition(".")
    return name if table in _FLAT and name else key
