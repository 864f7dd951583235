// The facts of a Ceph cluster: asked of its monitors, and tried with an object that is removed again.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include <nlohmann/json.hpp>

#include "os/clock.hpp"
#include "core/units.hpp"
#include "doctor_cluster.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

using Value = nlohmann::json;

constexpr unsigned timeout_s = 10;
constexpr int erasure_coded_type = 3;

/// With these an OSD acknowledges what it has not stored: switches for Ceph's own tests. By their value.
constexpr std::pair<std::string_view, std::string_view> losing_settings[] = {
    {"osd_objectstore", "memstore"},
    {"objectstore_blackhole", "true"},
    {"bluestore_debug_omit_block_device_write", "true"},
    {"bluestore_debug_omit_kv_commit", "true"},
    {"filestore_blackhole", "true"},
};

/// Nothing: the user may not ask, which `facts.unknown` then says.
std::optional<Value> ask(RadosConnection& connection, ClusterFacts& facts, std::string_view question, std::string_view arguments = {})
{
    const auto answer = connection.ask_monitor(text_of(R"({{"prefix":"{}","format":"json"{}}})", question, arguments));
    if (answer.error != 0) {
        facts.unknown.emplace_back(question);
        return std::nullopt;
    }
    return Value::parse(answer.text);
}

bool has_word(const std::string& list, std::string_view word)
{
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        if (std::string_view(list).substr(begin, end - begin) == word) {
            return true;
        }
        begin = end + 1;
    }
    return false;
}

void read_erasure_code(RadosConnection& connection, ClusterFacts& facts, const Value& pool)
{
    facts.overwrites = has_word(pool.value("flags_names", ""), "ec_overwrites");
    const std::string profile = pool.value("erasure_code_profile", "");
    if (const auto code = ask(connection, facts, "osd erasure-code-profile get", text_of(R"(,"name":{})", Value(profile).dump()))) {
        facts.data_chunks = static_cast<unsigned>(std::stoul(code->value("k", "1")));
    }
}

void read_pool(RadosConnection& connection, ClusterFacts& facts, const Value& pool)
{
    facts.pool_exists = true;
    facts.erasure_coded = pool.value("type", 1) == erasure_coded_type;
    facts.size = pool.value("size", 0u);
    facts.min_size = pool.value("min_size", 0u);
    const std::string flags = pool.value("flags_names", "");
    facts.pool_full = has_word(flags, "full") || has_word(flags, "full_quota");
    if (facts.erasure_coded) {
        read_erasure_code(connection, facts, pool);
    }
    const int rule_wanted = pool.value("crush_rule", -1);
    const auto rules = ask(connection, facts, "osd crush rule dump");
    for (const Value& rule : rules.value_or(Value::array())) {
        for (const Value& step : rule.value("rule_id", -2) == rule_wanted ? rule.value("steps", Value::array()) : Value::array()) {
            if (step.value("op", "").starts_with("choose")) {
                facts.failure_domain = step.value("type", "");
            }
        }
    }
}

void read_map(RadosConnection& connection, ClusterFacts& facts, const Value& map)
{
    for (const Value& pool : map.value("pools", Value::array())) {
        if (pool.value("pool_name", "") == facts.pool) {
            read_pool(connection, facts, pool);
        }
    }
    for (const Value& osd : map.value("osds", Value::array())) {
        facts.osds.push_back({osd.value("osd", 0), osd.value("up", 0) != 0, {}, {}, {}, false});
    }
    const std::string flags = map.value("flags", "");
    facts.paused = has_word(flags, "pausewr") || has_word(flags, "pauserd");
}

void read_osds(RadosConnection& connection, ClusterFacts& facts)
{
    const auto all = ask(connection, facts, "osd metadata");
    for (const Value& metadata : all.value_or(Value::array())) {
        const auto osd = std::ranges::find(facts.osds, metadata.value("id", -1), &OsdFacts::id);
        if (osd != facts.osds.end()) {
            osd->store = metadata.value("osd_objectstore", "");
            osd->host = metadata.value("hostname", "");
            osd->device = metadata.value("bluestore_bdev_devices", metadata.value("devices", ""));
            osd->on_file = metadata.value("bluestore_bdev_access_mode", "") == "file";
        }
    }
}

