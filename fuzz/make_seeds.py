#!/usr/bin/env python3
"""Writes the seeds of every fuzzer to fuzz/corpus: inputs shaped as the first lines of each fuzzer say, one for each thing worth
meeting. Seeded: running it again changes nothing."""

import random
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"

OPTIONS = {
    "defaults": "o",
    "numbers": "ointerval_ms=50 pool_size_mb=4\tpool_max_mb=64",
    "flag": "oquiet",
    "dashes": "ostop-attempt-ms=1 quiet=off",
    "choices": "otracker=mprotect medium=memory durability=process recovery=eager engine=pmthreads",
    "path": "opool=/tmp/a.pool",
    "too_large": "ointerval_ms=3600001",
    "overflow": "opool_max_mb=18446744073709551616",
    "unknown": "ointervall=5",
    "no_value": "opool",
    "empty_value": "opool= interval_ms=",
    "contradiction": "opool_size_mb=100 pool_max_mb=4",
    "fault": "fwrite:EIO@1",
    "faults": "fread:short@2,sync:EIO@3:always,fallocate:ENOSPC@1",
    "bad_fault": "fsync:short@1",
    "fault_without_number": "fwrite:EIO@",
    "fault_zero": "fread:EIO@0",
    "nine_faults": "f" + ",".join(["read:EIO@1"] * 9),
}

HEAP_STEPS = bytes([0, 16, 0, 0, 200, 0, 5, 100, 3, 2, 1, 200, 3, 0, 0, 33, 64, 0, 28, 255, 0, 3, 1, 0])
HEAP = {
    "empty": bytes([0, 0]) + HEAP_STEPS,
    "small_span": bytes([1, 0, 1, 5, 2, 0, 0, 1, 0, 3, 1]) + HEAP_STEPS,
    "coarse_span": bytes([1, 2, 1, 30, 1, 2, 1, 1]) + HEAP_STEPS,
    "large_run": bytes([1, 1, 2, 3, 0]) + HEAP_STEPS,
    "run_over_the_end": bytes([1, 1, 2, 255, 0]) + HEAP_STEPS,
    "no_such_class": bytes([1, 0, 1, 255, 0]) + HEAP_STEPS,
    "in_use_inside_a_run": bytes([2, 0, 2, 4, 2, 1, 1, 0]) + HEAP_STEPS,
    "mark_of_two": bytes([1, 0, 1, 5, 1, 0, 0, 2]) + HEAP_STEPS,
}

TABLE = {
    "whole": bytes([0]),
    "whole_resealed": bytes([3]),
    "record_in_force": bytes([0, 8, 24, 1]),
    "both_records": bytes([0, 8, 24, 1, 12, 24, 1]),
    "older_records": bytes([0, 0, 24, 1, 4, 24, 1]),
    "epoch_sealed": bytes([1, 8, 24, 4, 12, 24, 4]),
    "epoch_huge": bytes([3, 8, 31, 128, 12, 31, 128]),
    "slot_epoch": bytes([2, 1, 0, 2]),
    "slot_location": bytes([2, 1, 8, 1]),
    "slot_far": bytes([2, 1, 11, 255]),
    "page": bytes([0, 3, 0, 1]),
    "unused_entry": bytes([0, 2, 9, 1]),
    "generation": bytes([1, 8, 39, 255, 12, 39, 255]),
    "image_pages": bytes([1, 8, 48, 1, 12, 48, 1]),
}

SEMANTIC_LOG = {
    "whole": bytes([0]),
    "some_committed": bytes([8]),
    "argument": bytes([0, 3, 0, 60, 1]),
    "number": bytes([0, 2, 0, 8, 1]),
    "number_sealed": bytes([1, 2, 0, 8, 7]),
    "number_huge_sealed": bytes([1, 2, 0, 15, 255]),
    "same_number_sealed": bytes([1, 1, 0, 8, 1]),
    "length_sealed": bytes([1, 0, 0, 16, 64]),
    "length_huge_sealed": bytes([1, 0, 0, 19, 255]),
    "behind_sealed": bytes([1, 5, 0, 24, 255]),
    "part_sealed": bytes([1, 4, 0, 28, 3]),
    "has_more_sealed": bytes([1, 6, 0, 23, 2]),
    "method_sealed": bytes([1, 6, 0, 22, 200]),
    "chunk_magic": bytes([0, 11, 0, 0, 1]),
    "chunk_object_sealed": bytes([2, 11, 0, 16, 1]),
    "chunk_sequence_sealed": bytes([2, 12, 0, 24, 1]),
    "chunk_first_number_sealed": bytes([2, 12, 0, 40, 4]),
    "chunk_generation_sealed": bytes([2, 12, 0, 39, 128]),
}

