"""Products and decompositions that never form an n x m array."""
