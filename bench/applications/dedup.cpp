// A pipeline that removes duplicates from a stream and compresses the rest, in the shape of PARSEC's dedup.
//
//   cut the input into chunks -> find each chunk in a table -> compress the new ones -> write all in the input's order
//
// Between the stages are bounded queues; queues, table and output are durable. The threads share the stages out: with fewer
// than four of them, a thread has several neighbouring stages and drives one chunk through all of them before it takes the next;
// with more, the two stages in the middle have several threads. There is no deadlock: a thread waits only for room in the queue
// after its last stage, which the threads of the next one empty, or for an item in the queue before its first one.
//
// Lock order: output, then a bucket of the table. Queues: no other lock is held.

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "backup.hpp"
#include "bounded_queue.hpp"
#include "chunk_table.hpp"
#include "chunking.hpp"
#include "compression.hpp"
#include "input_size.hpp"

namespace bench {
namespace {

enum Stage : unsigned { cutting, finding, compressing, writing, stages };

using namespace backup;

class Dedup final : public EngineJob {
public:
    Dedup(const Shape& shape, std::size_t size_bytes)
        : EngineJob(shape), size_bytes_(size_bytes), chunks_max_(size_bytes / chunk_bytes_min + 1),
          table_("bench.dedup.table", std::bit_ceil(size_bytes / 4096 + 16)), pipeline_(E::named<Pipeline>("bench.dedup")),
          arrivals_(E::named<Arrival>("bench.dedup.arrivals", chunks_max_)),
          output_(E::named<std::byte>("bench.dedup.output", output_bytes_max()))
    {
    }

    void load() override { input_ = make_backup(size_bytes_); }

    void prepare() override
    {
        table_.clear();
        for (unsigned stage = cutting; stage < writing; ++stage) {
            unsigned producers = 0;
            for (unsigned thread = 0; thread < threads(); ++thread) {
                const auto [first, last] = stages_of(thread);
                producers += first <= stage && stage <= last;
            }
            pipeline_->behind[stage].open(producers);
        }
        E::Operation<1> operation;
        operation.lock(pipeline_->output_mutex);
        E::clear(arrivals_, chunks_max_);
        pipeline_->next_chunk = std::uint64_t{0};
        pipeline_->stored = std::uint64_t{0};
        pipeline_->output_bytes = std::uint64_t{0};
    }

    void work(Context& context) override
    {
        const auto [first, last] = stages_of(context.thread);
        std::vector<std::byte> scratch;
        Item item;
        while (first == cutting ? cut(item) : pipeline_->behind[first - 1].pop(item)) {
            for (unsigned stage = first; stage <= last; ++stage) {
                if (stage != first) {
                    pipeline_->behind[stage - 1].pop(item);  // what it has just put there: no other thread has this stage
                }
                do_stage(context, stage, item, scratch);
                if (stage != writing) {
                    pipeline_->behind[stage].push(item);
                }
            }
        }
        if (last != writing) {
            pipeline_->behind[last].close();
        }
    }

    std::string fault() override
    {
        if (distinct_ == 0) {
            count_distinct();
        }
        if (pipeline_->stored != distinct_) {
            return std::to_string(pipeline_->stored) + " chunks are in the output, there are " + std::to_string(distinct_);
        }
        return unpack({output_, pipeline_->output_bytes}, size_bytes_) == input_ ? std::string()
                                                                                 : "what the output is unpacked to is not the input";
    }
    std::uint64_t items() const override { return size_bytes_; }

private:
    using Entry = ChunkTable<E>::Entry;
    /// A chunk in flight.
    struct Item {
        std::uint64_t number = 0;
        std::uint64_t offset = 0;  ///< in the input
        std::uint64_t size_bytes = 0;
        Entry* entry = nullptr;
    };
    /// The chunks that have come to the last stage, by the chunk's number.
    using Arrival = E::Durable<Entry*>;
    struct Pipeline {
        BoundedQueue<E, Item> behind[writing];  ///< a queue after each stage but the last
        E::Mutex output_mutex;                  ///< guards the rest, the arrivals and the output
        E::Durable<std::uint64_t> next_chunk;   ///< to be written
        E::Durable<std::uint64_t> stored;       ///< chunks in the output with their bytes
        E::Durable<std::uint64_t> output_bytes;
    };

    [[nodiscard]] std::size_t output_bytes_max() const noexcept
    {
        return size_bytes_ + size_bytes_ / 64 + chunks_max_ * (known_bytes + new_head_bytes);
    }

