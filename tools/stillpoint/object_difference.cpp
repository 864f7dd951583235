#include "object_difference.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t weak_pointer_bytes = 16;

struct KeptPointer {
    std::string field;
    std::uint64_t bytes;
    PointerTarget target;
    std::uint64_t place;     ///< of the object that it leads to
    std::uint64_t identity;  ///< and its identity
    std::uint64_t inside;
};
struct KeptField {
    std::string field;
    std::uint64_t bytes;
    std::string value;
};
struct KeptObject {
    std::uint64_t place;
    std::string type;
    std::vector<std::byte> bytes;
    bool is_complete;
    std::map<std::uint64_t, KeptPointer> pointers;  ///< by offset
    std::multimap<std::uint64_t, KeptField> fields;
};
struct KeptPool {
    std::map<std::uint64_t, KeptObject> objects;  ///< by identity
    std::uint64_t root = 0;  ///< its identity; 0: there is none
};

void keep(void* context, const ShownObject& object)
{
    auto& pool = *static_cast<KeptPool*>(context);
    pool.root = object.depth == 0 ? object.identity : pool.root;
    KeptObject& kept = pool.objects[object.identity];
    kept.place = object.place;
    kept.type = object.type;
    kept.bytes.assign(object.bytes.begin(), object.bytes.end());
    kept.is_complete = object.is_complete;
    for (const ShownPointer& pointer : object.pointers) {
        kept.pointers.insert({pointer.offset,
                              {std::string(pointer.field), pointer.is_weak ? weak_pointer_bytes : sizeof(std::uint64_t), pointer.target,
                               pointer.object, 0, pointer.inside}});
    }
    for (const ShownField& field : object.fields) {
        kept.fields.insert({field.offset, {std::string(field.field), field.bytes, std::string(field.value)}});
    }
}

/// Errors: pool_corrupt (also the first finding), io, no_memory.
Result<KeptPool> objects_of(const OpenedPool& opened)
{
    KeptPool pool;
    FirstFinding first;
    const ObjectRequest all{.root = 0, .objects_max = UINT64_MAX, .depth_max = UINT64_MAX};
    const auto shown = opened.driver->show_objects(opened.pool, all, first, &keep, &pool);
    if (!shown) {
        return pass_on(shown.error());
    }
    if (first.first) {
        return pass_on(*first.first);
    }
    std::map<std::uint64_t, std::uint64_t> identities;
    for (const auto& [identity, object] : pool.objects) {
        identities[object.place] = identity;
    }
    for (auto& [identity, object] : pool.objects) {
        for (auto& [offset, pointer] : object.pointers) {
            pointer.identity = pointer.target == PointerTarget::object ? identities[pointer.place] : 0;
        }
    }
    return pool;
}

std::string text_of_pointer(const KeptPointer* pointer)
{
    if (pointer == nullptr) {
        return "not there";
    }
    switch (pointer->target) {
    case PointerTarget::none: return "null";
    case PointerTarget::freed: return "a freed object";
    case PointerTarget::unknown: return "no object";
    case PointerTarget::object: break;
    }
    return pointer->inside == 0 ? text_of("{:#x}", pointer->place) : text_of("{:#x}, byte {}", pointer->place, pointer->inside);
}

bool are_same(const KeptPointer* before, const KeptPointer* after)
{
    return before != nullptr && after != nullptr && before->target == after->target && before->identity == after->identity &&
           before->inside == after->inside;
}

/// Compares two states of an object.
class Comparison {
public:
    Comparison(const KeptObject& before, const KeptObject& after, ObjectChange& change, std::size_t limit)
        : before_(before), after_(after), change_(change), limit_(limit), told_(std::min(before.bytes.size(), after.bytes.size()))
    {
    }

