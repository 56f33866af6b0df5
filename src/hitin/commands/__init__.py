"""The verbs of the `hitin` command that have files of their own, and what they share."""
