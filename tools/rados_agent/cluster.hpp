#pragma once
// A connection to a Ceph cluster and one of its pools, and the meaning of librados's errors to a user.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <rados/librados.h>

#include "core/result.hpp"
#include "head.hpp"
#include "lock_calls.hpp"

namespace stillpoint::rados {

struct ClusterPlace {
    std::string ceph_pool;
    std::string name;
    std::string user;           ///< empty: admin
    std::string configuration;  ///< empty: where librados looks
    std::uint32_t timeout_ms = 0;
};

struct WriteOpDeleter {
    void operator()(void* op) const noexcept { rados_release_write_op(op); }
};
using WriteOp = std::unique_ptr<void, WriteOpDeleter>;
[[nodiscard]] inline WriteOp new_write_op() { return WriteOp(rados_create_write_op()); }
/// Adds a call of the class "lock" to an operation.
void add_lock_call(const WriteOp& op, const char* method, const std::string& message);
/// Adds a comparison of the head with `text`: where another is there, nothing of the operation happens.
void add_comparison(const WriteOp& op, const std::string& text);
void add_head(const WriteOp& op, const std::string& text);

/// All of a pool's first object but its bytes.
struct HeadState {
    std::string text;
    std::optional<Head> head;  ///< nothing: there is no pool
    LockState lock;
};

class Cluster {
public:
    /// Errors: timed_out, pool_read_only (no permission), invalid_argument (no such Ceph pool), io.
    [[nodiscard]] static Result<std::unique_ptr<Cluster>> connect(ClusterPlace place);
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    [[nodiscard]] rados_ioctx_t io() const noexcept { return io_; }
    [[nodiscard]] const ClusterPlace& place() const noexcept { return place_; }
    /// "rados://POOL/NAME".
    [[nodiscard]] std::string title() const;
    [[nodiscard]] std::string object_name(std::uint64_t index) const;
    /// This client, as the cluster's block list takes it. Errors: io.
    [[nodiscard]] Result<std::string> address() const;
    struct Redundancy {
        std::uint32_t copies = 0;  ///< 0: not known; pieces of each object where it is erasure coded
        bool is_erasure_coded = false;
    };
    [[nodiscard]] Redundancy redundancy() const;

    /// The head and, `with_lock`, its lock, read in one operation; the lock takes the right to call classes (x).
    /// Errors: pool_version, pool_corrupt, pool_read_only, io.
    [[nodiscard]] Result<HeadState> read_head(bool with_lock) const;
    /// The negative errno, or 0.
    [[nodiscard]] int operate(const WriteOp& op, std::uint64_t index) const;
    /// No operation of that client happens any more, once this has returned, on any object that this client has used since.
    /// Errors: pool_read_only (no permission), io.
    [[nodiscard]] Result<void> block(const std::string& address) const;
    /// Removes all objects of a pool of that size. Errors: io.
    [[nodiscard]] Result<void> remove_objects(std::uint64_t size_bytes, bool with_the_first) const;

    /// The meaning of a negative errno of `action`.
    [[nodiscard]] Failure failure_of(int error, std::string_view action) const;

private:
    Cluster() = default;
    [[nodiscard]] std::string property_of_pool(std::string_view variable) const;
    ClusterPlace place_;
    rados_t cluster_ = nullptr;
    rados_ioctx_t io_ = nullptr;
};

inline constexpr const char* lock_name = "stillpoint";
inline constexpr const char* lock_cookie = "owner";

}  // namespace stillpoint::rados
