"""Types, ops, passes and dumps that every family shares. Knows no family, no C and no board."""
