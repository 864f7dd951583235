#pragma once
// The few calls of librados that `doctor` makes. The library is loaded when it is needed: the command works where Ceph is not installed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.hpp"

namespace stillpoint::tool {

/// How the cluster is found, as librados finds it.
struct ClusterName {
    std::string ceph_pool;
    std::string configuration;  ///< a file; empty: CEPH_CONF, /etc/ceph/ceph.conf
    std::string user = "admin";
};

/// One connection. Every call ends after `timeout_s` at the latest. One thread.
class RadosConnection {
public:
    /// Errors: unsupported (librados is not installed); timed_out; pool_read_only (the key is refused, or is missing); io.
    [[nodiscard]] static Result<std::unique_ptr<RadosConnection>> open(const ClusterName& name, unsigned timeout_s);
    ~RadosConnection();
    RadosConnection(const RadosConnection&) = delete;
    RadosConnection& operator=(const RadosConnection&) = delete;

    /// The monitor's answer to a command, which is JSON; `error` is its errno.
    struct Answer {
        int error = 0;
        std::string text;
    };
    [[nodiscard]] Answer ask_monitor(const std::string& command);

    // The following return 0, or an errno. open_pool() comes first.
    [[nodiscard]] int open_pool(const std::string& name);
    [[nodiscard]] int write_object(const std::string& name, const std::string& content);
    [[nodiscard]] int remove_object(const std::string& name);
    /// Takes an exclusive lock on the object, and gives it back.
    [[nodiscard]] int try_lock(const std::string& name);
    /// Puts an address of no machine (192.0.2.1, RFC 5737) on the cluster's block list for a second.
    [[nodiscard]] int try_block_list();

private:
    struct Functions;
    RadosConnection();

    std::unique_ptr<Functions> functions_;
    void* cluster_ = nullptr;
    void* pool_ = nullptr;
};

}  // namespace stillpoint::tool
