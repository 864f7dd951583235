#pragma once
// The memory that explored threads share, under three models; docs/internals/quiescence.md, "How it is checked", describes them.
//
//   sc    every load sees the latest store
//   tso   stores wait in a buffer of their thread until it is flushed (x86)
//   weak  a load may see any store that its thread has not been told is old: a view machine after Kang et al. (POPL
//         2017) without promises, so loads may be late but not early
//
// In all three, `happens before` is kept as C++ defines it, and plain (not atomic) accesses are checked against it.

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "tests/schedules/operation.hpp"

namespace stillpoint::schedules {

enum class Model { sc, tso, weak };

inline constexpr int threads_max = 6;
inline constexpr int words_max = 40;
inline constexpr int plains_max = 8;

/// An operation with no other thread running: straight on the memory.
void perform_alone(Operation& operation) noexcept;

/// The knowledge of a thread, or of a store: for each word the oldest store that may still be seen; for each thread up to
/// which of its plain accesses happens before.
struct View {
    std::array<std::uint16_t, words_max> word{};
    std::array<std::uint16_t, threads_max> clock{};

    void join_words(const View& other) noexcept;
    void join_clocks(const View& other) noexcept;
    void join(const View& other) noexcept
    {
        join_words(other);
        join_clocks(other);
    }
};

class Memory {
public:
    void begin(Model model, int threads) noexcept;
    /// Another scenario follows, with words of its own. Between schedules.
    void forget_numbers() noexcept;
    /// The thread has ended: it sees nothing any more, but what it stored may be in flight.
    void end_thread(int thread) noexcept;

    /// The number of an address; the same in all schedules until the numbers are forgotten.
    [[nodiscard]] int word_at(const void* address) noexcept;

    /// True if the operation must wait for the thread's buffered stores to be flushed (tso).
    [[nodiscard]] bool needs_flush(int thread, const Operation& operation) const noexcept;
    [[nodiscard]] bool has_buffered(int thread) const noexcept { return !buffers_[static_cast<std::size_t>(thread)].empty(); }
    [[nodiscard]] int buffered_word(int thread) const noexcept { return buffers_[static_cast<std::size_t>(thread)].front().word; }
    void flush(int thread) noexcept;

    /// How many different stores the operation may see.
    [[nodiscard]] unsigned choices(int thread, const Operation& operation) noexcept;
    /// Carries out a load, store, read-modify-write or fence. `choice`: 0 sees the latest store, 1 the one before it, …
    void access(int thread, Operation& operation, unsigned choice) noexcept;
    /// The syscalls of a futex take the lock of the word's queue in the kernel.
    [[nodiscard]] std::uint64_t read_under_queue_lock(int thread, const Operation& operation, unsigned choice) noexcept;
    void pass_queue_lock(int thread, const Operation& operation) noexcept;
    void membarrier(int thread) noexcept;
    /// A signal comes between two instructions: what the compiler may still move is decided.
    void interrupt(int thread) noexcept { settle(thread); }
    /// False: it races with another thread's access.
    [[nodiscard]] bool plain(int thread, const Operation& operation) noexcept;
    [[nodiscard]] std::uint64_t latest(const void* address, unsigned bytes) const noexcept;

    /// Hash of everything that later operations depend on.
    [[nodiscard]] std::uint64_t hash() const noexcept;

private:
    struct Store {
        std::uint64_t value;
        View view;
    };
    struct Word {
        const void* address = nullptr;
        bool live = false;         ///< touched in this schedule
        std::vector<Store> stores; ///< in the order of modification
        View queue_lock;
    };
    struct Buffered {
        int word;
        std::uint8_t bytes;
        std::uint64_t value;
        View view;
    };
    struct ThreadView {
        View now;
        View on_acquire_fence;   ///< joined by an acquire fence
        View since_release_fence;
        bool ended = false;
        // Stores that the compiler may still move after what follows. A membarrier can fall before them: then it
        // covers `solid` only, and what it tells the thread counts from the next compiler fence on.
        unsigned floating = 0;
        View solid;
        View on_compiler_fence;
    };
    struct Plain {
        const void* address = nullptr;
        int writer = -1;
        std::uint16_t write_clock = 0;
        std::array<std::uint16_t, threads_max> read_clock{};
    };

    Word& live_word(const Operation& operation) noexcept;
    void append(Word& word, int number, int thread, std::uint64_t value, std::memory_order order, const View* read_view) noexcept;
    void see(int thread, int number, const Store& store, unsigned index, std::memory_order order) noexcept;
    void fence(int thread, std::memory_order order) noexcept;
    void settle(int thread) noexcept;
    void read_modify_write(int thread, Operation& operation) noexcept;
    [[nodiscard]] std::uint32_t known_accesses(const View& view) const noexcept;
    [[nodiscard]] std::uint64_t hash_view(const View& view, const std::array<std::uint16_t, words_max>& base,
                                          std::uint64_t seed) const noexcept;

    Model model_ = Model::sc;
    int threads_ = 0;
    std::unordered_map<const void*, int> numbers_;
    std::array<Word, words_max> words_;
    int words_used_ = 0;
    std::array<ThreadView, threads_max> views_{};
    std::array<std::deque<Buffered>, threads_max> buffers_;
    View fences_{};  ///< what all full fences so far knew
    View sequential_{};  ///< of each word the newest store of order seq_cst: a load of that order sees none that is older
    std::array<Plain, plains_max> plains_{};
    int plains_used_ = 0;
};

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) noexcept
{
    std::uint64_t hash = seed * 0xff51afd7ed558ccdu + value + 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 29);
}

[[nodiscard]] constexpr bool acquires(std::memory_order order) noexcept
{
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst ||
           order == std::memory_order_consume;
}

[[nodiscard]] constexpr bool releases(std::memory_order order) noexcept
{
    return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

}  // namespace stillpoint::schedules
