#pragma once
// Cuts a batch of page writes into runs: the large writes that the system is asked for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>

#include "core/units.hpp"
#include "media/medium.hpp"

namespace stillpoint {

/// One contiguous piece of the file, gathered from one or more pieces of memory.
struct Run {
    std::uint64_t offset = 0;
    std::size_t size = 0;
    iovec* vectors = nullptr;
    int vector_count = 0;

    /// Drops the first `bytes` (at most size): they are written.
    void advance(std::size_t bytes) noexcept
    {
        offset += bytes;
        size -= bytes;
        while (vector_count > 0 && bytes >= vectors->iov_len) {
            bytes -= vectors->iov_len;
            ++vectors;
            --vector_count;
        }
        if (vector_count > 0) {
            vectors->iov_base = static_cast<std::byte*>(vectors->iov_base) + bytes;
            vectors->iov_len -= bytes;
        }
    }
};

/// Walks a batch in its order and merges writes that follow each other both in the batch and in the
/// file. It does not sort: the caller knows where its pages lie, and sorting would need memory.
class BatchRuns {
public:
    /// Beyond this a larger write is not faster (docs/internals/decisions/file-medium.md).
    static constexpr std::size_t run_bytes_max = 1 * mib;
    static constexpr std::size_t vectors_max = run_bytes_max / page_bytes;

    explicit BatchRuns(std::span<const BlockWrite> batch) noexcept : batch_(batch) {}

    /// Builds the next run in `vectors`; false when the batch is used up.
    bool next(std::span<iovec, vectors_max> vectors, Run& run) noexcept
    {
        run = {.offset = 0, .size = 0, .vectors = vectors.data(), .vector_count = 0};
        while (index_ < batch_.size()) {
            const BlockWrite& write = batch_[index_];
            const std::uint64_t offset = write.offset + taken_;
            if (run.size == 0) {
                run.offset = offset;
            } else if (run.offset + run.size != offset || run.size == run_bytes_max) {
                break;
            }
            std::size_t size = write.size - taken_;
            if (size > run_bytes_max - run.size) {
                size = run_bytes_max - run.size;
            }
            append(run, write.data + taken_, size);
            taken_ += size;
            if (taken_ == write.size) {
                ++index_;
                taken_ = 0;
            }
        }
        return run.size != 0;
    }

private:
    static void append(Run& run, const std::byte* data, std::size_t size) noexcept
    {
        if (size == 0) {
            return;
        }
        auto* const base = const_cast<std::byte*>(data);
        if (run.vector_count > 0) {
            iovec& last = run.vectors[run.vector_count - 1];
            if (static_cast<std::byte*>(last.iov_base) + last.iov_len == base) {
                last.iov_len += size;
                run.size += size;
                return;
            }
        }
        // Every piece is at least a page, so that run_bytes_max bounds the number of vectors.
        run.vectors[run.vector_count++] = {base, size};
        run.size += size;
    }

    std::span<const BlockWrite> batch_;
    std::size_t index_ = 0;
    std::size_t taken_ = 0;  ///< Bytes of batch_[index_] that earlier runs took.
};

}  // namespace stillpoint
