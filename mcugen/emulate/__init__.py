"""Toolchains, the test image, the emulated board, and the account of instructions and cycles."""
