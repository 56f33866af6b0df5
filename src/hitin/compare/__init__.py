"""Methods side by side: every method on every data set with every seed, each trained once; and tables of results."""
