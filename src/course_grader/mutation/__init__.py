"""Mutants of right answers: what no author of a bank has thought of."""
