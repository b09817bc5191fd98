"""Attacks on the library: seeded, short under pytest, as long as one likes by ``python -m tests.hostile``."""
