"""What a release goes through; not part of the package."""
