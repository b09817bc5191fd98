"""The error for a command line that asks for something that does not exist."""

__all__ = ["UsageError"]


class UsageError(ValueError):
    """Wrong use of the command; ends it with exit code 2."""
