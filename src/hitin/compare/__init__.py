"""Methods side by side: every method on every data set with every seed, each trained once; and tables of results.

To be read in this order, which is that of the data:

1. The file: `cells` (what a comparison is made of), `rows` and `plan` (what a file asks for), `published` (the paper's
   numbers), `data` (documents and their fingerprint), `comparison` (all that is checked before any work).
2. The work: `places` (devices), `running` (a process for each cell), `worker` (that process), `measuring` (the trained
   model), `events` and `display` (how far it is).
3. The results: `statistics` and `resampling` (whether differences are real), `results` (rows with their scores),
   `sentences` and `facts` (what is said of them), `tables` and `words`, `figures` and `drawing` (how they look),
   `formats`, `listing` and `page` (the files).
"""
