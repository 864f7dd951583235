#pragma once
// A software transactional memory without durability: what transactions cost by themselves. After TL2 (Dice, Shalev, Shavit, DISC 2006):
// writes wait in a log until the commit, each 32 bytes of memory share a versioned lock of a table, and a global clock tells which
// versions a transaction may read.
//
// A body never sees a mix of old and new values: each read checks that its lock's version is not newer than the transaction's snapshot, and
// moves the snapshot forward where all that was read before is still valid.
//
// A freed block goes back to malloc when every transaction that ran at that time has ended: one that is about to abort may still read it.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "../harness/ending.hpp"
#include "transactions.hpp"

namespace bench {

class SoftwareTransactions {
    using Bits = std::uint64_t;
    using Lock = std::atomic<std::uint64_t>;  ///< twice the version of the last commit, or an odd number: a transaction commits now

    struct Conflict {};

public:
    class Handle;

    template <class Body>
    static auto atomically(Body&& body)
    {
        static thread_local const Owner owner;
        Handle& tx = owner.slot->handle;
        for (unsigned attempt = 0;; ++attempt) {
            tx.begin();
            try {
                if constexpr (std::is_void_v<decltype(body(tx))>) {
                    body(tx);
                    tx.commit();
                    return;
                } else {
                    auto result = body(tx);
                    tx.commit();
                    return result;
                }
            } catch (const Conflict&) {
                tx.abort();
            }
            wait_after(attempt);
        }
    }

    class Handle {
    public:
        template <Word T>
        [[nodiscard]] T read(const T& place)
        {
            const Place at(&place);
            const Write* const own = writes_.find(at.word);
            if (own == nullptr) {
                return at.template value_in<T>(read_word(*at.word));
            }
            const Bits mask = at.mask_of(sizeof place);
            const Bits others = (own->mask & mask) == mask ? 0 : read_word(*at.word) & ~own->mask;
            return at.template value_in<T>(others | own->bits);
        }
        template <Word T>
        void write(T& place, std::type_identity_t<T> value)
        {
            const Place at(&place);
            Bits bits = 0;
            std::memcpy(&bits, &value, sizeof value);
            const Bits mask = at.mask_of(sizeof value);
            Write& own = writes_.at(at.word);
            own.bits = (own.bits & ~mask) | bits << at.shift;
            own.mask |= mask;
        }
        [[nodiscard]] void* allocate(std::size_t size_bytes)
        {
            void* const block = std::malloc(size_bytes);
            if (block == nullptr) {
                out_of_memory();
            }
            allocated_.push_back(block);
            return block;
        }
        void free(void* block) { freed_.push_back(block); }

    private:
        friend class SoftwareTransactions;

        /// The word that a value lies in, and where.
        struct Place {
            explicit Place(const void* value) noexcept
            {
                const auto address = reinterpret_cast<std::uintptr_t>(value);
                word = reinterpret_cast<Bits*>(address / sizeof(Bits) * sizeof(Bits));
                shift = static_cast<unsigned>(address % sizeof(Bits)) * 8;
            }
            template <class T>
            [[nodiscard]] T value_in(Bits bits) const noexcept
            {
                bits >>= shift;
                T value;
                std::memcpy(&value, &bits, sizeof value);
                return value;
            }
            [[nodiscard]] Bits mask_of(std::size_t size_bytes) const noexcept { return ~Bits{0} >> (64 - 8 * size_bytes) << shift; }
            Bits* word;
            unsigned shift;
        };
        struct Write {
            Bits* word;
            Bits bits;
            Bits mask;  ///< which bits of the word are written
        };
        /// The writes in the order in which their words were first written, and a table of their places.
        class WriteLog {
        public:
            [[nodiscard]] const Write* find(const Bits* word) const noexcept
            {
                if (writes_.empty()) {
                    return nullptr;
                }
                const std::uint32_t found = places_[place_of(word)];
                return found != 0 ? &writes_[found - 1] : nullptr;
            }
            [[nodiscard]] Write& at(Bits* word)
            {
                if (2 * (writes_.size() + 1) > places_.size()) {
                    grow();
                }
                std::uint32_t& place = places_[place_of(word)];
                if (place == 0) {
                    writes_.push_back({word, 0, 0});
                    place = static_cast<std::uint32_t>(writes_.size());
                }
                return writes_[place - 1];
            }
            void clear() noexcept
            {
                if (writes_.size() > places_.size() / 16) {
                    std::fill(places_.begin(), places_.end(), 0);
                } else {
                    // The last ones first: those that lie before it on its way are still there.
                    for (std::size_t i = writes_.size(); i > 0; --i) {
                        places_[place_of(writes_[i - 1].word)] = 0;
                    }
                }
                writes_.clear();
            }
            [[nodiscard]] const std::vector<Write>& all() const noexcept { return writes_; }

