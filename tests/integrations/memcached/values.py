"""Values that tell whether they are whole: each is a row of records with key, number, length, pattern and checksum."""

import hashlib
import random
import zlib

PATTERN = random.Random(1).randbytes(1 << 16).replace(b" ", b"_").replace(b"\r", b"_").replace(b"\n", b"_")
CHECKSUM_BYTES = 8
OVERHEAD_BYTES = 48  # of a record, at most, besides its key


def record(key, number, size_bytes=0):
    """One record of about `size_bytes`. No two numbers are alike, so no two records are."""
    body_bytes = max(8, size_bytes - len(key) - OVERHEAD_BYTES)
    start = number * 7919 % len(PATTERN)
    body = (PATTERN[start:] + PATTERN * (body_bytes // len(PATTERN) + 1))[:body_bytes]
    text = b"%s %d %d %s" % (key.encode(), number, body_bytes, body)
    return text + b"%08x" % zlib.crc32(text)


def defect(key, value):
    """None if `value` is a row of whole records of `key`, otherwise what is wrong with it."""
    at = 0
    while at < len(value):
        head = value[at:at + 300].split(b" ", 3)
        if len(head) < 4 or not head[1].isdigit() or not head[2].isdigit():
            return f"byte {at} of {len(value)} does not begin a record"
        body_at = at + sum(len(word) + 1 for word in head[:3])
        end = body_at + int(head[2])
        if value[end:end + CHECKSUM_BYTES] != b"%08x" % zlib.crc32(value[at:end]):
            return f"the record at byte {at} of {len(value)} is torn (its number says {head[1].decode()})"
        if head[0] != key.encode():
            return f"byte {at} of {len(value)} begins a record of another key, {head[0].decode(errors='replace')}"
        at = end + CHECKSUM_BYTES
    return None


def content_of(value):
    """The part of a value that the model keeps; None stays None: absent. A counter that has become shorter ends in spaces."""
    return None if value is None else hashlib.blake2b(value.rstrip(b" "), digest_size=12).digest()
