#pragma once
// Which thread owns which chunk. Volatile: after a restart no thread owns any, and what is free is what the pool's table says.

#include <cstdint>
#include <pthread.h>

#include "undo_pool.hpp"

namespace stillpoint::undo {

/// A chunk belongs to the thread that carves blocks or keeps its log there. Ownership needs no log: a chunk that a FASE
/// took and did not use is free after a crash, since its entry of the table is 0 again. So threads never wait for each other's FASEs.
class Chunks {
public:
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    /// False: no memory. `pool` must live until close().
    [[nodiscard]] bool open(const Pool& pool) noexcept;
    void close() noexcept;

    /// A run of `count` chunks with nothing in them; the first one, or none.
    [[nodiscard]] std::uint64_t take_empty(std::uint64_t count) noexcept;
    /// A chunk with room for `bytes` after what is used; none where there is none.
    [[nodiscard]] std::uint64_t take_with_room(std::uint64_t bytes) noexcept;
    /// Outside of a FASE of the owner.
    void give_back(std::uint64_t chunk) noexcept;

private:
    const Pool* pool_ = nullptr;
    std::uint8_t* owned_ = nullptr;  ///< guarded by lock_, as are the next two
    std::uint64_t first_hint_ = 0;   ///< no chunk below it is empty and unowned
    std::uint64_t room_hint_ = 0;    ///< below it no room was found; rests of less than a block are given up until the next restart
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace stillpoint::undo
