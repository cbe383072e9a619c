"""Budgets: the files that hold them, what is in one, and what was launched held against it."""