        private:
            /// The word's place, or the free one where it belongs.
            [[nodiscard]] std::size_t place_of(const Bits* word) const noexcept
            {
                const std::size_t last = places_.size() - 1;
                std::size_t place = reinterpret_cast<std::uintptr_t>(word) * 0x9e3779b97f4a7c15u >> 32 & last;
                while (places_[place] != 0 && writes_[places_[place] - 1].word != word) {
                    place = (place + 1) & last;
                }
                return place;
            }
            void grow()
            {
                places_.assign(std::max<std::size_t>(64, 2 * places_.size()), 0);
                for (std::size_t i = 0; i < writes_.size(); ++i) {
                    places_[place_of(writes_[i].word)] = static_cast<std::uint32_t>(i + 1);
                }
            }

            std::vector<Write> writes_;
            std::vector<std::uint32_t> places_;  ///< one more than an index, or 0; their number is a power of two
        };
        struct Held {
            Lock* lock;
            std::uint64_t before;
        };
        struct Freed {
            void* block;
            std::uint64_t version;
        };

        void begin() noexcept
        {
            // Either a commit that frees memory sees this transaction when it looks for running ones, or the clock has moved here.
            do {
                snapshot_ = clock_.load();
                running_since_->store(snapshot_ + 1);
            } while (clock_.load() != snapshot_);
        }
        [[nodiscard]] Bits read_word(Bits& word)
        {
            Lock& lock = lock_of(&word);
            for (;;) {
                const std::uint64_t before = lock.load(std::memory_order_acquire);
                const Bits bits = std::atomic_ref(word).load(std::memory_order_acquire);
                if ((before & 1) != 0 || lock.load(std::memory_order_relaxed) != before) {
                    throw Conflict{};
                }
                if (before / 2 <= snapshot_) {
                    read_.push_back(&lock);
                    return bits;
                }
                move_snapshot();
            }
        }
        void move_snapshot()
        {
            const std::uint64_t now = clock_.load(std::memory_order_acquire);
            check_reads();
            snapshot_ = now;
        }
        /// Nothing that was read has changed since the snapshot.
        void check_reads() const
        {
            const std::uint64_t mine = mark();
            for (const Lock* lock : read_) {
                const std::uint64_t seen = lock->load(std::memory_order_acquire);
                if (seen != mine && ((seen & 1) != 0 || seen / 2 > snapshot_)) {
                    throw Conflict{};
                }
            }
        }
        [[nodiscard]] std::uint64_t mark() const noexcept { return reinterpret_cast<std::uintptr_t>(this) | 1; }