ATTACH = {
    "whole": bytes([0]),
    "magic": bytes([0, 0, 0, 0, 1]),
    "version_sealed": bytes([1, 0, 8, 0, 1]),
    "offset_sealed": bytes([1, 0, 72, 0, 1]),
    "base_sealed": bytes([1, 0, 30, 0, 1]),
    "globals_name": bytes([0, 1, 7, 0, 1]),
    "globals_offset": bytes([0, 1, 63, 0, 128]),
    "handle_name": bytes([0, 2, 16, 0, 1]),
    "handle_hash": bytes([0, 2, 0, 4, 255]),
    "object_kind": bytes([0, 3, 8, 0, 7]),
    "object_address": bytes([0, 3, 1, 0, 255]),
    "object_misaligned": bytes([0, 3, 0, 0, 4]),
    "object_at_the_end": bytes([0, 3, 2, 0, 63]),
    "object_bytes": bytes([0, 4, 16, 0, 255]),
}

TYPED_IMAGE = {
    "whole": bytes([0]),
    "head": bytes([0, 1, 0, 5, 1]),
    "head_sealed": bytes([1, 1, 0, 0, 2]),
    "head_huge_sealed": bytes([1, 1, 0, 3, 255]),
    "free_sealed": bytes([1, 2, 0, 5, 48]),
    "size_sealed": bytes([2, 1, 0, 32, 64]),
    "size_huge_sealed": bytes([2, 2, 0, 39, 255]),
    "type_sealed": bytes([2, 1, 0, 20, 1]),
    "version_sealed": bytes([2, 3, 0, 24, 255]),
    "count": bytes([0, 1, 0, 16, 1]),
    "count_zero": bytes([0, 1, 0, 16, 2]),
    "generation": bytes([0, 1, 0, 40, 3]),
    "pointer": bytes([0, 1, 0, 48, 64]),
    "pointer_out": bytes([0, 0, 0, 52, 255]),
    "tag": bytes([0, 0, 0, 80, 1]),
    "table_count": bytes([0, 7, 0, 48, 255]),
    "clean_and_collecting": bytes([0, 10, 0, 80, 1, 10, 0, 88, 1]),
    "generation_of_pool": bytes([0, 10, 0, 64, 1]),
    "root": bytes([0, 10, 0, 128, 64]),
    "base": bytes([0, 10, 0, 203, 255]),
    "types_bytes": bytes([0, 10, 0, 104, 8]),
    "type_record": bytes([0, 11, 0, 16, 1]),
    "finished": bytes([0, 14, 0, 0, 1]),
    "applied_end": bytes([0, 14, 0, 72, 8]),
    "undo_entry": bytes([0, 15, 0, 16, 255]),
}


def superblock_seeds():
    """The input is laid over the pool by exclusive or; its first byte says which copies are sealed."""
    def over(offset, *values):
        return bytes(offset) + bytes(values)
    seeds = {"whole": b"\0", "sealed": b"\3"}
    for offset in range(0, 256, 8):
        seeds[f"word_{offset}"] = b"\3" + over(offset, 1)
    return seeds


def increment_seeds():
    """Each word of the header, and of the index after it, sealed."""
    words = [*range(0, 208, 8), *range(4096, 4192, 8)]
    return {"whole": b"\0", "sealed": b"\1"} | {f"word_{offset}": b"\1" + bytes(offset) + b"\1" for offset in words}


def directory_seeds():
    shuffled = random.Random(1)
    inserts = bytes(value for number in range(40) for value in (0, number))
    mixed = bytes(shuffled.randrange(256) for _ in range(200))
    return {"inserts": b"\0" + inserts, "mixed": b"\0" + mixed, "full": b"\0" + inserts * 3,
            "garbage": b"\1" + mixed[:128], "zeroes": b"\1" + bytes(128)}


def main():
    families = {
        "options_fuzz": {name: text.encode() for name, text in OPTIONS.items()}, "heap_fuzz": HEAP, "version_table_fuzz": TABLE,
        "attach_fuzz": ATTACH, "semantic_log_fuzz": SEMANTIC_LOG, "superblock_fuzz": superblock_seeds(),
        "directory_fuzz": directory_seeds(), "typed_image_fuzz": TYPED_IMAGE, "increment_fuzz": increment_seeds(),
    }
    for fuzzer, seeds in families.items():
        folder = CORPUS / fuzzer
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in seeds.items():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
