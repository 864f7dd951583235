#include "media/fault_plan.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "os/environment.hpp"

namespace stillpoint {

namespace {

template <class Value>
struct Named {
    std::string_view name;
    Value value;
};

constexpr Named<FaultPoint> point_names[] = {
    {"read", FaultPoint::read},          {"write", FaultPoint::write},     {"sync", FaultPoint::sync},
    {"fallocate", FaultPoint::allocate}, {"persist", FaultPoint::persist},
};

constexpr Named<Fault> fault_names[] = {
    {"EIO", {.error = EIO}},       {"ENOSPC", {.error = ENOSPC}}, {"EDQUOT", {.error = EDQUOT}},         {"EINTR", {.error = EINTR}},
    {"EAGAIN", {.error = EAGAIN}}, {"EROFS", {.error = EROFS}},   {"EOPNOTSUPP", {.error = EOPNOTSUPP}}, {"short", {.cut_short = true}},
    {"kill", {.kill = true}},
};

template <class Value, std::size_t count>
std::optional<Value> find(const Named<Value> (&table)[count], std::string_view name) noexcept
{
    for (const auto& entry : table) {
        if (entry.name == name) {
            return entry.value;
        }
    }
    return std::nullopt;
}

/// Cuts `text` at the first `mark`; the part before it is returned, `text` keeps the rest.
std::string_view take_until(std::string_view& text, char mark) noexcept
{
    const std::size_t end = text.find(mark);
    const std::string_view head = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return head;
}

bool is_possible(FaultPoint point, const Fault& fault) noexcept
{
    if (point == FaultPoint::persist) {
        return fault.kill;  // Not a call: there is nothing that could fail.
    }
    return !fault.cut_short || point == FaultPoint::read || point == FaultPoint::write;
}

/// As a crash comes: no handler, no flush, no destructor.
[[noreturn]] void die() noexcept
{
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

/// For a test that counts n upwards: whether there was an n-th call.
void note_met() noexcept
{
    if (const char* const path = os::environment_variable("STILLPOINT_FAULT_MET"); path != nullptr) {
        const os::Descriptor met{::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    }
}

}  // namespace

Result<FaultPlan> FaultPlan::parse(std::string_view text)
{
    FaultPlan plan;
    while (!text.empty()) {
        const std::string_view rule_text = take_until(text, ',');
        std::string_view rest = rule_text;
        const auto point = find(point_names, take_until(rest, ':'));
        const auto fault = find(fault_names, take_until(rest, '@'));
        const std::string_view number = take_until(rest, ':');
        std::uint64_t call = 0;
        const auto parsed = std::from_chars(number.data(), number.data() + number.size(), call);
        const bool number_is_good = parsed.ec == std::errc{} && parsed.ptr == number.data() + number.size() && call > 0;
        if (!point || !fault || !number_is_good || !is_possible(*point, *fault) || (!rest.empty() && rest != "always")) {
            return fail(SP_E_INVALID_ARGUMENT, 0,
                        "fault rule \"{}\" is not understood; write point:what@n[:always] with "
                        "point read, write, sync, fallocate or persist and what EIO, ENOSPC, EDQUOT, EINTR, "
                        "EAGAIN, EROFS, EOPNOTSUPP, kill or (read, write) short, e.g. sync:EIO@2 or "
                        "persist:kill@7",
                        rule_text);
        }
        if (plan.rule_count_ == rules_max) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "more than {} fault rules", rules_max);
        }
        plan.rules_[plan.rule_count_++] = {*point, rest == "always", call, *fault};
    }
    return plan;
}

Result<FaultPlan> FaultPlan::from_environment()
{
    const char* const text = os::environment_variable("STILLPOINT_FAULT");
    if (text == nullptr) {
        return FaultPlan{};
    }
    return parse(text);
}

Fault FaultPlan::next(FaultPoint point) noexcept
{
    if (rule_count_ == 0) {
        return {};
    }
    auto& calls = calls_[static_cast<std::size_t>(point)];
    return obey_rules(point, __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED));
}

Fault FaultPlan::obey_rules(FaultPoint point, std::uint64_t call) noexcept
{
    for (std::size_t i = 0; i < rule_count_; ++i) {
        const Rule& rule = rules_[i];
        if (rule.point == point && (rule.call == call || (rule.always && call > rule.call))) {
            note_met();
            if (rule.fault.kill) {
                die();
            }
            return rule.fault;
        }
    }
    return {};
}

}  // namespace stillpoint
