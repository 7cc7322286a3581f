"""One file for each way to write a target; each imports its package when it is used."""
