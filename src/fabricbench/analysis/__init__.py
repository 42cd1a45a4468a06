"""From stored samples to findings: comparisons, crossovers, the ladder, proofs of path. Pure."""
