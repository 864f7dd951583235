#pragma once
// Recovery of a heap whose memory is kept by lines: takes every logged variable that an epoch after the durable one
// has written back to its backup: the heap's own words first, then, by the layouts of typed spans, those of the program. Makes locks free.
// Works on the image in place or on a copy of it, mapped anywhere; re-runnable.

#include <cstdint>

#include "core/result.hpp"
#include "heap/span_table_view.hpp"

namespace stillpoint::heap {

class HeapRollback {
public:
    /// Told of every variable whose line must be written, its kind, and whether it is rolled back; by the thread that works on
    /// its span.
    using Changed = void (*)(void* context, std::byte* variable, unsigned kind, bool taken_back);
    /// Makes a lock of that kind free; called by the same thread.
    using ResetLock = void (*)(void* context, std::byte* lock, unsigned kind);
    struct Work {
        Changed changed = nullptr;
        void* context = nullptr;
        ResetLock reset_lock = nullptr;
        bool leaves_objects = false;  ///< the program's variables are found and told of, and not rolled back
    };

    /// `after_crash`: what an earlier recovery rolled back may not have been written; it counts as changed.
    HeapRollback(const Heap::Options& options, std::uint64_t durable_epoch, bool after_crash) noexcept
        : table_(options), durable_(durable_epoch), after_crash_(after_crash)
    {
    }

    /// The layouts and the span table, which everything else needs. Returns how many words were rolled back. Errors: pool_corrupt.
    [[nodiscard]] Result<std::uint64_t> roll_back_tables(const Work& work);
    [[nodiscard]] std::uint64_t spans() const noexcept { return table_.spans(); }
    /// The spans that begin in [first, end): marks, variables, locks. Threads: any number, on different ranges. Returns how many variables
    /// were rolled back.
    std::uint64_t roll_back_spans(std::uint64_t first, std::uint64_t end, const Work& work);

private:
    void settle_and_tell(std::byte* variable, unsigned kind, const Work& work, bool leaves, std::uint64_t& taken_back);
    void roll_back_words(std::byte* words, std::size_t count, const Work& work, std::uint64_t& taken_back);
    void roll_back_small(std::uint64_t span, SpanWord word, const Work& work, std::uint64_t& taken_back);
    void roll_back_objects(std::byte* begin, std::uint64_t bytes, const LayoutRecord& layout, const Work& work, std::uint64_t& taken_back);

    SpanTableView table_;
    std::uint64_t durable_;
    bool after_crash_;
};

}  // namespace stillpoint::heap
