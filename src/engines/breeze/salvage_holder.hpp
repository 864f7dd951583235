#pragma once
// The object that a salvage adds to a pool: it holds those that nothing else leads to any more. Its type is pinned, so that it lives until
// a program frees it.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "engines/breeze/types.hpp"

namespace stillpoint::breeze {

class SalvageHolder {
public:
    /// As a program would write it: struct stillpoint_salvaged { uint64_t count; void* objects[]; };
    static constexpr const char* type_name = "stillpoint_salvaged";

    /// Errors: no_memory.
    [[nodiscard]] static Result<SalvageHolder> make();
    /// The size of one that holds so many objects, and the place of the pointer to that one.
    [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t objects) noexcept { return (1 + objects) * sizeof(std::uint64_t); }
    [[nodiscard]] std::uint32_t id() const noexcept { return type_->id; }
    [[nodiscard]] const std::vector<std::byte>& record() const noexcept { return type_->record; }

private:
    explicit SalvageHolder(std::shared_ptr<const Type> type) noexcept : type_(std::move(type)) {}
    std::shared_ptr<const Type> type_;
};

}  // namespace stillpoint::breeze
