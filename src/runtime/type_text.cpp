#include "runtime/type_text.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "core/formatted.hpp"

namespace stillpoint::type_text {

namespace {

constexpr std::size_t parts_max = 4;

struct Line {
    std::array<std::string_view, parts_max> parts;
    std::size_t count = 0;
};

/// Too many parts: a count above parts_max.
Line parts_of(std::string_view line)
{
    Line found;
    while (true) {
        const std::size_t tab = line.find('\t');
        if (found.count < parts_max) {
            found.parts[found.count] = line.substr(0, tab);
        }
        ++found.count;
        if (tab == std::string_view::npos) {
            return found;
        }
        line.remove_prefix(tab + 1);
    }
}

tl::unexpected<Failure> bad_line(std::string_view line)
{
    return fail(SP_E_POOL_CORRUPT, 0, "the descriptions of types have a line that says nothing: \"{}\"", line.substr(0, 80));
}

/// Parts have any length: names of templates have hundreds of bytes.
void add_line(std::string& text, std::initializer_list<std::string_view> parts)
{
    for (const std::string_view part : parts) {
        text.append(part).push_back('\t');
    }
    text.back() = '\n';
}

const Member* find(const std::vector<Member>& members, std::string_view name)
{
    const auto found = std::ranges::find(members, name, &Member::name);
    return found == members.end() ? nullptr : &*found;
}

std::optional<std::string> difference(const std::string& name, const Type& kept, const Type& present)
{
    for (const Member& then : kept.members) {
        const Member* const now = find(present.members, then.name);
        if (now == nullptr) {
            const auto renamed = std::ranges::find_if(present.members, [&](const Member& other) {
                return other.place == then.place && other.type == then.type && find(kept.members, other.name) == nullptr;
            });
            return renamed == present.members.end()
                       ? formatted("{}: the member {} is gone", name, then.name)
                       : formatted("{}: the member {} is gone, and {} is in its place", name, then.name, renamed->name);
        }
        if (now->type != then.type) {
            return formatted("{}: the member {} was of type {}, and is of type {}", name, then.name, then.type, now->type);
        }
    }
    for (const Member& now : present.members) {
        if (find(kept.members, now.name) == nullptr) {
            return formatted("{}: the member {} is new", name, now.name);
        }
    }
    for (const Member& then : kept.members) {
        if (const Member& now = *find(present.members, then.name); now.place != then.place) {
            return formatted("{}: the member {} was at {}, and is at {}", name, then.name, then.place, now.place);
        }
    }
    if (kept.size != present.size) {
        return formatted("{}: it had {} bytes, and has {}", name, kept.size, present.size);
    }
    return std::nullopt;
}

}  // namespace

Result<Types> parse(std::string_view text)
{
    Types found;
    Type* last = nullptr;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto [parts, count] = parts_of(line);
        if ((parts[0] == "root" || parts[0] == "global") && count == 3) {
            found.roots[std::string(parts[0]).append(" ").append(parts[1])] = parts[2];
        } else if (parts[0] == "type" && count == 3) {
            last = &found.types[std::string(parts[1])];
            last->size = parts[2];
        } else if (parts[0] == "member" && count == 4 && last != nullptr) {
            last->members.push_back({std::string(parts[1]), std::string(parts[2]), std::string(parts[3])});
        } else {
            return bad_line(line);
        }
    }
    return found;
}

std::string text_of(const Types& types)
{
    std::string text;
    for (const auto& [root, type] : types.roots) {
        const std::size_t space = root.find(' ');
        add_line(text, {std::string_view(root).substr(0, space), std::string_view(root).substr(space + 1), type});
    }
    for (const auto& [name, type] : types.types) {
        add_line(text, {"type", name, type.size});
        for (const Member& member : type.members) {
            add_line(text, {"member", member.name, member.place, member.type});
        }
    }
    return text;
}

std::optional<std::string> first_difference(const Types& kept, const Types& present)
{
    for (const auto& [root, type] : kept.roots) {
        const auto now = present.roots.find(root);
        if (now != present.roots.end() && now->second != type) {
            return formatted("{} was of type {}, and is of type {}", root, type, now->second);
        }
    }
    for (const auto& [name, type] : kept.types) {
        const auto now = present.types.find(name);
        if (now == present.types.end() || now->second == type) {
            continue;
        }
        if (auto differs = difference(name, type, now->second)) {
            return differs;
        }
    }
    return std::nullopt;
}

Types merged(const Types& kept, const Types& present)
{
    Types all = present;
    all.roots.insert(kept.roots.begin(), kept.roots.end());
    all.types.insert(kept.types.begin(), kept.types.end());
    return all;
}

}  // namespace stillpoint::type_text
