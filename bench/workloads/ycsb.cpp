// YCSB's core workloads: load, A to D and F (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010), on a hash
// map or the peer's own store. Keys are 8 bytes; a value is one field, and an update overwrites all of it.
//
// load and D insert new records, and YCSB ends when they are there. Here work has no end, so the number of records is kept:
// the thread removes its oldest record after each insertion, as a part of the same operation. Otherwise a fast
// engine would soon work on more records than a slow one.

#include <memory>

#include "../harness/zipf.hpp"
#include "key_value.hpp"
#include "makers.hpp"
#include "record_windows.hpp"
#include "records.hpp"

namespace bench {
namespace {

struct Mix {
    unsigned read_percent;
    /// An update makes the new value from the old one: a read and a write of the store, counted as one operation.
    /// Another thread's update may come between the two, as in YCSB.
    bool updates_read;
};

/// A, B, C, F: popular records are read and updated, wherever they lie.
class PopularRecords final : public KeyValueWorkload<CurrentYcsbStore> {
public:
    PopularRecords(const Shape& shape, const char* name, const Mix& mix)
        : KeyValueWorkload(shape, name, records_of(shape)), mix_(mix), popular_(keys_)
    {
    }

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t key = key_number(popular_.next_scrambled(context.random));
            if (context.random.below(100) >= mix_.read_percent) {
                update(context, key);
            } else if (!get(context, key)) {
                found_wrong();
            }
        }
    }
    std::string fault() override
    {
        Context context;
        for (std::uint64_t i = 0; i < keys_; ++i) {
            if (!get(context, key_number(i))) {
                found_wrong();
            }
        }
        return KeyValueWorkload::fault();
    }

private:
    void fill() override
    {
        Context context;
        for (std::uint64_t i = 0; i < keys_; ++i) {
            put(context, key_number(i));
        }
    }
    void update(Context& context, std::uint64_t key)
    {
        if (!mix_.updates_read) {
            put(context, key);
            return;
        }
        std::array<std::byte, value_bytes_max> bytes;
        const auto value = std::span(bytes).first(shape_.value_bytes);
        if (!store_.get(context.thread, key, value) || !is_value_of(value, key)) {
            found_wrong();
            return;
        }
        make_value(value, key, version_of(value) + 1);
        store_.put(context.thread, key, value);
        context.changed_bytes += value.size();
    }

    Mix mix_;
    Zipf popular_;
};

/// load and D: new records are inserted, and the newest are the popular ones.
class NewestRecords final : public KeyValueWorkload<CurrentYcsbStore> {
public:
    NewestRecords(const Shape& shape, const char* name, unsigned read_percent)
        : KeyValueWorkload(shape, name, records_of(shape)), read_percent_(read_percent), windows_(keys_, shape.threads),
          ages_(windows_.length() * shape.threads)
    {
    }

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            if (context.random.below(100) < read_percent_) {
                read_recent(context);
            } else {
                insert_next(context, context.thread);
            }
        }
    }
    std::string fault() override
    {
        Context context;
        for (unsigned thread = 0; thread < windows_.threads(); ++thread) {
            for (std::uint64_t record = windows_.first(thread); record < windows_.end(thread); ++record) {
                if (!get(context, key_of(thread, record))) {
                    found_wrong();
                }
            }
        }
        return KeyValueWorkload::fault();
    }

private:
    [[nodiscard]] std::uint64_t key_of(unsigned thread, std::uint64_t record) const noexcept
    {
        return key_number(windows_.number_of(thread, record));
    }
    void fill() override
    {
        Context context;
        for (std::uint64_t i = 0; i < windows_.length() * windows_.threads(); ++i) {
            insert_next(context, static_cast<unsigned>(i % windows_.threads()));
        }
    }
    void find_again() override
    {
        Context context;
        windows_.find_again([&](std::uint64_t number) { return get(context, key_number(number)); });
    }
    /// `thread`: whose record; the caller's own, or any before the threads work.
    void insert_next(Context& context, unsigned thread)
    {
        put(context, key_of(thread, windows_.end(thread)));
        windows_.has_inserted(thread);
        while (windows_.is_over(thread)) {
            const std::uint64_t oldest = windows_.first(thread);
            windows_.removes(thread);
            if (!store_.remove(context.thread, key_of(thread, oldest))) {
                found_wrong();
            }
            context.changed_bytes += sizeof(std::uint64_t);
        }
    }
    /// Ages go round the threads: 0 is the caller's newest, 1 the next thread's newest, and so on.
    void read_recent(Context& context)
    {
        const std::uint64_t age = ages_.next(context.random);
        const auto thread = static_cast<unsigned>((context.thread + age) % windows_.threads());
        const std::uint64_t record = windows_.end(thread) - 1 - age / windows_.threads();
        // The record's owner may have removed it meanwhile.
        if (!get(context, key_of(thread, record)) && windows_.first(thread) <= record) {
            found_wrong();
        }
    }

    unsigned read_percent_;
    RecordWindows windows_;
    Zipf ages_;
};

}  // namespace

Work make_ycsb_load(const Shape& shape) { return {std::make_unique<NewestRecords>(shape, "bench.ycsb_load", 0), nullptr}; }
Work make_ycsb_a(const Shape& shape) { return {std::make_unique<PopularRecords>(shape, "bench.ycsb_a", Mix{50, false}), nullptr}; }
Work make_ycsb_b(const Shape& shape) { return {std::make_unique<PopularRecords>(shape, "bench.ycsb_b", Mix{95, false}), nullptr}; }
Work make_ycsb_c(const Shape& shape) { return {std::make_unique<PopularRecords>(shape, "bench.ycsb_c", Mix{100, false}), nullptr}; }
Work make_ycsb_d(const Shape& shape) { return {std::make_unique<NewestRecords>(shape, "bench.ycsb_d", 95), nullptr}; }
Work make_ycsb_f(const Shape& shape) { return {std::make_unique<PopularRecords>(shape, "bench.ycsb_f", Mix{50, true}), nullptr}; }

}  // namespace bench
