// The probe side of a hash join, with updates: rows of 16 to 200 bytes lie in a hash table, half of the probes find one, and it is read or
// overwritten. Small writes at random places, as in databases and game servers.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "../harness/bucket_of_key.hpp"
#include "makers.hpp"
#include "memory_workload.hpp"
#include "values.hpp"

namespace bench {
namespace {

class HashJoin final : public MemoryWorkload {
public:
    HashJoin(const Shape& shape, std::uint64_t rows)
        : MemoryWorkload(shape), rows_(rows), bucket_count_(std::bit_ceil(rows)), relation_(E::named<Relation>("bench.hash_join"))
    {
        E::Operation<1> operation;
        operation.lock(relation_->making);
        if (relation_->buckets == nullptr) {
            relation_->buckets = E::make_array<Bucket>(bucket_count_);
        }
    }

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t number = context.random.below(2 * rows_);
            if (context.random.below(100) < shape_.read_percent) {
                probe<E::Reading<1>>(number, [&](std::span<std::byte> bytes) { check(bytes, number); });
            } else {
                probe<E::Operation<1>>(number, [&](std::span<std::byte> bytes) {
                    E::about_to_write(bytes.data(), bytes.size());
                    make_value(bytes, key_number(number), version_of(bytes) + 1);
                    context.changed_bytes += bytes.size();
                });
            }
        }
    }

private:
    static constexpr std::size_t bytes_min = 16;
    static constexpr std::size_t bytes_max = 200;

    /// Linked once, while the table is filled; the row's bytes follow.
    struct Row {
        Row* next;
        std::uint64_t number;
    };
    using Bucket = typename E::template Guarded<Row*>;
    struct Relation {
        typename E::Mutex making;
        typename E::template Durable<Bucket*> buckets;
    };

    static std::size_t bytes_of(std::uint64_t number) noexcept
    {
        constexpr std::uint64_t step = sizeof(std::uint64_t);
        return bytes_min + (key_number(number) >> 33) % ((bytes_max - bytes_min) / step + 1) * step;
    }
    static std::span<std::byte> bytes_of(Row& row) noexcept { return {reinterpret_cast<std::byte*>(&row + 1), bytes_of(row.number)}; }
    Bucket& bucket_of(std::uint64_t number) const noexcept
    {
        Bucket* const table = relation_->buckets;
        return table[bucket_of_key(number, bucket_count_)];
    }
    /// A number from rows_ on is in no row.
    template <class Section, class Use>
    bool probe(std::uint64_t number, Use use)
    {
        Bucket& bucket = bucket_of(number);
        Section section;
        section.lock(bucket.mutex);
        Row* row = bucket.value;
        while (row != nullptr && row->number != number) {
            row = row->next;
        }
        if (row != nullptr) {
            use(bytes_of(*row));
        }
        return row != nullptr;
    }
    void check(std::span<const std::byte> bytes, std::uint64_t number)
    {
        if (!is_value_of(bytes, key_number(number))) {
            found_wrong();
        }
    }

    void fill() override
    {
        for (std::uint64_t number = 0; number < rows_; ++number) {
            if (probe<E::Reading<1>>(number, [](std::span<std::byte>) {})) {
                continue;  // A fill that was interrupted made it.
            }
            Bucket& bucket = bucket_of(number);
            E::Operation<1> operation;
            operation.lock(bucket.mutex);
            Row* const row = E::Blocks<Row>(sizeof(Row) + bytes_of(number)).make();
            row->next = bucket.value;
            row->number = number;
            make_value(bytes_of(*row), key_number(number), 0);
            bucket.value = row;
        }
    }
    std::string fault_of_structure() override
    {
        for (std::uint64_t number = 0; number < rows_; ++number) {
            if (!probe<E::Reading<1>>(number, [&](std::span<std::byte> bytes) { check(bytes, number); })) {
                return "row " + std::to_string(number) + " is missing";
            }
        }
        return {};
    }

    const std::uint64_t rows_;
    const std::uint64_t bucket_count_;
    Relation* const relation_;
};

}  // namespace

Work make_hash_join(const Shape& shape) { return {std::make_unique<HashJoin>(shape, shape.size_or(1'000'000, 2000)), nullptr}; }

}  // namespace bench
