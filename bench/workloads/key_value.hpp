#pragma once
// The common part of the workloads on a store of keys and values: the store, its progress, and what they found wrong.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../engines/current.hpp"
#include "../worker/workload.hpp"
#include "values.hpp"

namespace bench {

template <KeyValueStore Store>
class KeyValueWorkload : public Workload {
public:
    KeyValueWorkload(const Shape& shape, const char* name, std::uint64_t keys)
        : shape_(shape), keys_(keys), store_(shape, name, keys), progress_(store_, shape)
    {
    }

    void load() final
    {
        if (progress_.noted(progress_.loaded_slot) == 0) {
            {
                const Filling<Store> filling(store_);
                fill();
            }
            progress_.note(progress_.loaded_slot, 1);
        } else {
            find_again();
        }
    }
    std::string fault() override
    {
        return wrong_ == 0 ? std::string() : std::to_string(wrong_) + " values were missing, torn or of another key";
    }
    void settle() final { store_.settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) final { progress_.note(thread, operations); }
    std::uint64_t noted_progress(unsigned thread) final { return progress_.noted(thread); }

protected:
    virtual void fill() = 0;
    /// After a restart: makes again what the workload knows about its data in volatile memory.
    virtual void find_again() {}

    /// Puts the key with a value that differs from the one before.
    void put(Context& context, std::uint64_t key)
    {
        std::array<std::byte, value_bytes_max> bytes;
        const auto value = std::span(bytes).first(shape_.value_bytes);
        make_value(value, key, context.random.next());
        store_.put(context.thread, key, value);
        context.changed_bytes += value.size();
    }
    /// Reads and verifies; false: there is no such key.
    bool get(Context& context, std::uint64_t key)
    {
        std::array<std::byte, value_bytes_max> bytes;
        const auto value = std::span(bytes).first(shape_.value_bytes);
        if (!store_.get(context.thread, key, value)) {
            return false;
        }
        if (!is_value_of(value, key)) {
            found_wrong();
        }
        return true;
    }
    void found_wrong() noexcept { wrong_.fetch_add(1, std::memory_order_relaxed); }

    static constexpr std::size_t value_bytes_max = 8192;

    const Shape shape_;
    const std::uint64_t keys_;
    Store store_;

private:
    CurrentProgress<Store> progress_;
    std::atomic<std::uint64_t> wrong_{0};
};

}  // namespace bench
