"""C as text: literals, identifiers, comments, arrays. Knows C and nothing else."""
