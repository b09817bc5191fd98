"""Scripts that produce every figure the documentation shows.

``python -m benchmarks --list`` names them; each writes JSON into ``benchmarks/stored``.
"""
