"""Design-space exploration: thousands of variants of scenarios, their exact Pareto front, the best ones confirmed."""
