#include "typed_objects.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>

#include "output.hpp"
#include "value_tree.hpp"

namespace stillpoint::tool {

namespace {

constexpr unsigned nesting_max = 64;
constexpr std::uint64_t elements_max = 1 << 20;  ///< of an array, that are searched for pointers
constexpr std::size_t path_bytes_max = 200;
constexpr std::uint64_t steps_max = 20'000'000;  ///< through fields and elements, whatever the debug information says

/// "list.first.next*3" is next, three times.
std::string path_of_member(const std::string& path, const std::string& name)
{
    const std::size_t dot = path.rfind('.');
    const std::string_view last = dot == std::string::npos ? std::string_view() : std::string_view(path).substr(dot + 1);
    if (!name.empty() && last == name) {
        return path + "*2";
    }
    if (!name.empty() && last.starts_with(name + "*")) {
        std::uint64_t times = 0;
        std::from_chars(last.data() + name.size() + 1, last.data() + last.size(), times);
        return path.substr(0, dot + 1) + text_of("{}*{}", name, times + 1);
    }
    return path.empty() || name.empty() ? path + name : path + "." + name;
}

class Reached {
public:
    Reached(const PoolImage& image, ProgramTypes& program, std::size_t objects_max) noexcept
        : image_(image), program_(program), objects_max_(objects_max)
    {
    }

    void add(std::uint64_t address, TypeId type, const std::string& path)
    {
        const std::uint64_t bytes = program_.type(type).size;
        if (bytes == 0 || objects.size() >= objects_max_ || image_.at(address, bytes).empty()) {
            return;
        }
        std::string brief = path.substr(0, path_bytes_max);
        if (brief.size() < path.size()) {
            brief.append("...");
        }
        const bool is_new = objects.try_emplace(address, TypedObject{type, bytes, std::move(brief)}).second;
        if (is_new) {
            waiting_.push_back(address);
        }
    }

    void follow_all()
    {
        while (!waiting_.empty()) {
            const std::uint64_t address = waiting_.front();
            waiting_.pop_front();
            const TypedObject object = objects.at(address);
            follow(object.type, address, object.path, 0);
        }
    }

    std::map<std::uint64_t, TypedObject> objects;

private:
    void follow(TypeId id, std::uint64_t address, const std::string& path, unsigned nesting)
    {
        const ProgramType& type = program_.type(id);
        if (++steps_ > steps_max || nesting > nesting_max || image_.at(address, type.size).size() != type.size) {
            return;
        }
        if (type.kind == TypeKind::pointer) {
            follow_pointer(type.target, address, path);
        } else if (type.kind == TypeKind::record) {
            for (const TypeMember& member : type.members) {
                if (member.bits == 0) {
                    follow(member.type, address + member.offset, path_of_member(path, member.name), nesting + 1);
                }
            }
            if (const TypeVariant* const variant = type.variant_in(image_.at(address, type.size))) {
                follow(variant->member.type, address + variant->member.offset, path, nesting + 1);
            }
        } else if (type.kind == TypeKind::array && may_have_pointers(type.target)) {
            const std::uint64_t step = program_.type(type.target).size;
            for (std::uint64_t i = 0; step != 0 && i < std::min(type.count, elements_max); ++i) {
                follow(type.target, address + i * step, text_of("{}[{}]", path, i), nesting + 1);
            }
        }
    }

    [[nodiscard]] bool may_have_pointers(TypeId id)
    {
        const TypeKind kind = program_.type(id).kind;
        return kind == TypeKind::pointer || kind == TypeKind::record || kind == TypeKind::array;
    }

    void follow_pointer(TypeId target, std::uint64_t address, const std::string& path)
    {
        std::uint64_t to = 0;
        const auto bytes = image_.at(address, sizeof to);
        std::memcpy(&to, bytes.data(), bytes.size());
        const LiveBlock block = image_.block_of(to);
        if (block && program_.type(target).size <= block.address + block.bytes - to) {
            add(to, target, path);
        }
    }

    const PoolImage& image_;
    ProgramTypes& program_;
    std::size_t objects_max_;
    std::deque<std::uint64_t> waiting_;
    std::uint64_t steps_ = 0;
};

struct Comparison {
    ProgramTypes& program;
    std::span<const std::byte> before;
    std::span<const std::byte> after;
    std::size_t changes_max;
    std::vector<FieldChange> changes;
    std::uint64_t steps = 0;

    [[nodiscard]] bool is_same(std::uint64_t offset, std::uint64_t bytes) const
    {
        return offset + bytes <= before.size() && offset + bytes <= after.size() &&
               std::memcmp(before.data() + offset, after.data() + offset, bytes) == 0;
    }
    [[nodiscard]] bool is_inside(std::uint64_t offset, std::uint64_t bytes) const
    {
        const std::uint64_t size = std::min(before.size(), after.size());
        return offset <= size && bytes <= size - offset;
    }

