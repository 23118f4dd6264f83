"""How the systems are solved: each engine answers the same questions with the same result type."""
