"""Data sets to begin with, in the files that every command reads."""
