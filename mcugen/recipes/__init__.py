"""What each family does between a source model and the files: lower, plan, choose vectors, compute references."""