        void commit()
        {
            if (!writes_.all().empty()) {
                take_locks();
                const std::uint64_t version = clock_.fetch_add(1) + 1;
                if (version != snapshot_ + 1) {
                    check_reads();
                }
                for (const Write& write : writes_.all()) {
                    std::atomic_ref word(*write.word);
                    word.store((word.load(std::memory_order_relaxed) & ~write.mask) | write.bits, std::memory_order_release);
                }
                for (const Held& held : held_) {
                    held.lock->store(2 * version, std::memory_order_release);
                }
                held_.clear();
                for (void* block : freed_) {
                    waiting_.push_back({block, version});
                }
            }
            allocated_.clear();
            end();
            release_freed();
        }
        void take_locks()
        {
            for (const Write& write : writes_.all()) {
                Lock& lock = lock_of(write.word);
                std::uint64_t seen = lock.load(std::memory_order_relaxed);
                if (seen == mark()) {
                    continue;
                }
                if ((seen & 1) != 0 || !lock.compare_exchange_strong(seen, mark(), std::memory_order_acq_rel, std::memory_order_relaxed)) {
                    throw Conflict{};
                }
                held_.push_back({&lock, seen});
                if (seen / 2 > snapshot_) {
                    throw Conflict{};  // it may have been read before
                }
            }
        }
        void abort() noexcept
        {
            for (const Held& held : held_) {
                held.lock->store(held.before, std::memory_order_release);
            }
            held_.clear();
            for (void* block : allocated_) {
                std::free(block);
            }
            allocated_.clear();
            end();
        }
        void end() noexcept
        {
            writes_.clear();
            read_.clear();
            freed_.clear();
            running_since_->store(0, std::memory_order_release);
        }
        /// Gives back what no running transaction can have seen.
        void release_freed()
        {
            constexpr std::size_t worth_a_look = 64;
            if (waiting_.size() < worth_a_look) {
                return;
            }
            std::uint64_t oldest = UINT64_MAX;
            const unsigned used = slots_used_.load();
            for (unsigned i = 0; i < used; ++i) {
                // 0 wraps to the greatest number: a thread without a transaction holds nothing back.
                oldest = std::min(oldest, slots()[i].running_since.load() - 1);
            }
            const auto kept = std::find_if(waiting_.begin(), waiting_.end(), [&](const Freed& one) { return one.version > oldest; });
            std::for_each(waiting_.begin(), kept, [](const Freed& one) { std::free(one.block); });
            waiting_.erase(waiting_.begin(), kept);
        }

        std::uint64_t snapshot_ = 0;
        std::atomic<std::uint64_t>* running_since_ = nullptr;
        std::vector<Lock*> read_;
        WriteLog writes_;
        std::vector<Held> held_;
        std::vector<void*> allocated_;
        std::vector<void*> freed_;
        std::vector<Freed> waiting_;  ///< in the order of their versions
    };

private:
    static constexpr unsigned threads_max = 64;
    static constexpr std::size_t locks = std::size_t{1} << 20;
    static constexpr std::size_t bytes_of_a_lock = 32;

    /// A thread's state; a later thread takes it over, with the memory that waits there.
    struct alignas(64) Slot {
        std::atomic<std::uint64_t> running_since;  ///< one more than the clock when the thread's transaction began; 0: it has none
        std::atomic<bool> is_taken;
        Handle handle;
    };
    struct Owner {
        Owner()
        {
            while (slot->is_taken.exchange(true)) {
                if (++slot == slots() + threads_max) {
                    give_up("more threads than the software transactions have room for");
                }
            }
            slot->handle.running_since_ = &slot->running_since;
            const auto number = static_cast<unsigned>(slot - slots()) + 1;
            for (unsigned used = slots_used_.load(); used < number && !slots_used_.compare_exchange_weak(used, number);) {
            }
        }
        Owner(const Owner&) = delete;
        Owner& operator=(const Owner&) = delete;
        ~Owner() { slot->is_taken.store(false); }
        Slot* slot = slots();
    };

    /// Never destroyed: a thread may end after the program's other static objects.
    static Slot* slots()
    {
        static auto* const all = new Slot[threads_max];
        return all;
    }
    static Lock& lock_of(const void* word) noexcept { return table_[reinterpret_cast<std::uintptr_t>(word) / bytes_of_a_lock % locks]; }
    /// Lets the other side of a conflict go on: longer each time, and then without this thread.
    static void wait_after(unsigned attempt) noexcept
    {
        constexpr unsigned spins_doubled_max = 10;
        if (attempt > spins_doubled_max) {
            std::this_thread::yield();
        }
        for (unsigned i = 0; i < 1u << std::min(attempt, spins_doubled_max); ++i) {
            std::atomic_signal_fence(std::memory_order_seq_cst);  // so that the loop stays
        }
    }

    alignas(64) inline static std::atomic<std::uint64_t> clock_{0};
    inline static Lock table_[locks];
    inline static std::atomic<unsigned> slots_used_{0};  ///< from the first one on
};

}  // namespace bench
