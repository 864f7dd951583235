#pragma once
// The facts that `doctor rados://CEPHPOOL` finds of a Ceph cluster, and the conclusions from them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "rados_library.hpp"

namespace stillpoint::tool {

struct OsdFacts {
    int id = 0;
    bool up = false;
    std::string store;              ///< "bluestore", "memstore", ...; empty: not known
    std::string host;
    std::string device;             ///< below it, as the OSD names it; empty: none, as for memory
    bool on_file = false;           ///< BlueStore on a file of a file system
};

/// How long one write took until every replica had it.
struct WriteLatency {
    std::uint64_t bytes = 0;
    unsigned writes = 0;
    std::uint64_t median_ns = 0;
    std::uint64_t slowest_ns = 0;
};

struct ClusterFacts {
    std::string fsid;
    std::string user;  ///< as Ceph names it: client.NAME
    std::string pool;
    bool pool_exists = false;
    bool erasure_coded = false;
    bool overwrites = true;          ///< a part of an object can be written
    unsigned size = 0;               ///< copies, or chunks
    unsigned min_size = 0;           ///< with so many left it still takes writes
    unsigned data_chunks = 1;        ///< so many of `size` are enough to read
    std::string failure_domain;      ///< "host", "osd", ...; empty: not known
    bool pool_full = false;
    bool paused = false;             ///< the whole cluster: ceph osd pause
    std::vector<OsdFacts> osds;
    std::map<std::string, unsigned> groups;  ///< placement groups of the whole cluster by state
    std::map<std::string, std::string> health;  ///< checks that do not hold, and their words
    std::vector<std::string> settings_that_lose;  ///< option=value of the cluster's configuration
    std::vector<std::string> unknown;  ///< questions that the cluster did not answer this user
    // Tried with an object that is removed again; errno, 0: it went well. Nothing: not tried.
    std::optional<int> write_error;
    std::optional<int> lock_error;
    std::optional<int> block_list_error;
    std::vector<WriteLatency> latencies;
};

/// Asks and tries. Errors: as RadosConnection::open(); io (an answer cannot be understood).
[[nodiscard]] Result<ClusterFacts> probe_cluster(const ClusterName& name);

struct Finding {
    enum class Severity : std::uint8_t {
        error,    ///< no durability can be promised
        warning,  ///< durable, and something is to be known or done
    };
    Severity severity;
    std::string_view name;  ///< for scripts
    std::string text;
    std::string advice;
};

struct ClusterVerdict {
    bool pool_possible = false;  ///< a program can have its pool there now
    bool durable = false;        ///< what it is told is durable survives the loss of an OSD
    bool can_take_over = false;  ///< this user can shut out an owner that is lost
    unsigned losses_survived = 0;  ///< of OSDs at once, without a loss of what was acknowledged
    unsigned losses_writable = 0;  ///< of OSDs at once, with writes going on
    std::vector<Finding> findings;
    std::vector<std::string> conditions;  ///< what cannot be seen from here
};

[[nodiscard]] ClusterVerdict judge_cluster(const ClusterFacts& facts);

/// The command that gives the user the rights for a pool there.
[[nodiscard]] std::string command_for_rights(const ClusterFacts& facts);

/// The command for rados://CEPHPOOL, with ?conf=FILE&id=USER: its exit code.
[[nodiscard]] int doctor_cluster(std::string_view place, bool json);

}  // namespace stillpoint::tool
