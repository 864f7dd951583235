#pragma once
// Types of a program's durable data, as text: what two builds say of them, and where they differ. Knows nothing of pools.
//
// Lines, their parts separated by tabs:
//     root NAME TYPE                     a named object, or a durable global ("global NAME TYPE")
//     type TYPE SIZE                     a structure; its members follow
//     member NAME OFFSET TYPE            in bytes; of a bit field OFFSET.BIT:BITS; of an enumeration the number of NAME, and no TYPE

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace stillpoint::type_text {

struct Member {
    std::string name;
    std::string place;  ///< OFFSET, as in the text
    std::string type;
    [[nodiscard]] bool operator==(const Member&) const = default;
};

struct Type {
    std::string size;
    std::vector<Member> members;
    [[nodiscard]] bool operator==(const Type&) const = default;
};

struct Types {
    std::map<std::string, std::string> roots;  ///< "root NAME" or "global NAME": its type
    std::map<std::string, Type> types;
    [[nodiscard]] bool operator==(const Types&) const = default;
};

/// Errors: pool_corrupt (a line that is none of those above).
[[nodiscard]] Result<Types> parse(std::string_view text);
[[nodiscard]] std::string text_of(const Types& types);

/// In words, where `present` differs from `kept` in a root that both have, or in a type that both have; nullopt: they agree.
[[nodiscard]] std::optional<std::string> first_difference(const Types& kept, const Types& present);

/// All that `present` says, and what only `kept` says.
[[nodiscard]] Types merged(const Types& kept, const Types& present);

}  // namespace stillpoint::type_text
