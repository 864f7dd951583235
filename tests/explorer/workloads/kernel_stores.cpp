// Blocks that the kernel fills: pread() and preadv() into new blocks and over old bytes, guarded as the shims of libc's functions do it
// (kernel_call.hpp).

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/kernel_call.hpp"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

constexpr std::size_t chunk_count = 6;

/// Longer than a page: a call ends in the middle of one.
struct Chunk {
    static constexpr std::size_t word_count = 700;
    std::uint64_t words[word_count];
};

struct Chunks {
    std::uint64_t serial;
    std::uint64_t serials[chunk_count];  ///< of what each chunk is filled with
    Chunk* chunks[chunk_count];
};

[[nodiscard]] std::uint64_t word_of(std::uint64_t serial, std::size_t index) { return serial * 0x9e3779b97f4a7c15u + index; }

/// Where objects have logged variables, system calls do not tell of what they store.
class KernelStores final : public WorkloadOn<PlainMemory, Chunks> {
    using Memory = PlainMemory;

    void change(Chunks& root, Random& random) override
    {
        const std::size_t index = random() % chunk_count;
        Chunk*& chunk = root.chunks[index];
        if (chunk != nullptr && random() % 4 == 0) {
            Memory::destroy(chunk);
            chunk = nullptr;
        }
        if (chunk == nullptr) {
            chunk = Memory::make<Chunk>();
        }
        ++root.serial;
        root.serials[index] = root.serial;
        write_source(root.serial);
        if (random() % 2 == 0) {
            read_whole(*chunk);
        } else {
            read_parts(*chunk, 1 + random() % (Chunk::word_count - 2));
        }
        Memory::stored(root);
    }

    /// An ordinary file in memory, which holds what is read next.
    void write_source(std::uint64_t serial)
    {
        if (file_ < 0) {
            file_ = memfd_create("kernel stores", MFD_CLOEXEC);
        }
        Chunk source;
        for (std::size_t i = 0; i < Chunk::word_count; ++i) {
            source.words[i] = word_of(serial, i);
        }
        [[maybe_unused]] const ssize_t ignored = pwrite(file_, &source, sizeof source, 0);
    }

    /// A call that fails, or is short, leaves a chunk that check() finds.
    void read_whole(Chunk& chunk) const
    {
        KernelCall call(&chunk, sizeof chunk);
        call.returned(pread(file_, &chunk, sizeof chunk, 0));
    }

    void read_parts(Chunk& chunk, std::size_t first_words) const
    {
        const iovec parts[] = {{chunk.words, first_words * sizeof chunk.words[0]},
                               {chunk.words + first_words, (Chunk::word_count - first_words) * sizeof chunk.words[0]}};
        KernelCallParts call(parts, std::size(parts));
        call.returned(preadv(file_, parts, std::size(parts), 0));
    }

    std::string problem_of(const Chunks& root, const FindObject&) const override
    {
        for (std::size_t i = 0; i < chunk_count; ++i) {
            if (root.serials[i] == 0) {
                continue;
            }
            if (!may_be_followed(root.chunks[i])) {
                return "there is no chunk " + std::to_string(i);
            }
            for (std::size_t word = 0; word < Chunk::word_count; ++word) {
                if (root.chunks[i]->words[word] != word_of(root.serials[i], word)) {
                    return "word " + std::to_string(word) + " of chunk " + std::to_string(i) + " is not what was read last";
                }
            }
        }
        return "";
    }

    std::uint64_t digest_of(const Chunks& root, const FindObject&) const override
    {
        Digest digest;
        for (const std::uint64_t serial : root.serials) {
            digest.add(serial);
        }
        return digest.value();
    }

    int file_ = -1;
};

}  // namespace

WorkloadMakers kernel_stores()
{
    return {[]() -> std::unique_ptr<Workload> { return std::make_unique<KernelStores>(); }, nullptr};
}

}  // namespace stillpoint::explorer
