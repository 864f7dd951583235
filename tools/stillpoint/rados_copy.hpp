#pragma once
// `stillpoint copy` from and to pools in Ceph, which no program has open meanwhile.

#include <string>

#include "media/copied_file.hpp"
#include "media/pool_file_copy.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

/// Takes the bytes of the pool `path` in Ceph into `copy`. The pool cannot be opened for writing meanwhile.
/// Errors: pool_missing, pool_locked, no_space, io and others of open_medium_read_only().
[[nodiscard]] Result<PoolFileCopyFigures> copy_out_of_rados(const std::string& path, CopiedFile& copy);

/// A copy in Ceph that is verified.
struct CopyInRados {
    VerifiedCopy verified;
    std::uint64_t file_bytes;
    PoolFileCopyFigures figures;
};
/// Makes the pool `new_path` in Ceph of the pool `path`, a file or another one in Ceph. It has its name when it is whole and sound.
/// Errors: pool_exists, pool_locked, pool_corrupt, io and others of create_medium() and open_medium_read_only().
[[nodiscard]] Result<CopyInRados> copy_into_rados(const std::string& path, const std::string& new_path, bool progress);

}  // namespace stillpoint::tool
