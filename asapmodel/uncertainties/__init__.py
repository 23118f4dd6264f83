"""How sure an answer is: uncertain constants, what they do to an answer, and which measurement would tell most."""
