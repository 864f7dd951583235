"""The benchmark memcached: starts servers, lets them work in turn, computes, writes."""
