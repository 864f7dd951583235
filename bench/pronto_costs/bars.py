"""What must be reached: each bar is judged by one figure of one part."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Bar:
    text: str
    limit: float
    is_minimum: bool
    unit: str = ""

    def judged(self, value):
        """`value` None: what it is about was not measured."""
        met = value is not None and (value >= self.limit if self.is_minimum else value <= self.limit)
        return {"text": self.text, "value": value, "limit": self.limit, "unit": self.unit, "met": met}


MAP_TO_VOLATILE = Bar("map, insertions of 4 KiB values on memory: latency at most 3.2 times volatile's", 3.2, False, "x")
MAP_TO_PMEMOBJ = Bar("map, insertions of 4 KiB values on memory: at least 3.8 times faster than the libpmemobj tree map", 3.8, True, "x")
GROUP_COMMIT = Bar("group commit on a file, 64 clients: at least 50 times the operations of one fdatasync for each", 50, True, "x")
STOP = Bar("stop of a snapshot of 1 GiB on memory: under 5 ms", 5e6, False, "ns")
RECOVERY = Bar("1 GiB recovered on memory, to its last page: under 0.4 s", 0.4e9, False, "ns")
FIRST_OPERATION = Bar("1 GiB on memory, from the start of the process to its first operation: under 0.4 s", 0.4e9, False, "ns")
