"""Training, in the order of the work: `steps` of `optimisation`, `validation`, the `loop`, what a kill leaves of it
(`progress`, `checkpoint`, `kept_weights`, `interrupts`), and what it tells (`log`)."""
