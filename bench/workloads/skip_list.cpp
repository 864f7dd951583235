// Lookups, insertions and removals on a skip list that is locked hand over hand: short operations of many locks.

#include <memory>
#include <string>

#include "../structures/skip_list.hpp"
#include "makers.hpp"
#include "memory_workload.hpp"
#include "values.hpp"

namespace bench {
namespace {

/// Half of the key range is there; an update inserts or removes, so the length stays.
class SkipListWorkload final : public MemoryWorkload {
public:
    SkipListWorkload(const Shape& shape, std::uint64_t elements) : MemoryWorkload(shape), keys_(2 * elements), list_("bench.skip_list") {}

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t key = context.random.below(keys_);
            if (context.random.below(100) < shape_.read_percent) {
                if (list_.find(key).value_or(key_number(key)) != key_number(key)) {
                    found_wrong();
                }
            } else if (context.random.below(2) == 0) {
                context.changed_bytes += list_.insert(context.thread, key, key_number(key)) ? 2 * sizeof key : 0;
            } else {
                context.changed_bytes += list_.remove(context.thread, key) ? sizeof key : 0;
            }
        }
    }

private:
    void fill() override
    {
        for (std::uint64_t key = 0; key < keys_; key += 2) {
            list_.insert(0, key, key_number(key));
        }
    }
    std::string fault_of_structure() override
    {
        std::int64_t length = 0;
        std::uint64_t least = 0;  // that the next key may be
        bool is_sorted = true;
        list_.for_each([&](std::uint64_t key, std::uint64_t value) {
            ++length;
            is_sorted = is_sorted && key >= least && key < keys_;
            least = key + 1;
            if (value != key_number(key)) {
                found_wrong();
            }
        });
        if (!is_sorted || !list_.is_whole()) {
            return is_sorted ? "a level of the skip list has other elements than it should" : "the keys of the skip list are not in order";
        }
        return length == list_.length() ? std::string()
                                        : "the skip list has " + std::to_string(length) + " elements, and its updates have counted " +
                                              std::to_string(list_.length());
    }

    std::uint64_t keys_;
    SkipList<E> list_;
};

}  // namespace

Work make_skip_list(const Shape& shape) { return {std::make_unique<SkipListWorkload>(shape, shape.size_or(200'000, 200)), nullptr}; }

}  // namespace bench
