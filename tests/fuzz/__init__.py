"""Every reader under bytes that mean harm: one table of targets (`targets.py`), and three ways to drive it.

* `make test`: hypothesis, a moment a target (`test_fuzz.py`).
* `make test-slow`: 60 s a target, from a seed that is told; `HITIN_FUZZ_KEEP=1` writes what fails into `corpus/`.
* `python -m tests.fuzz.atheris_driver TARGET [SECONDS]`: by coverage, where atheris is installed (`--group fuzz`).

What was ever found lies in `corpus/TARGET/` and is tried by all of them.
"""
