#include "media/rados/rados_name.hpp"

#include <algorithm>

namespace stillpoint {

namespace {

constexpr std::string_view prefix = "rados://";

bool is_plain(std::string_view part) noexcept
{
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    };
    return !part.empty() && part.size() <= RadosName::part_bytes_max && std::ranges::all_of(part, is_allowed);
}

tl::unexpected<Failure> malformed(std::string_view path, std::string_view form, std::string_view reason)
{
    return fail(SP_E_INVALID_ARGUMENT, 0, "{}: {}; a pool in Ceph is named {}, with ?conf=FILE&id=USER if need be", path, reason, form);
}

/// `form`: how such a name is written, for messages. The name in the Ceph pool is taken as it is.
Result<RadosName> parse(std::string_view path, std::string_view form)
{
    if (!is_rados_name(path)) {
        return malformed(path, form, "the name does not begin with rados://");
    }
    RadosName result;
    const std::string_view rest = path.substr(prefix.size());
    const std::size_t question = std::min(rest.find('?'), rest.size());
    const std::string_view place = rest.substr(0, question);
    const std::size_t slash = std::min(place.find('/'), place.size());
    if (!is_plain(place.substr(0, slash))) {
        return malformed(path, form, "the Ceph pool is missing, or has other characters than letters, digits, '-', '_' and '.'");
    }
    result.ceph_pool = place.substr(0, slash);
    result.name = place.substr(std::min(slash + 1, place.size()));
    std::string_view query = question < rest.size() ? rest.substr(question + 1) : std::string_view{};
    while (!query.empty()) {
        const std::string_view item = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(item.size() + 1, query.size()));
        if (item.starts_with("conf=") && item.size() > 5 && item.size() - 5 <= RadosName::file_bytes_max) {
            result.configuration = item.substr(5);
        } else if (item.starts_with("id=") && is_plain(item.substr(3))) {
            result.user = item.substr(3);
        } else {
            return malformed(path, form, "what follows the question mark is neither conf=FILE nor id=USER");
        }
    }
    if (!result.configuration.empty() && result.configuration.front() != '/') {
        return malformed(path, form, "the configuration is not an absolute path");
    }
    return result;
}

}  // namespace

Result<RadosName> parse_rados_name(std::string_view path)
{
    constexpr std::string_view form = "rados://CEPHPOOL/NAME";
    auto parsed = parse(path, form);
    if (parsed && !is_plain(parsed->name)) {
        return malformed(path, form, "the name is missing, too long, or has other characters than letters, digits, '-', '_' and '.'");
    }
    return parsed;
}

Result<RadosName> parse_ceph_pool(std::string_view path)
{
    auto parsed = parse(path, "rados://CEPHPOOL");
    if (parsed) {
        parsed->name.clear();
    }
    return parsed;
}

}  // namespace stillpoint