    /// The first and the last stage of a thread.
    [[nodiscard]] std::pair<unsigned, unsigned> stages_of(unsigned thread) const noexcept
    {
        if (threads() >= stages) {
            const unsigned finders = std::max(1u, (threads() - 2) / 3);
            const unsigned stage = thread == 0 ? cutting : thread == threads() - 1 ? writing : thread <= finders ? finding : compressing;
            return {stage, stage};
        }
        std::pair<unsigned, unsigned> range = {stages, 0};
        for (unsigned stage = cutting; stage < stages; ++stage) {
            if (stage * threads() / stages == thread) {
                range = {std::min(range.first, stage), stage};
            }
        }
        return range;
    }

    /// The chunk after this one; the first one if it is empty. False: there is none.
    bool cut(Item& item) const
    {
        const bool is_first = item.size_bytes == 0;
        const std::uint64_t offset = item.offset + item.size_bytes;
        item = {is_first ? 0 : item.number + 1, offset, first_chunk_bytes(std::span(input_).subspan(offset)), nullptr};
        return item.size_bytes != 0;
    }
    [[nodiscard]] std::span<const std::byte> bytes_of(const Item& item) const
    {
        return std::span(input_).subspan(item.offset, item.size_bytes);
    }

    void do_stage(Context& context, unsigned stage, Item& item, std::vector<std::byte>& scratch)
    {
        if (stage == finding) {
            item.entry = table_.find_or_make(fingerprint_of(bytes_of(item)), item.number);
        } else if (stage == compressing && item.entry->first_chunk == item.number) {
            compress(bytes_of(item), scratch);
            table_.keep(*item.entry, scratch);
            context.changed_bytes += scratch.size();
        } else if (stage == writing) {
            arrive(item);
            while (write_next(context)) {
            }
        }
    }

    void arrive(const Item& item)
    {
        E::Operation<1> operation;
        operation.lock(pipeline_->output_mutex);
        arrivals_[item.number] = item.entry;
    }
    /// False: it has not arrived, or the one that brings its bytes has not.
    bool write_next(Context& context)
    {
        E::Operation<2> operation;
        operation.lock(pipeline_->output_mutex);
        const std::uint64_t number = pipeline_->next_chunk;
        Entry* const entry = number < chunks_max_ ? static_cast<Entry*>(arrivals_[number]) : nullptr;
        if (entry == nullptr || arrivals_[entry->first_chunk] == nullptr) {
            return false;
        }
        operation.lock(table_.lock_of(*entry));
        std::byte* const out = output_ + pipeline_->output_bytes;
        std::size_t written = known_bytes;
        if (entry->stored_as == 0) {
            const auto size = static_cast<std::uint32_t>(entry->size_bytes);
            std::byte* const bytes = entry->bytes;
            written = new_head_bytes + size;
            E::about_to_write(out, written);
            out[0] = is_new;
            std::memcpy(out + 1, &size, sizeof size);
            std::memcpy(out + new_head_bytes, bytes, size);
            E::deallocate(bytes);
            entry->bytes = static_cast<std::byte*>(nullptr);
            pipeline_->stored = pipeline_->stored + 1;
            entry->stored_as = static_cast<std::uint64_t>(pipeline_->stored);
        } else {
            const std::uint64_t meant = entry->stored_as - 1;
            E::about_to_write(out, written);
            out[0] = is_known;
            std::memcpy(out + 1, &meant, sizeof meant);
        }
        pipeline_->output_bytes = pipeline_->output_bytes + written;
        pipeline_->next_chunk = number + 1;
        context.changed_bytes += written;
        return true;
    }

    /// By one thread, with nothing but the chunks' fingerprints.
    void count_distinct()
    {
        std::set<std::pair<std::uint64_t, std::uint64_t>> prints;
        for (Item item; cut(item);) {
            const Fingerprint print = fingerprint_of(bytes_of(item));
            prints.emplace(print.low, print.high);
        }
        distinct_ = prints.size();
    }

    std::size_t size_bytes_;
    std::uint64_t chunks_max_;
    std::vector<std::byte> input_;
    ChunkTable<E> table_;
    Pipeline* pipeline_;
    Arrival* arrivals_;
    std::byte* output_;
    std::uint64_t distinct_ = 0;
};

}  // namespace

Work make_dedup(const Shape& shape)
{
    return {nullptr, std::make_unique<Dedup>(shape, input_size(shape, 32 << 20, 256 << 10, {1, std::uint64_t{1} << 30, "bytes"}))};
}

}  // namespace bench
