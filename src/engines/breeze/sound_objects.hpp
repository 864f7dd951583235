#pragma once
// Proofs that a damaged pool still has of its objects. Their headers have checks, which are bound to the place and to the pool; their own
// bytes have none. So an object is sound if its header is, its type is described, and its transaction has ended; a strong pointer of it is
// sound if it leads into such an object. Counts of references say where pointers to an object are too many or too few.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "engines/breeze/pool_parts.hpp"
#include "os/reserved_array.hpp"
#include "runtime/salvage.hpp"

namespace stillpoint::breeze {

class SoundObjects {
public:
    /// `pool` outlives it, was opened for a salvage, and is not changed meanwhile but for counts.
    explicit SoundObjects(PoolParts& pool) noexcept : pool_(pool) {}

    /// Examines every block. One thread. Errors: no_memory.
    [[nodiscard]] Result<void> find();

    [[nodiscard]] bool has(std::uint64_t block) const noexcept { return kept_[block / granule_bytes] != 0; }
    /// The sound object that a pointer leads into; 0: none.
    [[nodiscard]] std::uint64_t target_of(std::uint64_t pointer) const noexcept;
    /// 0: there was none, or it is lost.
    [[nodiscard]] std::uint64_t root() const noexcept { return root_; }
    /// Pointers of sound objects that lead to it, and the root.
    [[nodiscard]] std::uint64_t references(std::uint64_t block) const noexcept { return references_[block / granule_bytes]; }
    /// That no object has had, as far as the pool says.
    [[nodiscard]] std::uint64_t next_version() const noexcept;
    template <class Visit>
    void visit(Visit&& visit) const
    {
        for (std::uint64_t number = 0; number < pool_.zones.count(); ++number) {
            pool_.zones.visit_blocks(number, [&](std::uint64_t block) {
                if (has(block)) {
                    visit(block);
                }
            });
        }
    }
    /// With the places of the damaged pool only.
    [[nodiscard]] ObjectSalvage& report() noexcept { return report_; }

private:
    void find_newest_transactions();
    enum class Outcome : std::uint8_t { ended, unfinished, unknown };
    /// Why the block is not a sound object; empty: it is free. nullptr: it is one.
    [[nodiscard]] const char* verdict(std::uint64_t block) const noexcept;
    /// How the transaction ended that made the object.
    [[nodiscard]] Outcome outcome_of(const ObjectHeader& header) const noexcept;
    void count_pointers(std::uint64_t block);
    void find_root();
    void leave_out_dead();
    void check_count(std::uint64_t block);
    [[nodiscard]] std::uint64_t counted(std::uint64_t block) const noexcept
    {
        return references_in(load_word(pool_.memory.object(block).counts));
    }

    PoolParts& pool_;
    ObjectSalvage report_;
    os::ReservedArray<std::uint8_t> kept_;  ///< by granule of the object's header
    os::ReservedArray<std::uint64_t> references_;  ///< likewise; of lost objects too
    std::array<std::uint64_t, logs_max> newest_{};  ///< transaction of each log that an object names
    std::uint64_t newest_version_ = 0;
    std::uint64_t root_ = 0;
    bool root_is_counted_ = false;  ///< its object's count has room for the root's reference
};

}  // namespace stillpoint::breeze
