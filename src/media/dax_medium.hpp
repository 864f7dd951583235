#pragma once
// Persistent memory mapped directly (NVDIMM, CXL): stores reach the medium without the page cache,
// and MAP_SYNC keeps the file system's own records in step with them.

#include <memory>

#include "media/mapped_medium.hpp"

namespace stillpoint {

class DaxMedium final : public MappedMedium {
public:
    /// Errors: unsupported (the file system refuses MAP_SYNC), no_memory, io.
    [[nodiscard]] static Result<std::unique_ptr<Medium>> open(PoolFile file, const MediumOptions& options);

private:
    using MappedMedium::MappedMedium;
    void charge_lines(std::size_t) noexcept override {}
    void charge_pages(std::size_t) noexcept override {}
    [[nodiscard]] std::string_view mechanism_prefix() const noexcept override { return "MAP_SYNC"; }
};

}  // namespace stillpoint
