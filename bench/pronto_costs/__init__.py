"""The benchmark pronto_costs: durable objects of pronto against volatile ones and against libpmemobj, in one run."""
