"""Filling the gaps of a table of measurements."""

from unseen.imputation.imputer import Imputer

__all__ = ["Imputer"]