    void compare(TypeId id, const std::string& type_name, std::uint64_t offset, const std::string& path, unsigned nesting)
    {
        const ProgramType& type = program.type(id);
        if (++steps > steps_max || changes.size() >= changes_max || nesting > nesting_max || !is_inside(offset, type.size) ||
            is_same(offset, type.size)) {
            return;
        }
        if (type.kind == TypeKind::record) {
            compare_members(type, offset, path, nesting);
        } else if (type.kind == TypeKind::array && !is_text(type)) {
            const std::uint64_t step = program.type(type.target).size;
            for (std::uint64_t i = 0; step != 0 && i < type.count && changes.size() < changes_max; ++i) {
                compare(type.target, program.type(type.target).name, offset + i * step, text_of("{}[{}]", path, i), nesting + 1);
            }
        } else {
            changes.push_back({path, type_name, offset, text_at(type, before, offset), text_at(type, after, offset)});
        }
    }

    void compare_members(const ProgramType& type, std::uint64_t offset, const std::string& path, unsigned nesting)
    {
        for (const TypeMember& member : type.members) {
            const std::string name = path_of_member(path, member.name);
            const std::uint64_t place = offset + member.offset;
            if (member.bits == 0) {
                compare(member.type, member.type_name, place, name, nesting + 1);
                continue;
            }
            const std::uint64_t bytes = (member.bit_offset + member.bits + 7) / 8;
            if (!is_inside(place, bytes)) {
                continue;
            }
            const ProgramType& unit = program.type(member.type);
            const std::string old = text_of_scalar(unit, before.subspan(place, bytes), member.bit_offset, member.bits);
            const std::string now = text_of_scalar(unit, after.subspan(place, bytes), member.bit_offset, member.bits);
            if (old != now && changes.size() < changes_max) {
                changes.push_back({name, text_of("{}:{}", member.type_name, member.bits), place, old, now});
            }
        }
        if (!type.variants.empty()) {
            compare_variants(type, offset, path, nesting);
        }
    }

    void compare_variants(const ProgramType& type, std::uint64_t offset, const std::string& path, unsigned nesting)
    {
        const TypeVariant* const old = type.variant_in(before.subspan(offset, type.size));
        const TypeVariant* const now = type.variant_in(after.subspan(offset, type.size));
        if (old == now) {
            if (now != nullptr) {
                compare(now->member.type, now->member.type_name, offset + now->member.offset, path, nesting + 1);
            }
        } else if (changes.size() < changes_max) {
            constexpr std::string_view none = "no variant";
            changes.push_back({path, type.name, offset, std::string(old != nullptr ? old->member.name : none),
                               std::string(now != nullptr ? now->member.name : none)});
        }
    }

    [[nodiscard]] bool is_text(const ProgramType& array) const
    {
        const ProgramType& element = program.type(array.target);
        return element.kind == TypeKind::character && element.name == "char";
    }

    [[nodiscard]] std::string text_at(const ProgramType& type, std::span<const std::byte> bytes, std::uint64_t offset) const
    {
        constexpr std::uint64_t characters_max = 200;
        const auto own = bytes.subspan(offset, type.size);
        if (type.kind == TypeKind::lock) {
            return "lock";
        }
        if (type.kind == TypeKind::array) {
            return text_of_characters(own, characters_max);
        }
        if (type.kind == TypeKind::pointer) {
            std::uint64_t to = 0;
            std::memcpy(&to, own.data(), std::min(own.size(), sizeof to));
            return to == 0 ? "null" : text_of("{:#x}", to);
        }
        return text_of_scalar(type, own, 0, 0);
    }
};

}  // namespace

std::map<std::uint64_t, TypedObject> reach_objects(const PoolImage& image, ProgramTypes& program, const std::vector<TypedRoot>& roots,
                                                   std::size_t objects_max)
{
    Reached reached(image, program, objects_max);
    for (const TypedRoot& root : roots) {
        if (root.type) {
            reached.add(root.address, *root.type, root.name);
        }
    }
    reached.follow_all();
    return std::move(reached.objects);
}

std::vector<FieldChange> changed_fields(ProgramTypes& program, TypeId type, std::span<const std::byte> before,
                                        std::span<const std::byte> after, std::size_t changes_max)
{
    Comparison comparison{program, before, after, changes_max, {}};
    comparison.compare(type, program.type(type).name, 0, "", 0);
    return std::move(comparison.changes);
}

}  // namespace stillpoint::tool
