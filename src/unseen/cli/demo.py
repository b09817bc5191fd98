"""``unseen demo``."""

from unseen.cli.output import Output


def demo(out: Output) -> None:
    """Demo."""
