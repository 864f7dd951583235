"""The driver of bench/memcached.py: starts servers, lets them work in turn, computes, writes."""
