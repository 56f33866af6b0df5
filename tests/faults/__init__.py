"""What may befall a run: kills, signals, a full disk, damaged files, a GPU that is gone.

After each of them the same command ends with the result of a run that nothing disturbed, and nothing that is half
written or damaged is taken for whole. `make test` tries a few of each, `make test-slow` many.
"""
