#pragma once
// The store of a transaction's word into memory that other threads may read at the same time.

#include <cstdint>

namespace stillpoint::spht {

/// The bytes of the aligned word that `mask` has.
[[gnu::always_inline]] inline void store_word(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept
{
    if (mask == ~std::uint64_t{0}) {
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
        return;
    }
    // Neighbouring bytes may be another transaction's: bytes of one line are not, those of one word can be volatile memory's.
    auto* const bytes = reinterpret_cast<unsigned char*>(word);
    for (unsigned i = 0; i < 8; ++i) {
        if ((mask >> (i * 8) & 0xff) != 0) {
            __atomic_store_n(bytes + i, static_cast<unsigned char>(value >> (i * 8)), __ATOMIC_RELAXED);
        }
    }
}

}  // namespace stillpoint::spht
