#pragma once
// The pool of breeze, and its transactions: every one is durable when it returns. Objects that nothing points to are collected.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include "../../harness/ending.hpp"
#include "../../transactions/transactions.hpp"
#include "../../transactions/tree.hpp"
#include "stillpoint/breeze.h"
#include "stillpoint/stillpoint.h"

namespace bench {

// The types of the pool. An NVM_TYPE names a type without a scope.

struct BreezeName {
    static constexpr std::size_t length_max = 55;
    char text[length_max + 1];
    void* object;
};
struct BreezeDirectory {
    BreezeName names[16];
};
/// A value follows the key.
struct BreezeRecord {
    BreezeRecord* next;
    std::uint64_t key;
    std::byte value[8];
};
struct BreezeBuckets {
    BreezeRecord* first[1];
};
struct BreezeValue {
    std::byte bytes[8];
};
using BreezeTree = transactional::Tree<BreezeValue*>;
using BreezeTreeNode = BreezeTree::Node;
/// A tree is the pointer to its uppermost node.
struct BreezeTreeRoot {
    BreezeTree tree;
};
static_assert(sizeof(BreezeTreeRoot) == sizeof(BreezeTreeNode*));
struct BreezeLink {
    std::uint64_t number;
    BreezeLink* next;
};
struct BreezeEnds {
    alignas(64) BreezeLink* front;
    alignas(64) BreezeLink* back;
};
struct BreezeSlot {
    std::uint64_t operations;
    std::uint64_t unused[7];  ///< a line for each
};

NVM_TYPE(BreezeName, NVM_HAS_PTR(BreezeName, object));
NVM_TYPE(BreezeDirectory, NVM_HAS_STRUCT(BreezeDirectory, names, BreezeName));
NVM_TYPE(BreezeRecord, NVM_HAS_PTR(BreezeRecord, next), NVM_HAS_TAIL(BreezeRecord, value));
NVM_TYPE(BreezeBuckets, NVM_HAS_PTR_TAIL(BreezeBuckets, first));
NVM_TYPE(BreezeValue, NVM_HAS_TAIL(BreezeValue, bytes));
NVM_TYPE(BreezeTreeNode, NVM_HAS_PTR(BreezeTreeNode, value), NVM_HAS_PTR(BreezeTreeNode, left), NVM_HAS_PTR(BreezeTreeNode, right));
NVM_TYPE(BreezeTreeRoot, NVM_HAS_PTR(BreezeTreeRoot, tree));
NVM_TYPE(BreezeLink, NVM_HAS_PTR(BreezeLink, next));
NVM_TYPE(BreezeEnds, NVM_HAS_PTR(BreezeEnds, front), NVM_HAS_PTR(BreezeEnds, back));
NVM_TYPE(BreezeSlot, NVM_HAS_DATA(BreezeSlot, operations));

class BreezeMemory {
public:
    class Handle {
    public:
        template <Word T>
        [[nodiscard]] T read(const T& place) const noexcept
        {
            return place;
        }
        /// In an object that the transaction has made nothing is logged.
        template <Word T>
        void write(T& place, std::type_identity_t<T> value) const
        {
            check("log", nvm_log(&place, sizeof place));
            place = value;
        }
        /// Before stores to all of these, which share one fence.
        template <class... T>
        void announce(const T&... places) const
        {
            (check("log", nvm_log_ahead(&places, sizeof places)), ...);
            nvm_log_wait();
        }
        void write_bytes(void* place, const void* value, std::size_t size_bytes) const
        {
            check("log", nvm_log(place, size_bytes));
            std::memcpy(place, value, size_bytes);
        }
        template <class T>
        [[nodiscard]] T* make(std::uint32_t type, std::size_t size_bytes = sizeof(T)) const
        {
            void* const made = nvm_alloc(pool_, type, std::max(size_bytes, sizeof(T)));
            if (made == nullptr) {
                out_of_memory(sp_last_error());
            }
            return static_cast<T*>(made);
        }
        /// The nodes of trees: what BreezeTree asks for.
        [[nodiscard]] void* allocate(std::size_t) const { return make<BreezeTreeNode>(NVM_TYPE_ID(BreezeTreeNode)); }
        /// Nothing points to it any more: it is collected.
        void free(void*) const noexcept {}
    };

    /// Makes the pool in shape.folder, or opens and recovers it. STILLPOINT_MEDIUM names the medium.
    static void open(const Shape& shape)
    {
        const std::string path = shape.folder + "/breeze.pool";
        nvm_options options{};
        options.durability = shape.durability.c_str();
        pool_ = access(path.c_str(), F_OK) == 0 ? nvm_pool_open_with(path.c_str(), &options)
                                                : nvm_pool_create_with(path.c_str(), shape.pool_mib << 20, &options);
        if (pool_ == nullptr) {
            give_up(path + ": " + sp_last_error());
        }
    }

    template <class Body>
    static auto atomically(Body&& body)
    {
        check("begin", nvm_tx_begin(pool_));
        const Handle tx;
        if constexpr (std::is_void_v<std::invoke_result_t<Body, const Handle&>>) {
            body(tx);
            check("commit", nvm_tx_commit(pool_));
        } else {
            const auto result = body(tx);
            check("commit", nvm_tx_commit(pool_));
            return result;
        }
    }

    /// The named object of that size: zeroed at its first call, the same one after a restart.
    template <class T>
    [[nodiscard]] static T* named(const Shape& shape, const char* name, std::uint32_t type, std::size_t size_bytes = sizeof(T))
    {
        static std::mutex making;
        const std::lock_guard locked(making);
        if (pool_ == nullptr) {
            open(shape);
        }
        auto* const directory =
            static_cast<BreezeDirectory*>(nvm_pool_obtain_root(pool_, NVM_TYPE_ID(BreezeDirectory), sizeof(BreezeDirectory)));
        if (directory == nullptr) {
            give_up(sp_last_error());
        }
        for (BreezeName& entry : directory->names) {
            if (entry.text[0] == '\0') {
                atomically([&](const Handle& tx) {
                    tx.announce(entry);
                    std::strncpy(entry.text, name, BreezeName::length_max);
                    entry.object = tx.template make<T>(type, size_bytes);
                });
            }
            if (std::strncmp(entry.text, name, BreezeName::length_max) == 0) {
                return static_cast<T*>(entry.object);
            }
        }
        give_up(std::string("no room in the directory for ") + name);
    }

    /// Commits are durable when they return. Garbage that is left is collected here, and not in another's slice.
    static void settle() { check("drain", nvm_drain(pool_)); }

    static std::optional<std::uint64_t> statistic(std::string_view name)
    {
        nvm_pool_facts facts{};
        if (name != "recovery_ns" || pool_ == nullptr || nvm_facts(pool_, &facts) != SP_OK) {
            return std::nullopt;
        }
        return facts.opening_ns;
    }

private:
    static void check(const char* what, int code)
    {
        if (code != SP_OK) {
            give_up(std::string(what) + ": " + sp_last_error());
        }
    }

    inline static NVM_POOL* pool_ = nullptr;
};
static_assert(Transaction<BreezeMemory::Handle>);

/// Mutexes of the process for parts of a structure; the pool has none.
class BreezeLocks {
public:
    [[nodiscard]] std::mutex& of(std::uint64_t number) noexcept { return locks_[number % locks_.size()].mutex; }

private:
    struct alignas(64) Lock {
        std::mutex mutex;
    };
    std::array<Lock, 4096> locks_;
};

}  // namespace bench
