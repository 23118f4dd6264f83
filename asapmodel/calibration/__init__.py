"""Physical parameters from measurements: tables of kernel times in, a profile with its uncertainty out."""

__all__: list[str] = []
