// The conclusions from the facts of a cluster: each finding with what to do about it, and no promise that is only hoped for.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "doctor_cluster.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

using Severity = Finding::Severity;

class Judge {
public:
    explicit Judge(const ClusterFacts& facts) : facts_(facts), up_(static_cast<unsigned>(std::ranges::count_if(facts.osds, &OsdFacts::up)))
    {
    }

    ClusterVerdict judge() &&
    {
        verdict_.pool_possible = true;
        verdict_.durable = true;
        verdict_.can_take_over = facts_.block_list_error == 0;
        if (!facts_.pool_exists) {
            stops(
                "pool_missing", text_of("the cluster has no pool {}", facts_.pool),
                text_of("make it: ceph osd pool create {0}; ceph osd pool set {0} size 3; ceph osd pool set {0} min_size 2", facts_.pool));
            verdict_.durable = verdict_.can_take_over = false;
            return std::move(verdict_);
        }
        judge_copies();
        judge_stores();
        judge_room();
        judge_groups();
        judge_rights();
        judge_rest();
        verdict_.durable = verdict_.durable && verdict_.pool_possible;
        return std::move(verdict_);
    }

private:
    void add(Severity severity, std::string_view name, std::string text, std::string advice)
    {
        verdict_.findings.push_back({severity, name, std::move(text), std::move(advice)});
    }
    void warn(std::string_view name, std::string text, std::string advice)
    {
        add(Severity::warning, name, std::move(text), std::move(advice));
    }
    /// No program can have its pool there, as it is.
    void stops(std::string_view name, std::string text, std::string advice)
    {
        verdict_.pool_possible = false;
        add(Severity::error, name, std::move(text), std::move(advice));
    }
    /// A program would run, and be told that things are durable which are not.
    void loses(std::string_view name, std::string text, std::string advice)
    {
        verdict_.durable = false;
        add(Severity::error, name, std::move(text), std::move(advice));
    }

    void judge_copies()
    {
        const unsigned needed = facts_.erasure_coded ? facts_.data_chunks : 1;
        const char* const kind = facts_.erasure_coded ? "chunk" : "copy";
        if (facts_.erasure_coded && !facts_.overwrites) {
            stops("no_overwrites", "the pool is erasure coded and takes no writes into the middle of an object",
                  text_of("ceph osd pool set {} allow_ec_overwrites true (BlueStore only); or use a replicated pool", facts_.pool));
        }
        if (facts_.size <= needed) {
            loses("size_1", text_of("there is no spare {}: the loss of one OSD loses the pool", kind),
                  text_of("ceph osd pool set {0} size 3; ceph osd pool set {0} min_size 2", facts_.pool));
        } else if (facts_.min_size <= needed) {
            loses("min_size_1",
                  text_of("min_size {}: the cluster acknowledges writes with no spare {} left, and the next loss loses them",
                          facts_.min_size, kind),
                  text_of("ceph osd pool set {} min_size {}", facts_.pool, needed + 1));
        }
        if (facts_.size > needed && facts_.size == facts_.min_size) {
            warn("stops_at_one_loss", text_of("size and min_size are both {}: acknowledgements stop while one OSD is down", facts_.size),
                 text_of("ceph osd pool set {} size {}", facts_.pool, facts_.size + 1));
        }
        verdict_.losses_survived = facts_.min_size > needed ? facts_.min_size - needed : 0;
        verdict_.losses_writable = facts_.size > facts_.min_size ? facts_.size - facts_.min_size : 0;
        std::set<std::string> hosts;
        for (const OsdFacts& osd : facts_.osds) {
            hosts.insert(osd.host);
        }
        if (facts_.failure_domain == "osd" || (facts_.osds.size() > 1 && hosts.size() == 1)) {
            warn("one_machine",
                 text_of("the {} may all lie on one machine: its loss is the loss of the pool", facts_.erasure_coded ? "chunks" : "copies"),
                 "give the pool a CRUSH rule with the failure domain host: ceph osd pool set POOL crush_rule NAME");
        }
    }

    void judge_stores()
    {
        std::string in_memory;
        std::string on_files;
        for (const OsdFacts& osd : facts_.osds) {
            const bool memory = osd.store == "memstore" || (osd.on_file && osd.device.empty()) || osd.device.starts_with("ram") ||
                                osd.device.starts_with("zram");
            std::string& list = memory ? in_memory : on_files;
            if (memory || osd.on_file) {
                list += text_of("{}osd.{}", list.empty() ? "" : ", ", osd.id);
            }
        }
        if (!in_memory.empty()) {
            loses("acknowledges_from_memory",
                  text_of("{}: keeps its objects in memory, and acknowledges writes that a power cut loses", in_memory),
                  "make these OSDs again with BlueStore on a disk");
        }
        if (!on_files.empty()) {
            verdict_.conditions.push_back(text_of("the file systems below {} pass a sync on to their disks", on_files));
        }
        for (const std::string& setting : facts_.settings_that_lose) {
            loses("acknowledges_unwritten", text_of("the configuration has {}: writes are acknowledged that are not stored", setting),
                  text_of("ceph config rm SECTION {}, with the section in brackets; then restart the OSDs",
                          setting.substr(0, setting.find(' '))));
        }
        verdict_.conditions.emplace_back("the disks of the OSDs honour a flush (this cannot be checked from here)");
        verdict_.conditions.emplace_back(
            "no OSD's own ceph.conf has a switch of Ceph's tests that drops writes (this cannot be seen from here)");
    }

