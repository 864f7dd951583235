// Lookups, insertions and removals on a sorted list, and on a skip list, that are locked hand over hand [PMThreads §6].

#include <memory>
#include <string>

#include "../structures/coupled_list.hpp"
#include "../structures/skip_list.hpp"
#include "makers.hpp"
#include "memory_workload.hpp"
#include "values.hpp"

namespace bench {
namespace {

/// Half of the key range is there; an update inserts or removes, so the length stays. `operations_each`: of a turn.
template <class List, unsigned operations_each>
class ListWorkload final : public MemoryWorkload {
public:
    ListWorkload(const Shape& shape, const char* name, std::uint64_t elements) : MemoryWorkload(shape), keys_(2 * elements), list_(name) {}

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
    unsigned operations_per_turn() const noexcept override { return operations_each; }

private:
    /// From the last key on: each is inserted at the head, without a walk.
    void fill() override
    {
        for (std::uint64_t i = keys_ / 2; i > 0; --i) {
            const std::uint64_t key = 2 * (i - 1);
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
            return is_sorted ? "a level of the list has other elements than it should" : "the keys of the list are not in order";
        }
        return length == list_.length()
                   ? std::string()
                   : "the list has " + std::to_string(length) + " elements, and its updates have counted " + std::to_string(list_.length());
    }

    std::uint64_t keys_;
    List list_;
};

/// An operation takes half a millisecond.
using LongList = ListWorkload<CoupledList<CurrentEngine>, 1>;
using LeveledList = ListWorkload<SkipList<CurrentEngine>, 16>;

}  // namespace

Work make_list(const Shape& shape) { return {std::make_unique<LongList>(shape, "bench.list", shape.size_or(40'000, 200)), nullptr}; }

Work make_skip_list(const Shape& shape)
{
    return {std::make_unique<LeveledList>(shape, "bench.skip_list", shape.size_or(200'000, 200)), nullptr};
}

}  // namespace bench
