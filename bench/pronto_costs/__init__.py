"""The driver of bench/pronto_costs.py: durable objects of pronto against volatile ones and against libpmemobj, in one run."""
