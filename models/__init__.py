"""The physics: symbolic costs of attention, experts, links, host and memory; prompt-length and arrival laws."""
