#include "pool_difference.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::size_t objects_max = 1'000'000;
constexpr std::uint64_t gap_max = 8;  ///< ranges that are so near to each other are told as one

/// A type of --type whose handle only the other pool has.
HandleTypes types_in(const PoolImage& image, const PoolImage& other, const HandleTypes& types)
{
    HandleTypes own;
    const auto has = [](const PoolImage& in, const std::string& name) {
        return std::ranges::find(in.handles(), name, &HandleFacts::handle) != in.handles().end();
    };
    for (const auto& [handle, type] : types) {
        if (has(image, handle) || !has(other, handle)) {
            own.emplace(handle, type);
        }
    }
    return own;
}

void note_bytes(ObjectChange& change, std::span<const std::byte> before, std::span<const std::byte> after, std::size_t limit)
{
    const std::uint64_t size = std::min(before.size(), after.size());
    std::uint64_t begin = size;
    std::uint64_t end = 0;
    const auto close = [&] {
        if (begin < end && change.ranges.size() < limit) {
            change.ranges.push_back({begin, end - begin});
        } else if (begin < end) {
            ++change.ranges_left_out;
        }
    };
    for (std::uint64_t at = 0; at < size;) {
        const auto place = std::mismatch(before.begin() + static_cast<std::ptrdiff_t>(at),
                                         before.begin() + static_cast<std::ptrdiff_t>(size),
                                         after.begin() + static_cast<std::ptrdiff_t>(at));
        at = static_cast<std::uint64_t>(place.first - before.begin());
        if (at == size) {
            break;
        }
        ++change.changed_bytes;
        if (end == 0 || at - end > gap_max) {
            close();
            begin = at;
        }
        end = ++at;
    }
    close();
}

class Difference {
public:
    Difference(const PoolImage& before, const PoolImage& after, ProgramTypes* program, std::size_t limit)
        : before_(before), after_(after), program_(program), limit_(limit)
    {
        result.other_addresses = before.base_address() != after.base_address();
    }

    void compare_roots(const std::vector<TypedRoot>& before, const std::vector<TypedRoot>& after)
    {
        const auto find = [](const std::vector<TypedRoot>& in, const TypedRoot& root) {
            const auto found = std::ranges::find_if(in,
                                                    [&](const TypedRoot& one) { return one.kind == root.kind && one.name == root.name; });
            return found == in.end() ? nullptr : &*found;
        };
        for (const TypedRoot& root : before) {
            blocks_of_roots_.insert(root.block.address - before_.base_address());
            if (const TypedRoot* const now = find(after, root); now != nullptr) {
                compare_root(root, *now);
            } else {
                result.roots.push_back(change_of(Change::removed, root));
            }
        }
        for (const TypedRoot& root : after) {
            blocks_of_roots_.insert(root.block.address - after_.base_address());
            if (find(before, root) == nullptr) {
                result.roots.push_back(change_of(Change::added, root));
            }
        }
    }

    void compare_blocks(const std::vector<TypedRoot>& roots_before, const std::vector<TypedRoot>& roots_after)
    {
        if (program_ != nullptr) {
            objects_before_ = reach_objects(before_, *program_, roots_before, objects_max);
            objects_after_ = reach_objects(after_, *program_, roots_after, objects_max);
        }
        std::unordered_map<std::uint64_t, std::uint64_t> sizes;  // By offset from the base.
        before_.for_each_block([&](const LiveBlock& block) {
            ++result.before.blocks;
            result.before.bytes += block.bytes;
            sizes.emplace(block.address - before_.base_address(), block.bytes);
        });
        after_.for_each_block([&](const LiveBlock& block) {
            ++result.after.blocks;
            result.after.bytes += block.bytes;
            const auto found = sizes.find(block.address - after_.base_address());
            const bool was_there = found != sizes.end() && found->second == block.bytes;
            if (was_there) {
                sizes.erase(found);
                compare_block(block);
            } else {
                add_block(Change::added, block, after_, objects_after_, result.blocks_added);
            }
        });
        before_.for_each_block([&](const LiveBlock& block) {
            const auto found = sizes.find(block.address - before_.base_address());
            if (found != sizes.end() && found->second == block.bytes) {
                add_block(Change::removed, block, before_, objects_before_, result.blocks_removed);
            }
        });
    }

    PoolDifference result;

private:
    using Objects = std::map<std::uint64_t, TypedObject>;

