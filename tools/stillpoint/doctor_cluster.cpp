// `stillpoint doctor rados://CEPHPOOL`: what a Ceph cluster can honestly promise.

#include "doctor_cluster.hpp"

#include <algorithm>
#include <cerrno>

#include "json.hpp"
#include "media/rados/rados_name.hpp"
#include "output.hpp"
#include "pool_access.hpp"
#include "report.hpp"
#include "exit_codes.hpp"

namespace stillpoint::tool {

namespace {

const char* word_of(Finding::Severity severity) { return severity == Finding::Severity::error ? "error" : "warning"; }

std::string try_text(const std::optional<int>& error, std::string_view yes)
{
    return !error ? "not tried" : *error == 0 ? std::string(yes) : std::string("no");
}

std::string osds_text(const ClusterFacts& facts)
{
    std::map<std::string, unsigned> stores;
    unsigned up = 0;
    for (const OsdFacts& osd : facts.osds) {
        ++stores[osd.store.empty() ? "store not known" : printable(osd.store)];
        up += osd.up ? 1 : 0;
    }
    std::string text = text_of("{} of {} up", up, facts.osds.size());
    for (const auto& [store, count] : stores) {
        text += text_of(", {} {}", count, store);
    }
    return text;
}

void print_facts(const ClusterFacts& facts)
{
    print("cluster {}\n", printable(facts.fsid));
    print("  user                    {}\n", facts.user);
    print("  OSDs                    {}\n", osds_text(facts));
    for (const auto& [state, count] : facts.groups) {
        print("  placement groups        {} {}\n", count, printable(state));
    }
    if (!facts.pool_exists) {
        return;
    }
    print("pool {}\n", facts.pool);
    print("  type                    {}\n", facts.erasure_coded
                                                ? text_of("erasure coded, {} data chunks of {}", facts.data_chunks, facts.size)
                                                : text_of("replicated, {} copies", facts.size));
    print("  min_size                {}\n", facts.min_size);
    print("  failure domain          {}\n", facts.failure_domain.empty() ? "not known" : printable(facts.failure_domain));
    print("  may write, lock         {}, {}\n", try_text(facts.write_error, "yes"), try_text(facts.lock_error, "yes"));
    print("  may block other clients {}\n", try_text(facts.block_list_error, "yes"));
    for (const WriteLatency& latency : facts.latencies) {
        print("  a write of {:<13}{:.2f} ms (median of {}; slowest {:.2f} ms), on every replica\n", size_text(latency.bytes),
              static_cast<double>(latency.median_ns) / 1e6, latency.writes, static_cast<double>(latency.slowest_ns) / 1e6);
    }
}

void print_verdict(const ClusterVerdict& verdict)
{
    print("a pool here               {}\n", !verdict.pool_possible ? "no"
                                            : verdict.durable      ? "yes"
                                                                   : "yes, but what it acknowledges can be lost");
    if (verdict.pool_possible && verdict.durable) {
        print("  survives                the loss of {} at once, {}\n",
              verdict.losses_survived == 1 ? "one OSD" : text_of("{} OSDs", verdict.losses_survived),
              verdict.losses_writable == 0 ? "and waits until it is back" : text_of("and goes on with {} down", verdict.losses_writable));
        for (const std::string& condition : verdict.conditions) {
            print("    provided that         {}\n", condition);
        }
        print("  take-over               {}\n", verdict.can_take_over ? "yes: this user can shut out an owner that is lost" : "no");
    }
    for (const Finding& finding : verdict.findings) {
        print("{}: {}\n  {}\n", word_of(finding.severity), printable(finding.text), printable(finding.advice));
    }
}

void add_cluster(Json& json, const ClusterFacts& facts)
{
    json.begin_object("cluster").text("fsid", facts.fsid).text("user", facts.user).begin_array("osds");
    for (const OsdFacts& osd : facts.osds) {
        json.begin_object()
            .number("id", osd.id)
            .boolean("up", osd.up)
            .text("store", osd.store)
            .text("host", osd.host)
            .text("device", osd.device)
            .boolean("on_file", osd.on_file)
            .end_object();
    }
    json.end_array().begin_array("placement_groups");
    for (const auto& [state, count] : facts.groups) {
        json.begin_object().text("state", state).number("count", count).end_object();
    }
    json.end_array().end_object();
}

void add_pool(Json& json, const ClusterFacts& facts)
{
    json.begin_object("pool").text("name", facts.pool).boolean("exists", facts.pool_exists);
    if (facts.pool_exists) {
        json.text("type", facts.erasure_coded ? "erasure" : "replicated")
            .number("size", facts.size)
            .number("min_size", facts.min_size)
            .number("data_chunks", facts.data_chunks)
            .boolean("overwrites", facts.overwrites)
            .text("failure_domain", facts.failure_domain);
    }
    const std::pair<std::string_view, std::optional<int>> tried[] = {
        {"may_write", facts.write_error}, {"may_lock", facts.lock_error}, {"may_block", facts.block_list_error}};
    for (const auto& [name, error] : tried) {
        if (error) {
            json.boolean(name, *error == 0);
        }
    }
    json.begin_array("write_latencies");
    for (const WriteLatency& latency : facts.latencies) {
        json.begin_object()
            .number("bytes", latency.bytes)
            .number("writes", latency.writes)
            .number("median_ns", latency.median_ns)
            .number("slowest_ns", latency.slowest_ns)
            .end_object();
    }
    json.end_array().end_object();
}

void add_verdict(Json& json, const ClusterVerdict& verdict)
{
    json.begin_object("verdict")
        .boolean("pool_possible", verdict.pool_possible)
        .boolean("durable", verdict.durable)
        .boolean("can_take_over", verdict.can_take_over)
        .number("losses_survived", verdict.losses_survived)
        .number("losses_writable", verdict.losses_writable)
        .begin_array("conditions");
    for (const std::string& condition : verdict.conditions) {
        json.element(condition);
    }
    json.end_array().begin_array("findings");
    for (const Finding& finding : verdict.findings) {
        json.begin_object()
            .text("severity", word_of(finding.severity))
            .text("name", finding.name)
            .text("text", finding.text)
            .text("advice", finding.advice)
            .end_object();
    }
    json.end_array().end_object();
}

bool is_forbidden(const std::optional<int>& error) { return error == EPERM || error == EACCES; }

int exit_code_of(const ClusterFacts& facts, const ClusterVerdict& verdict)
{
    if (verdict.pool_possible && verdict.durable) {
        return exit_codes::ok;
    }
    if (!facts.pool_exists) {
        return exit_codes::no_input;
    }
    return is_forbidden(facts.write_error) || is_forbidden(facts.lock_error) ? exit_codes::no_permission : exit_codes::unavailable;
}

}  // namespace

int doctor_cluster(std::string_view place, bool as_json)
{
    const auto name = parse_ceph_pool(place);
    if (!name) {
        return report_error(exit_codes::usage, name.error().text());
    }
    const auto facts = probe_cluster({name->ceph_pool, name->configuration, name->user.empty() ? "admin" : name->user});
    if (!facts) {
        return report_failure(facts.error());
    }
    const ClusterVerdict verdict = judge_cluster(*facts);
    const int code = exit_code_of(*facts, verdict);
    if (!as_json) {
        print_facts(*facts);
        print_verdict(verdict);
        return code;
    }
    Json json;
    json.begin_object();
    add_cluster(json, *facts);
    add_pool(json, *facts);
    add_verdict(json, verdict);
    answer(std::move(json));
    if (code == exit_codes::ok) {
        return code;
    }
    const auto first = std::ranges::find(verdict.findings, Finding::Severity::error, &Finding::severity);
    return report_error(code, text_of("rados://{}: {}", facts->pool, first->text), {.next = first->advice});
}

}  // namespace stillpoint::tool
