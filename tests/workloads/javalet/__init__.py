"""A compiler from the workloads' subset of Java to smali, so that their lines and names are real ones."""
