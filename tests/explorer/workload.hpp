#pragma once
// Workload: a small state machine over durable memory. Written once; runs on every engine (memory_model.hpp).
//
// An operation follows from the memory that it finds and from its random numbers, nothing else.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "memory_model.hpp"

namespace stillpoint::explorer {

using Random = std::mt19937_64;

/// Finds a named object of the memory that is examined, live or recovered: nullptr if there is none.
using FindObject = std::function<const void*(const std::string& handle)>;

class Workload {
public:
    static constexpr const char* root_handle = "workload";

    virtual ~Workload() = default;
    /// Finds the root, or makes it: zeroes. nullptr: sp_last_error() says why.
    [[nodiscard]] virtual void* open_root() const = 0;
    /// One operation, which is a state of its own for the engine, and is counted. `performed` is called when all its stores are made, and
    /// before the engine may take the state. Throws bad_alloc, TransactionRefused.
    virtual void perform(void* root, Random& random, const std::function<void()>& performed) = 0;
    /// Performed so far, as the operation sees it that runs.
    [[nodiscard]] virtual std::uint64_t operations(const void* root) const = 0;
    /// The error in the structure, or "". Reads only; follows no pointer outside durable memory.
    [[nodiscard]] virtual std::string check(const void* root, const FindObject& find) const = 0;
    /// Digest of the abstract state: equal however the structure lies in memory.
    [[nodiscard]] virtual std::uint64_t digest(const void* root, const FindObject& find) const = 0;
};

/// Performed so far: the first word of every root.
[[nodiscard]] inline std::uint64_t operations_of(const void* root) noexcept { return *static_cast<const std::uint64_t*>(root); }

/// A workload whose own root is a `Root`.
template <class Memory, class Root>
class WorkloadOn : public Workload {
protected:
    template <class T>
    using Field = typename Memory::template Field<T>;

    virtual void change(Root& root, Random& random) = 0;
    [[nodiscard]] virtual std::string problem_of(const Root& root, const FindObject& find) const = 0;
    [[nodiscard]] virtual std::uint64_t digest_of(const Root& root, const FindObject& find) const = 0;

private:
    struct Counted {
        Field<std::uint64_t> operations;
        std::byte padding[cache_line_bytes - sizeof(Field<std::uint64_t>)];
        Root root;
    };

    void* open_root() const final { return Memory::template root<Counted>(root_handle); }
    void perform(void* root, Random& random, const std::function<void()>& performed) final
    {
        auto& counted = *static_cast<Counted*>(root);
        Memory::begin_operation();
        change(counted.root, random);
        ++counted.operations;
        Memory::stored(counted.operations);
        performed();
        Memory::end_operation();
    }
    std::uint64_t operations(const void* root) const final { return static_cast<const Counted*>(root)->operations; }
    std::string check(const void* root, const FindObject& find) const final
    {
        return problem_of(static_cast<const Counted*>(root)->root, find);
    }
    std::uint64_t digest(const void* root, const FindObject& find) const final
    {
        return digest_of(static_cast<const Counted*>(root)->root, find);
    }
};

/// One workload over each memory model that it has a form for; nullptr: none.
struct WorkloadMakers {
    using Make = std::unique_ptr<Workload> (*)();
    Make plain;
    Make logged = nullptr;
    Make transactional = nullptr;
};
template <class Of>
[[nodiscard]] std::unique_ptr<Workload> make_workload()
{
    return std::make_unique<Of>();
}
template <template <class Memory> class Over>
[[nodiscard]] WorkloadMakers over_each_memory()
{
    return {&make_workload<Over<PlainMemory>>, &make_workload<Over<LoggedMemory>>, &make_workload<Over<TransactionalMemory>>};
}
/// For workloads with operations that cannot be parts of a transaction.
template <template <class Memory> class Over>
[[nodiscard]] WorkloadMakers over_memory_without_transactions()
{
    return {&make_workload<Over<PlainMemory>>, &make_workload<Over<LoggedMemory>>};
}

struct WorkloadEntry {
    std::string_view name;
    WorkloadMakers makers;
    std::uint64_t image_max_mb;  ///< the pool's maximum

    /// False: it has no form over the memory that the engine asks for.
    [[nodiscard]] bool fits(std::string_view engine) const;
    /// Over that memory.
    [[nodiscard]] std::unique_ptr<Workload> make_for(std::string_view engine) const;
};

/// Every workload (workloads/registry.cpp).
[[nodiscard]] const std::vector<WorkloadEntry>& workloads();

/// The one of that name, which exists.
[[nodiscard]] const WorkloadEntry& workload_called(std::string_view name);

/// A pointer that recovered memory may hold: inside the window and aligned. check() asks before it follows.
[[nodiscard]] bool may_be_followed(const void* pointer, std::size_t alignment = 8) noexcept;

/// Order-dependent sum over words: the helper of digest().
class Digest {
public:
    void add(std::uint64_t word) noexcept
    {
        sum_ = (sum_ ^ word) * 0x9e3779b97f4a7c15u;
        sum_ ^= sum_ >> 29;
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return sum_; }

private:
    std::uint64_t sum_ = 0x2545f4914f6cdd1du;
};

}  // namespace stillpoint::explorer
