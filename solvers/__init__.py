"""Mathematics without any word of language models: timed event graphs, root finding, sample statistics."""