    /// True: they differ.
    bool run()
    {
        compare_pointers();
        compare_fields();
        compare_rest();
        return differs_ || !change_.note.empty();
    }

private:
    void tell(const std::string& field, const char* type, std::uint64_t offset, const std::string& before, const std::string& after)
    {
        differs_ = true;
        if (change_.fields.size() < limit_) {
            change_.fields.push_back({field, type, offset, before, after});
        }
    }
    void cover(std::uint64_t offset, std::uint64_t bytes)
    {
        const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, told_.size());
        for (std::uint64_t i = offset; i < end; ++i) {
            told_[i] = true;
        }
    }
    void compare_pointer(std::uint64_t offset, const KeptPointer* before, const KeptPointer* after)
    {
        const KeptPointer& one = before != nullptr ? *before : *after;
        cover(offset, one.bytes);
        if (!are_same(before, after)) {
            change_.changed_bytes += one.bytes;
            tell(one.field, one.bytes == weak_pointer_bytes ? "weak pointer" : "pointer", offset, text_of_pointer(before),
                 text_of_pointer(after));
        }
    }
    void compare_pointers()
    {
        for (const auto& [offset, before] : before_.pointers) {
            const auto after = after_.pointers.find(offset);
            compare_pointer(offset, &before, after == after_.pointers.end() ? nullptr : &after->second);
        }
        for (const auto& [offset, after] : after_.pointers) {
            if (!before_.pointers.contains(offset)) {
                compare_pointer(offset, nullptr, &after);
            }
        }
    }
    void compare_fields()
    {
        for (const auto& [offset, after] : after_.fields) {
            const auto [begin, end] = before_.fields.equal_range(offset);
            const auto before = std::find_if(begin, end, [&](const auto& one) { return one.second.field == after.field; });
            if (before == end || before->second.bytes != after.bytes || offset + after.bytes > told_.size()) {
                continue;  // Then compare_rest() compares the bytes.
            }
            const bool text_is_cut = after.bytes > sizeof(long double);
            const bool is_same = before->second.value == after.value &&
                                 (!text_is_cut || std::memcmp(&before_.bytes[offset], &after_.bytes[offset], after.bytes) == 0);
            if (!is_same) {
                change_.changed_bytes += changed_in(offset, offset + after.bytes);
                tell(after.field, "data", offset, before->second.value, after.value);
            }
            cover(offset, after.bytes);
        }
    }
    [[nodiscard]] std::uint64_t changed_in(std::uint64_t begin, std::uint64_t end) const
    {
        std::uint64_t changed = 0;
        for (std::uint64_t i = begin; i < end; ++i) {
            changed += before_.bytes[i] != after_.bytes[i] ? 1U : 0U;
        }
        return changed;
    }
    /// Bytes of no pointer and no field; of a type that is described completely they are padding.
    void compare_rest()
    {
        const bool is_padding = before_.is_complete && after_.is_complete;
        for (std::uint64_t i = 0; i < told_.size() && !is_padding; ++i) {
            if (told_[i] || before_.bytes[i] == after_.bytes[i]) {
                continue;
            }
            std::uint64_t end = i + 1;
            while (end < told_.size() && !told_[end] && before_.bytes[end] != after_.bytes[end]) {
                ++end;
            }
            differs_ = true;
            change_.changed_bytes += end - i;
            if (change_.ranges.size() < limit_) {
                change_.ranges.push_back({i, end - i});
            } else {
                ++change_.ranges_left_out;
            }
            i = end - 1;
        }
    }

    const KeptObject& before_;
    const KeptObject& after_;
    ObjectChange& change_;
    std::size_t limit_;
    std::vector<bool> told_;  ///< bytes that a pointer or a field has
    bool differs_ = false;
};

ObjectChange change_of(Change kind, const KeptObject& object)
{
    ObjectChange change;
    change.change = kind;
    change.kind = "object";
    change.type = object.type;
    change.address = object.place;
    change.size_bytes = object.bytes.size();
    return change;
}

void add_root(const KeptPool& before, const KeptPool& after, PoolDifference& difference)
{
    if (before.root == after.root) {
        return;
    }
    const bool was_there = before.root != 0;
    const bool is_there = after.root != 0;
    ObjectChange change = change_of(!was_there ? Change::added
                                    : is_there ? Change::changed
                                               : Change::removed,
                                    is_there ? after.objects.at(after.root) : before.objects.at(before.root));
    change.kind = "root";
    change.note = was_there && is_there ? "another object" : "";
    difference.roots.push_back(std::move(change));
}

void add_figures(const KeptPool& pool, HeapFigures& figures)
{
    figures.blocks = pool.objects.size();
    for (const auto& [identity, object] : pool.objects) {
        figures.bytes += object.bytes.size();
    }
}

void add(PoolDifference& difference, std::size_t limit, std::uint64_t& counter, ObjectChange change)
{
    ++counter;
    if (difference.blocks.size() < limit) {
        difference.blocks.push_back(std::move(change));
    }
}

}  // namespace

Result<PoolDifference> difference_of_objects(const OpenedPool& opened_before, const OpenedPool& opened_after, std::size_t limit)
{
    const auto before = objects_of(opened_before);
    if (!before) {
        return pass_on(before.error());
    }
    const auto after = objects_of(opened_after);
    if (!after) {
        return pass_on(after.error());
    }
    PoolDifference difference;
    difference.of_objects = true;
    add_figures(*before, difference.before);
    add_figures(*after, difference.after);
    add_root(*before, *after, difference);
    for (const auto& [identity, object] : before->objects) {
        const auto now = after->objects.find(identity);
        if (now == after->objects.end()) {
            add(difference, limit, difference.blocks_removed, change_of(Change::removed, object));
            continue;
        }
        ObjectChange change = change_of(Change::changed, now->second);
        if (object.type != now->second.type || object.bytes.size() != now->second.bytes.size()) {
            change.note = text_of("of type {}, with {} bytes, before", printable(object.type), object.bytes.size());
        }
        if (Comparison(object, now->second, change, limit).run()) {
            add(difference, limit, difference.blocks_changed, std::move(change));
        }
    }
    for (const auto& [identity, object] : after->objects) {
        if (!before->objects.contains(identity)) {
            add(difference, limit, difference.blocks_added, change_of(Change::added, object));
        }
    }
    return difference;
}

}  // namespace stillpoint::tool
