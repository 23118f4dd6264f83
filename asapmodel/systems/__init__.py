"""How the systems behave: routing, batching, micro-batches and execution as separate compiled parts."""
