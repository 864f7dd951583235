#pragma once
// Names of pools in Ceph's object store: rados://CEPHPOOL/NAME, with ?conf=FILE and &id=USER where the cluster is not the usual one.

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace stillpoint {

struct RadosName {
    static constexpr std::size_t part_bytes_max = 127;
    static constexpr std::size_t file_bytes_max = 1023;

    std::string ceph_pool;
    std::string name;
    std::string configuration;  ///< a file; empty: where librados looks
    std::string user;           ///< without "client."; empty: admin
};

/// Whether this is such a name, perhaps a malformed one, and no path of a file. Any thread; no malloc.
[[nodiscard]] constexpr bool is_rados_name(std::string_view path) noexcept { return path.starts_with("rados://"); }

/// Errors: invalid_argument.
[[nodiscard]] Result<RadosName> parse_rados_name(std::string_view path);
/// As parse_rados_name(), of a Ceph pool alone: a name in it is left out, and may be anything.
[[nodiscard]] Result<RadosName> parse_ceph_pool(std::string_view path);

}  // namespace stillpoint