void read_health(RadosConnection& connection, ClusterFacts& facts)
{
    const auto status = ask(connection, facts, "status");
    for (const Value& state : status ? status->value("/pgmap/pgs_by_state"_json_pointer, Value::array()) : Value::array()) {
        facts.groups[state.value("state_name", "")] += state.value("count", 0u);
    }
    const Value checks = status ? status->value("/health/checks"_json_pointer, Value::object()) : Value::object();
    for (const auto& [name, check] : checks.items()) {
        if (!check.value("muted", false)) {
            facts.health[name] = check.value("/summary/message"_json_pointer, "");
        }
    }
    const auto configuration = ask(connection, facts, "config dump");
    for (const Value& option : configuration.value_or(Value::array())) {
        for (const auto& [name, value] : losing_settings) {
            if (option.value("name", "") == name && option.value("value", "") == value) {
                facts.settings_that_lose.push_back(text_of("{} = {} ({})", name, value, option.value("section", "global")));
            }
        }
    }
}

/// Returns 0, or the errno of the first write that failed.
int measure_writes(RadosConnection& connection, ClusterFacts& facts, const std::string& object, std::uint64_t bytes, unsigned writes)
{
    std::string content(bytes, '\0');
    std::minstd_rand random(static_cast<unsigned>(os::monotonic_ns()));
    std::ranges::generate(content, [&] { return static_cast<char>(random()); });  // No store compresses it.
    std::vector<std::uint64_t> times;
    for (unsigned i = 0; i < writes; ++i) {
        const std::uint64_t begin = os::monotonic_ns();
        if (const int error = connection.write_object(object, content); error != 0) {
            return error;
        }
        times.push_back(os::monotonic_ns() - begin);
    }
    std::ranges::sort(times);
    facts.latencies.push_back({bytes, writes, times[times.size() / 2], times.back()});
    return 0;
}

void try_operations(RadosConnection& connection, ClusterFacts& facts)
{
    std::random_device random;
    const std::string object = text_of("stillpoint-doctor.{}.{:08x}", getpid(), random());
    facts.block_list_error = connection.try_block_list();
    facts.write_error = measure_writes(connection, facts, object, 4 * kib, 20);
    if (*facts.write_error == 0) {
        facts.lock_error = connection.try_lock(object);
        facts.write_error = measure_writes(connection, facts, object, 4 * mib, 5);
        (void)connection.remove_object(object);
    }
}

/// A write that the cluster holds back would only be given up after its time.
bool writes_are_held_back(const ClusterFacts& facts)
{
    const auto up = std::ranges::count_if(facts.osds, &OsdFacts::up);
    return facts.paused || facts.pool_full || facts.health.contains("OSD_FULL") || static_cast<unsigned>(up) < facts.min_size;
}

}  // namespace

Result<ClusterFacts> probe_cluster(const ClusterName& name)
{
    auto connection = RadosConnection::open(name, timeout_s);
    if (!connection) {
        return pass_on(connection.error());
    }
    ClusterFacts facts;
    facts.user = "client." + name.user;
    facts.pool = name.ceph_pool;
    try {
        const auto map = ask(**connection, facts, "osd dump");
        if (!map) {
            return fail(SP_E_POOL_READ_ONLY, EACCES, "{} may not read the cluster's map; give it the right: {}", facts.user,
                        command_for_rights(facts));
        }
        facts.fsid = map->value("fsid", "");
        read_map(**connection, facts, *map);
        read_osds(**connection, facts);
        read_health(**connection, facts);
    } catch (const std::exception& error) {  // of the JSON library, or of std::stoul
        return fail(SP_E_IO, 0, "an answer of the cluster cannot be understood: {}", error.what());
    }
    if (facts.pool_exists && !writes_are_held_back(facts)) {
        if (const int error = (*connection)->open_pool(facts.pool); error != 0) {
            facts.write_error = error;
        } else {
            try_operations(**connection, facts);
        }
    }
    return facts;
}

}  // namespace stillpoint::tool
