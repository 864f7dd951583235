#include "head.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "../stillpoint/output.hpp"

namespace stillpoint::rados {

using tool::text_of;

namespace {

constexpr std::size_t text_bytes_max = 4096;

/// Field 22 of /proc/PID/stat, after the name, which may hold anything; 0: there is no such process, or it has ended.
std::uint64_t start_of(std::uint64_t process)
{
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t after_name = line.rfind(')');
    if (after_name == std::string::npos) {
        return 0;
    }
    constexpr int fields_before = 18;  // After the state, field 3.
    std::istringstream fields(line.substr(after_name + 1));
    std::string state;
    std::string skipped;
    fields >> state;
    for (int field = 0; field < fields_before; ++field) {
        fields >> skipped;
    }
    std::uint64_t started = 0;
    fields >> started;
    return fields && state != "Z" && state != "X" ? started : 0;
}

bool is_of_this_machine(const Identity& identity, const Identity& own) { return identity.boot == own.boot && identity.space == own.space; }

Life life_of(std::uint64_t process, std::uint64_t started)
{
    return process != 0 && start_of(process) == started ? Life::alive : Life::dead;
}

}  // namespace

std::string Head::text() const
{
    return text_of(
        "layout={}\nobject_bytes={}\nsize_bytes={}\npublished={}\ngeneration={}\nwriter={}\naddress={}\nhost={}\nboot={}\nspace={}\n"
        "process={}\nstarted={}\nagent={}\nagent_started={}\n",
        layout, object_bytes, size_bytes, is_published ? 1 : 0, generation, writer, address, owner.host, owner.boot, owner.space,
        owner.process, owner.started, owner.agent, owner.agent_started);
}

std::optional<Head> Head::parse(std::string_view text)
{
    if (text.size() > text_bytes_max) {
        return std::nullopt;
    }
    std::map<std::string_view, std::string_view> fields;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::size_t equals = text.find('=');
        if (end == std::string_view::npos || equals >= end ||
            !fields.emplace(text.substr(0, equals), text.substr(equals + 1, end - equals - 1)).second) {
            return std::nullopt;
        }
        text.remove_prefix(end + 1);
    }
    bool is_sound = true;
    const auto number = [&](std::string_view name) {
        const std::string_view value = fields[name];
        std::uint64_t result = 0;
        const auto parsed = std::from_chars(value.data(), value.data() + value.size(), result);
        is_sound = is_sound && parsed.ec == std::errc{} && parsed.ptr == value.data() + value.size();
        return result;
    };
    Head head;
    head.layout = number("layout");
    if (is_sound && head.layout > layout_known) {
        return head;
    }
    head.object_bytes = number("object_bytes");
    head.size_bytes = number("size_bytes");
    const std::uint64_t published = number("published");
    head.is_published = published == 1;
    head.generation = number("generation");
    head.writer = fields.contains("writer") ? number("writer") : 0;  // Older heads have none.
    head.address = fields["address"];
    head.owner = {std::string(fields["host"]), std::string(fields["boot"]), number("space"),
                  number("process"),           number("started"),           number("agent"),
                  number("agent_started")};
    return is_sound && published <= 1 && head.layout != 0 ? std::optional(head) : std::nullopt;
}

Identity own_identity(std::uint64_t process)
{
    Identity own;
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    own.host = name.data();
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), own.boot);
    struct stat facts{};
    own.space = stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
    own.process = process;
    own.started = start_of(process);
    own.agent = static_cast<std::uint64_t>(getpid());
    own.agent_started = start_of(own.agent);
    return own;
}

Life life_of_program(const Identity& identity, const Identity& own)
{
    return is_of_this_machine(identity, own) ? life_of(identity.process, identity.started) : Life::unknown;
}

Life life_of_agent(const Identity& identity, const Identity& own)
{
    return is_of_this_machine(identity, own) ? life_of(identity.agent, identity.agent_started) : Life::unknown;
}

std::string name_of(const Identity& identity)
{
    return identity.process == 0 ? std::string("another process") : text_of("process {} on {}", identity.process, identity.host);
}

}  // namespace stillpoint::rados