    static ObjectChange change_of(Change change, const TypedRoot& root)
    {
        ObjectChange made{change,         root.kind == RootKind::handle ? "handle" : "global", root.name, root.type_name, root.address,
                          root.size_bytes};
        return made;
    }

    void compare_root(const TypedRoot& before, const TypedRoot& after)
    {
        ObjectChange change = change_of(Change::changed, after);
        const auto old_bytes = before_.at(before.address, before.size_bytes);
        const auto new_bytes = after_.at(after.address, after.size_bytes);
        note_bytes(change, old_bytes, new_bytes, limit_);
        if (before.size_bytes != after.size_bytes) {
            change.note = text_of("had {} bytes", before.size_bytes);
        } else if (before.kind == RootKind::handle && before.address - before_.base_address() != after.address - after_.base_address()) {
            change.note = text_of("was at {:#x}", before.address);
        }
        if (change.changed_bytes == 0 && change.note.empty()) {
            return;
        }
        if (program_ != nullptr && after.type) {
            change.fields = changed_fields(*program_, *after.type, old_bytes, new_bytes, limit_);
        }
        result.roots.push_back(std::move(change));
    }

    static void name_block(ObjectChange& change, const Objects& objects, ProgramTypes* program)
    {
        const auto found = objects.lower_bound(change.address);
        if (program != nullptr && found != objects.end() && found->first < change.address + change.size_bytes) {
            change.name = found->second.path;
            change.type = program->type(found->second.type).name;
        }
    }

    /// A root's block was told by its name.
    bool is_told(const LiveBlock& block, const PoolImage& image) const
    {
        return blocks_of_roots_.contains(block.address - image.base_address());
    }

    void add_block(Change change, const LiveBlock& block, const PoolImage& image, const Objects& objects, std::uint64_t& count)
    {
        if (is_told(block, image)) {
            return;
        }
        ++count;
        if (result.blocks.size() < limit_) {
            ObjectChange made{change, "block", image.layout_name(block), image.layout_name(block), block.address, block.bytes};
            made.name.clear();
            name_block(made, objects, program_);
            result.blocks.push_back(std::move(made));
        }
    }

    void compare_block(const LiveBlock& block)
    {
        const std::uint64_t address_before = block.address - after_.base_address() + before_.base_address();
        const auto old_bytes = before_.at(address_before, block.bytes);
        const auto new_bytes = after_.at(block.address, block.bytes);
        if (is_told(block, after_) || std::ranges::equal(old_bytes, new_bytes)) {
            return;
        }
        ++result.blocks_changed;
        if (result.blocks.size() >= limit_) {
            return;
        }
        ObjectChange change{Change::changed, "block", "", after_.layout_name(block), block.address, block.bytes};
        note_bytes(change, old_bytes, new_bytes, limit_);
        name_block(change, objects_after_, program_);
        for (auto object = objects_after_.lower_bound(block.address);
             object != objects_after_.end() && object->first < block.address + block.bytes && change.fields.size() < limit_; ++object) {
            const std::uint64_t offset = object->first - block.address;
            auto fields = changed_fields(*program_, object->second.type, old_bytes.subspan(offset), new_bytes.subspan(offset),
                                         limit_ - change.fields.size());
            for (FieldChange& field : fields) {
                field.offset += offset;
                change.fields.push_back(std::move(field));
            }
        }
        result.blocks.push_back(std::move(change));
    }

    const PoolImage& before_;
    const PoolImage& after_;
    ProgramTypes* program_;
    std::size_t limit_;
    std::set<std::uint64_t> blocks_of_roots_;
    Objects objects_before_;
    Objects objects_after_;
};

}  // namespace

tl::expected<PoolDifference, ProgramError> difference_of(const PoolImage& before, const PoolImage& after, ProgramTypes* program,
                                                         const HandleTypes& types, std::size_t limit)
{
    const auto roots_before = typed_roots(before, program, types_in(before, after, types));
    const auto roots_after = typed_roots(after, program, types_in(after, before, types));
    if (!roots_before || !roots_after) {
        return tl::unexpected<ProgramError>(roots_before ? roots_after.error() : roots_before.error());
    }
    Difference difference(before, after, program, limit);
    difference.compare_roots(*roots_before, *roots_after);
    difference.compare_blocks(*roots_before, *roots_after);
    return std::move(difference.result);
}

}  // namespace stillpoint::tool
