"""Boards, placement of items into memories, and the linker fragment as a value."""
