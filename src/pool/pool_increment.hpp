#pragma once
// An increment of a pool's file: what has changed since an earlier copy, or since an earlier increment, while a program may have it open.

#include <memory>
#include <optional>
#include <string>

#include "media/increment_file.hpp"
#include "media/medium.hpp"
#include "media/pool_file_copy.hpp"
#include "os/descriptor.hpp"
#include "pool/pool.hpp"

namespace stillpoint {

/// The state of the file of a pool, but for its digest, which is 0. Errors: pool_corrupt, io.
[[nodiscard]] Result<layout::FileState> state_of(const Pool& pool);

/// The state that an increment is added to. A whole copy stays locked, and must not be opened, while this lives.
struct IncrementBase {
    /// A copy of a pool, or an increment. Cost: reads all data of a copy, and the digests of an increment.
    /// Errors: as IncrementFile::open(), open_medium_read_only() and Pool::open(); invalid_argument (it lies in no file).
    [[nodiscard]] static Result<IncrementBase> read(const std::string& path);

    std::string path;
    IncrementedPool pool;
    layout::FileState state;
    PageDigests digests;
    os::Descriptor file;  ///< of a whole copy; not valid where the base is an increment
    std::optional<Pool> opened;  ///< of a whole copy: keeps its lock
};

struct IncrementRequest {
    std::string path;  ///< of the pool
    std::string unfinished;  ///< the name at which it is made
    PoolFileCopyOptions options;
    /// Verifies the pool on a medium that has all of its bytes; nullptr: it is verified when it is restored.
    Result<void> (*verify)(void* context, std::unique_ptr<Medium> medium) = nullptr;
    void* context = nullptr;
};

struct MadeIncrement {
    layout::IncrementHeader header;
    PoolFileCopyFigures figures;
    bool is_verified = false;
};

/// Writes what leads from `base` to one consistent state of the pool, durably. The increment has no name of its own yet; after a failure
/// its file is to be removed. Nothing is verified where a program has the pool open and the base is an increment: the rest of that moment
/// is not at hand. Threads: any, one for each increment. Cost: that of copy_pool_file(), and what differs once more.
/// Errors: as copy_pool_file() and NewIncrement::write(); invalid_argument (the base is of another pool, or of a later state); pool_corrupt
/// (the pool, or what `verify` finds).
[[nodiscard]] Result<MadeIncrement> make_increment(const IncrementRequest& request, const IncrementBase& base, NewIncrement& increment);

}  // namespace stillpoint
