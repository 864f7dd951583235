#pragma once
// A plan of what happens to the objects of each type when a pool is converted for another program. It collects what has no place there.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engines/breeze/pool_parts.hpp"
#include "engines/breeze/type_change.hpp"

namespace stillpoint::breeze {

class ConversionPlan {
public:
    /// Compares the types of a pool's objects with those of a program. Errors: invalid_argument (a drop names no field that is gone),
    /// pool_full (no room for the types' records).
    [[nodiscard]] Result<void> prepare(PoolParts& pool, NewTypes program);

    [[nodiscard]] const TypeChange* change_of(const Type& type) const noexcept;
    /// The records of the new pool's types.
    [[nodiscard]] const std::vector<std::byte>& records() const noexcept { return records_; }
    [[nodiscard]] bool has_pinned() const noexcept { return has_pinned_; }
    /// Writes the values of the object to zeroed bytes; its pointers are not changed.
    void convert(PoolParts& pool, std::uint64_t block, const TypeChange& change, std::byte* made);
    /// Something of that object has no place.
    void tell_of(PoolParts& pool, std::uint64_t block, const std::string& text);
    [[nodiscard]] ConversionReport& report() noexcept { return report_; }

private:
    void compare(const std::shared_ptr<const Type>& type, ConvertedType counted);
    /// The first structure in it that the program describes in another way; empty: there is none.
    [[nodiscard]] std::string changed_structure_in(const Type& type) const;
    void add_record(const Type& type);

    NewTypes program_;
    std::map<const Type*, std::unique_ptr<TypeChange>> changes_;
    std::vector<std::uint32_t> recorded_;
    std::vector<std::byte> records_;
    bool has_pinned_ = false;
    ConversionReport report_;
};

}  // namespace stillpoint::breeze
