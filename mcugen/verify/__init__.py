"""Input vectors, golden files, host builds, comparison."""