    [[nodiscard]] const std::string* health(std::string_view name) const
    {
        const auto found = facts_.health.find(std::string(name));
        return found == facts_.health.end() ? nullptr : &found->second;
    }

    void judge_room()
    {
        if (facts_.paused) {
            stops("paused", "the cluster is paused: it takes no reads or writes", "ceph osd unpause");
        }
        if (facts_.pool_full || health("OSD_FULL") != nullptr) {
            stops("full", health("OSD_FULL") != nullptr ? *health("OSD_FULL") : text_of("the pool {} is full", facts_.pool),
                  text_of("add OSDs or delete data; a quota: ceph osd pool get-quota {}", facts_.pool));
            return;
        }
        for (const std::string_view name : {"OSD_NEARFULL", "OSD_BACKFILLFULL", "POOL_NEARFULL"}) {
            if (health(name) != nullptr) {
                warn("near_full", *health(name), "add OSDs or delete data before acknowledgements stop; see ceph df");
                return;
            }
        }
    }

    void judge_groups()
    {
        unsigned inactive = 0;
        unsigned degraded = 0;
        for (const auto& [state, count] : facts_.groups) {
            inactive += state.find("active") == std::string::npos || state.starts_with("stale") ? count : 0;
            degraded += state.find("degraded") != std::string::npos || state.find("undersized") != std::string::npos ? count : 0;
        }
        if (up_ < facts_.min_size) {
            stops("too_few_osds", text_of("{} of {} OSDs are up, and a write needs {}", up_, facts_.osds.size(), facts_.min_size),
                  "start the others (ceph osd tree); acknowledgements go on by themselves then");
        } else if (inactive != 0) {
            warn("inactive_groups",
                 text_of("{} placement groups of the cluster are not active: objects in them can be neither read nor written", inactive),
                 "ceph health detail names them; a program waits meanwhile");
        }
        if (degraded != 0) {
            warn("degraded", text_of("{} placement groups of the cluster have fewer copies than they should", degraded),
                 "start the OSDs that are down (ceph osd tree), or wait until the cluster has made copies elsewhere");
        } else if (up_ >= facts_.min_size && up_ < facts_.osds.size()) {
            warn("osd_down", text_of("{} of {} OSDs are up", up_, facts_.osds.size()), "start the others (ceph osd tree)");
        }
    }

    void judge_rights()
    {
        const std::string rights = command_for_rights(facts_);
        if (facts_.write_error.value_or(0) != 0) {
            const int error = *facts_.write_error;
            if (error == EPERM || error == EACCES) {
                stops("may_not_write", text_of("{} may not write to the pool", facts_.user), rights);
            } else if (error == ETIMEDOUT) {
                stops("write_timed_out", "a write was not acknowledged within 10 s", "ceph health detail says what it waits for");
            } else {
                stops("write_failed", text_of("a write failed: {}", std::strerror(error)), "ceph health detail");
            }
            return;
        }
        if (facts_.lock_error.value_or(0) != 0) {
            stops("may_not_lock",
                  text_of("{} cannot lock an object ({}), so it cannot be the one owner of a pool", facts_.user,
                          std::strerror(*facts_.lock_error)),
                  rights);
        }
        if (facts_.block_list_error.value_or(0) != 0) {
            warn("may_not_block",
                 text_of("{} may not put a client on the block list ({}): it cannot take a pool from an owner that is lost", facts_.user,
                         std::strerror(*facts_.block_list_error)),
                 rights);
        }
    }

    void judge_rest()
    {
        if (health("SLOW_OPS") != nullptr) {
            warn("slow", *health("SLOW_OPS"), "ceph health detail names the OSDs; acknowledgements wait for the slowest one");
        }
        for (const std::string& question : facts_.unknown) {
            warn("not_told", text_of("{} may not ask the cluster for '{}', so a part of this is not known", facts_.user, question),
                 text_of("ask as a user who may: rados://{}?id=admin", facts_.pool));
        }
    }

    const ClusterFacts& facts_;
    unsigned up_;
    ClusterVerdict verdict_;
};

}  // namespace

std::string command_for_rights(const ClusterFacts& facts)
{
    return text_of("ceph auth caps {} mon 'profile simple-rados-client-with-blocklist' osd 'allow rwx pool={}'", facts.user, facts.pool);
}

ClusterVerdict judge_cluster(const ClusterFacts& facts) { return Judge(facts).judge(); }

}  // namespace stillpoint::tool
