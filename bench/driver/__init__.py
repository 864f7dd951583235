"""The driver of `stillpoint bench`: engines and peers on the same work, in turn, in one run."""
