"""Looks at what belongs to the user: a linker script before the link, the linked program after it. Changes nothing."""
