#pragma once
// How `info` and `check` come to a pool: opened for reading only, by whichever engine it names.

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/pool_part.hpp"
#include "core/result.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::tool {

struct OpenedPool {
    Pool pool;
    const EngineDriver* driver;
};

/// Opens `path` without writing to it. `lock`: refuses a pool that a process has open for writing.
/// Errors: as open_medium_read_only and Pool::open; pool_engine where no engine here knows the pool.
[[nodiscard]] Result<OpenedPool> open_pool_to_read(const std::string& path, bool lock);

/// Opens the pool on a medium, `read_only` or for a change that comes later. Errors: the medium's; as Pool::open; pool_engine.
[[nodiscard]] Result<OpenedPool> open_pool_of(const std::string& path, Result<std::unique_ptr<Medium>> medium, bool read_only);

/// Reports why a pool cannot be looked into: of one that is in use with the way to do it.
int report_unopened(const std::string& path, const Failure& failure);

/// Opens a pool that no program has, for a command that changes its file; opening changes nothing.
/// Errors: as open_medium and Pool::open; pool_engine where no engine here knows the pool.
[[nodiscard]] Result<OpenedPool> open_pool_to_change(const std::string& path);

/// A cell of what the engine shows (EngineFacts), kept.
struct KeptFact {
    std::uint64_t number;
    std::string text;
};
using FactRow = std::vector<KeptFact>;

/// The result of reading the whole pool.
struct Verification {
    RecoveryReport recovery;
    std::uint64_t handles = 0;
    std::string data_layout;  ///< NAME:NUMBER of the program's data; empty: none is stated
    std::vector<FactRow> facts;  ///< the rows of the driver's `facts`
    std::vector<Failure> damages;  ///< the first of them; `damage_count` is how many there are
    std::uint64_t damage_count = 0;
    std::vector<PoolPart> damage_parts;  ///< of each of `damages`
    std::array<std::uint64_t, pool_parts> damages_by_part{};
    std::array<bool, pool_parts> examined{};
    bool ended_early = false;  ///< nothing could be examined after the last of `damages`
    std::vector<Failure> remarks;  ///< what is damaged and has a second copy that serves
};

struct HandleFacts {
    std::string handle;
    std::uintptr_t address;
    std::uint64_t size_bytes;
};

/// Verifies every checksum and invariant: the engine's areas, the image header, the handle directory
/// and the heap's tables, and that each handle names a live block.
/// Prints a line of progress where standard error is a terminal and `progress`.
/// `visit` (may be empty) sees each handle. Errors: pool_corrupt, the first finding; io.
[[nodiscard]] Result<Verification> verify(const OpenedPool& opened, bool progress, const std::function<void(const HandleFacts&)>& visit);

/// The recovered image, mapped at some address until the visit ends, with what the engine shows of it.
struct RecoveredImage {
    std::byte* base;
    std::uint64_t bytes;
    const std::vector<FactRow>& facts;
};
using ImageVisitor = std::function<void(const RecoveredImage&)>;

/// Verifies as above, but continues after damage, which is a result. Errors: io; pool_corrupt where nothing can be read.
/// `visit_image` (may be empty) sees the image if its header is sound. `failure_is_a_finding`: pool_corrupt is the last finding instead.
[[nodiscard]] Result<Verification> verify_all(const OpenedPool& opened, bool progress, const std::function<void(const HandleFacts&)>& visit,
                                              const ImageVisitor& visit_image = {}, bool failure_is_a_finding = false);

/// Prints a line of progress, a few times a second; nullptr unless standard error is a terminal and `wanted`.
using ProgressLine = void (*)(std::uint64_t done, std::uint64_t total);
[[nodiscard]] ProgressLine progress_line(bool wanted);
void erase(ProgressLine progress);

/// "1.5 GiB", "64 MiB", "4096 B".
[[nodiscard]] std::string size_text(std::uint64_t bytes);
/// "2026-11-28 16:10:00 +0000", in the user's time zone.
[[nodiscard]] std::string local_time_text(std::uint64_t unix_seconds);

}  // namespace stillpoint::tool
