#include "media/rados/cluster_wait.hpp"

#include <algorithm>
#include <cerrno>

#include "media/open.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"

namespace stillpoint::rados {

namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t look_again_ns = 100 * ns_per_ms;
/// A write that takes so long is told of.
constexpr std::uint64_t told_after_ns = 10'000 * ns_per_ms;
/// Likewise where the program ends: its user waits for that.
constexpr std::uint64_t end_told_after_ns = 3'000 * ns_per_ms;

}  // namespace

Result<void> ClusterWait::await(AgentLink& link, std::uint32_t slot, std::string_view path) noexcept
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    while (link.await(slot, os::monotonic_ns() + look_again_ns) && !link.is_done(slot)) {
        const std::uint64_t waited_ns = os::monotonic_ns() - begun_ns;
        const bool is_full = link.state().is_full.load(std::memory_order_acquire) != 0;
        if (max_ms_ != 0 && waited_ns > max_ms_ * ns_per_ms) {
            const auto ended = fail(
                is_full ? SP_E_NO_SPACE : SP_E_IO, is_full ? ENOSPC : ETIMEDOUT,
                "the Ceph cluster {} for {} ms, the longest wait that --cluster-wait-max permits; what was acknowledged is in the pool: "
                "see `ceph health detail`, then start the program again",
                is_full ? "has had no room" : "has taken nothing", waited_ns / ns_per_ms);
            tell_to_end(fail(ended.value().code, ended.value().os_error, "{}: {}", path, ended.value().text()).value());
            return ended;
        }
        if (program_ends()) {
            ending_ns_ = ending_ns_ == 0 ? os::monotonic_ns() : ending_ns_;
            tell_of_end(is_full, path, std::min(waited_ns, os::monotonic_ns() - ending_ns_));
        } else if (!is_told_ && (is_full || waited_ns > told_after_ns)) {
            is_told_ = true;
            os::log(os::Severity::warning,
                    "{}: the Ceph cluster {}: the program goes on, and nothing is acknowledged until it takes writes", path,
                    is_full ? "is full" : "takes nothing, see `ceph health detail`");
        }
    }
    return {};
}

void ClusterWait::tell_of_end(bool is_full, std::string_view path, std::uint64_t waited_ns) noexcept
{
    if (is_end_told_ || (!is_full && waited_ns <= end_told_after_ns)) {
        return;
    }
    is_end_told_ = true;
    is_told_ = true;
    os::log(os::Severity::warning,
            "{}: the program ends, and waits for its last writes, because the Ceph cluster {}; it goes on when the cluster takes "
            "writes; SIGKILL ends it at once, and loses nothing that was acknowledged",
            path, is_full ? "is full: make room" : "takes nothing: see `ceph health detail`");
}

void ClusterWait::end(std::string_view path) noexcept
{
    if (is_told_) {
        is_told_ = false;
        os::log(os::Severity::warning, "{}: the Ceph cluster takes writes again: acknowledgements go on", path);
    }
}

}  // namespace stillpoint::rados
