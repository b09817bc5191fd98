"""How models with side information read features: which map stands for a side that has, or has not, any."""

from __future__ import annotations

from unseen.maps import Constant, FeatureMap, Given, Identity, IdentityWithOnes, Whitened, WithOnes

__all__ = ["bilinear_maps", "orthonormal_map"]


def orthonormal_map(has_features: bool, intercept: bool, standardize: bool) -> FeatureMap:
    """Orthonormal basis of the features, with or without a constant; the identity without features."""
    if not has_features:
        return Identity()
    return Whitened(WithOnes(standardize) if intercept else Given(standardize))


def bilinear_maps(
    has: tuple[bool, bool], intercept: bool, standardize: bool
) -> tuple[FeatureMap, FeatureMap]:
    """Maps of a bilinear model; a side without features has coefficients for each of its entities.

    Without features on either side that would be a matrix as large as the target, so only the
    constant is left.
    """
    if not any(has):
        return Constant(), Constant()
    kind = WithOnes if intercept else Given
    bare = IdentityWithOnes if intercept else Identity
    row, col = (kind(standardize) if given else bare() for given in has)
    return row, col
