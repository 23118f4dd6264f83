"""Keys of a scenario that a space varies: where they belong, which systems they act on, their column in the table."""

from asapmodel.policy import Kind, Policy
from asapmodel.policy_rules import batching_of

__all__ = ["DECIDING", "acts", "column", "dropped", "part"]

DECIDING = ("routing", "batching", "chunk_tokens", "micro_batches", "dual_batch", "schedule_ahead")
"""Keys of `[policy]` that decide which others act."""

_IGNORED = {
    "asap": {"policy.balance", "policy.pad_groups", "policy.idle_steps", "policy.context_parallel"},
    "sync": {
        "system.E",
        "policy.min_batch_tokens",
        "policy.exclusive_tokens",
        "policy.pairing",
        "policy.dual_batch",
        "policy.micro_batches",
        "policy.overlap_moe",
        "policy.overlap_attention",
        "policy.super_kernel",
    },
}
_QUEUES_ONLY = {
    "asap": ("policy.chunk_tokens", "policy.max_seqs", "policy.schedule_ahead", "policy.hide_overhead"),
    "sync": (
        "policy.schedule_ahead",
        "policy.hide_overhead",
        "policy.pad_groups",
        "policy.idle_steps",
        "policy.context_parallel",
    ),
}
_OTHER: dict[Kind, tuple[str, ...]] = {
    "asap": ("policy.pad_groups", "policy.idle_steps", "policy.context_parallel"),
    "sync": ("policy.micro_batches",),
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


def acts(key: str, kind: Kind, policy: Policy | None = None) -> bool:
    """Whether a key makes a difference to a kind of system, with a policy whose `DECIDING` keys are known.

    Examples
    --------
    >>> acts("policy.pairing", "asap"), acts("policy.pairing", "sync"), acts("system.D", "sync")
    (True, False, True)
    >>> split = Policy(routing="round_robin", chunk_tokens=8192, micro_batches="split")
    >>> [acts(f"policy.{key}", "asap", split) for key in ("chunk_tokens", "pairing", "batch_window")]
    [True, False, False]
    """
    policy = policy or Policy()
    return key not in _IGNORED[kind] and key not in _idle(kind, policy)


def _idle(kind: Kind, policy: Policy) -> set[str]:
    """Keys that a policy leaves without effect."""
    batching = batching_of(kind, policy)
    idle = {"policy.max_batch_tokens"} if batching == "chunks" else set()
    if not policy.schedule_ahead:
        idle.add("policy.hide_overhead")
    if kind == "sync":
        return idle if policy.queue_per_group else idle.union(_QUEUES_ONLY["sync"])
    if not policy.queue_per_group:
        return set(_QUEUES_ONLY["asap"])
    idle.add("policy.batch_window")
    if batching != "min_tokens":
        idle |= {"policy.min_batch_tokens", "policy.exclusive_tokens"}
    if policy.micro != "pair":
        idle.add("policy.pairing")
    if batching == "chunks" or policy.micro_batches != "auto":
        idle.add("policy.dual_batch")
    return idle


def dropped(kind: Kind, policy: Policy) -> tuple[str, ...]:
    """Keys that a base scenario may have and another kind or routing cannot: they are taken as not given.

    Examples
    --------
    >>> queues = Policy(routing="round_robin", chunk_tokens=8192, schedule_ahead=True)
    >>> dropped("sync", queues), dropped("asap", queues)
    (('policy.micro_batches',), ('policy.pad_groups', 'policy.idle_steps', 'policy.context_parallel'))
    """
    if not policy.queue_per_group:
        return (*_OTHER[kind], *_QUEUES_ONLY[kind])
    return _OTHER[kind] if policy.schedule_ahead else (*_OTHER[kind], "policy.hide_overhead")


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
