"""The benchmark commit_model: the commit protocols of SPHT's evaluation on more cores than this machine has, by simulation."""
