"""Fleet planning: how many instances of which type, and which prompts go where, for a day of demand.

`demand` reads the file, `segments` cuts classes of prompts into ranges of length, `candidates` lists the pools that
could be, `instance` says what an instance of a pool carries, `program` is the integer program, `search` keeps what is
known, and `settling` alternates between the two until every pool of the answer has been verified. The mathematics is in
`docs/background/planning.md`.
"""
