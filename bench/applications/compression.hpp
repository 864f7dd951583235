#pragma once
// A small compressor of the LZ77 kind: literals and references to what stood up to 64 KiB before.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench {

/// Replaces `out` by the compressed form of `data`.
///
/// A form is a row of pieces: a byte n below 128 and n + 1 literals; or a byte 128 + n and two bytes of distance, the low one
/// first: n + 4 bytes as they stand that far before.
void compress(std::span<const std::byte> data, std::vector<std::byte>& out);

/// Appends what was compressed to `out`; false: these bytes are not a compressed form.
[[nodiscard]] bool decompress(std::span<const std::byte> compressed, std::vector<std::byte>& out);

}  // namespace bench
