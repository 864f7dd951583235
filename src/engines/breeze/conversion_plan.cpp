#include "engines/breeze/conversion_plan.hpp"

#include <algorithm>
#include <utility>

#include "core/formatted.hpp"
#include "engines/breeze/type_comparison.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::size_t problems_max = 100;  ///< that are kept with their texts

/// Objects of each type, in the order of the records.
std::map<std::uint32_t, std::uint64_t> count_objects(PoolParts& pool)
{
    std::map<std::uint32_t, std::uint64_t> counts;
    for (std::uint64_t number = 0; number < pool.zones.count(); ++number) {
        pool.zones.visit_blocks(number, [&](std::uint64_t block) {
            const Type* const type = pool.allocated(block) ? pool.type_of(block) : nullptr;
            if (type != nullptr) {
                ++counts[type->id];
            }
        });
    }
    return counts;
}

}  // namespace

const TypeChange* ConversionPlan::change_of(const Type& type) const noexcept
{
    const auto found = changes_.find(&type);
    return found == changes_.end() ? nullptr : found->second.get();
}

std::string ConversionPlan::changed_structure_in(const Type& type) const
{
    for (const Field& field : type.fields) {
        if (field.nested == nullptr) {
            continue;
        }
        const DescribedType* const described = program_.find(field.nested->id);
        if (described != nullptr && !difference(*field.nested, *described->type, "", "").empty()) {
            return field.nested->name;
        }
        if (std::string deeper = changed_structure_in(*field.nested); !deeper.empty()) {
            return deeper;
        }
    }
    return "";
}

void ConversionPlan::add_record(const Type& type)
{
    if (std::ranges::find(recorded_, type.id) != recorded_.end()) {
        return;
    }
    for (const Field& field : type.fields) {
        if (field.nested != nullptr) {
            add_record(*field.nested);
        }
    }
    recorded_.push_back(type.id);
    records_.insert(records_.end(), type.record.begin(), type.record.end());
}

void ConversionPlan::compare(const std::shared_ptr<const Type>& type, ConvertedType counted)
{
    const DescribedType* const described = program_.find(type->id);
    counted.is_described = described != nullptr;
    counted.element_bytes_after = type->size;
    if (described != nullptr) {
        auto change = std::make_unique<TypeChange>(type, *described, program_);
        counted.element_bytes_after = change->to()->size;
        counted.differences = change->differences();
        has_pinned_ = has_pinned_ || change->to()->is_pinned;
        add_record(*change->to());
        if (!change->is_identity()) {
            changes_.emplace(type.get(), std::move(change));
        }
    } else if (const std::string nested = changed_structure_in(*type); !nested.empty()) {
        counted.differences.push_back(
            {formatted("the program does not describe it, and has another structure {}, which lies in it: describe it", nested), true});
    }
    report_.types.push_back(std::move(counted));
}

Result<void> ConversionPlan::prepare(PoolParts& pool, NewTypes program)
{
    program_ = std::move(program);
    const auto counts = count_objects(pool);
    for (const bool described : {true, false}) {
        for (const auto& type : pool.types.all()) {
            const auto counted = counts.find(type->id);
            if (counted != counts.end() && (program_.find(type->id) != nullptr) == described) {
                ConvertedType row;
                row.name = type->name;
                row.objects = counted->second;
                row.element_bytes_before = type->size;
                compare(type, std::move(row));
            }
        }
    }
    for (const auto& type : pool.types.all()) {  // Their records come after all that replace others.
        if (counts.contains(type->id)) {
            add_record(*type);
        }
    }
    for (const std::string& name : program_.drops) {
        if (!program_.drops_used.contains(name)) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "--drop {}: no field of that name is gone", name);
        }
    }
    if (records_.size() > types_bytes_max) {
        return fail(SP_E_POOL_FULL, 0, "the records of the program's types have {} bytes, and a pool has room for {}", records_.size(),
                    types_bytes_max);
    }
    return {};
}

void ConversionPlan::tell_of(PoolParts& pool, std::uint64_t block, const std::string& text)
{
    ++report_.problem_count;
    if (report_.problems.size() < problems_max) {
        report_.problems.push_back(formatted("the object at byte {} of the image, of type {}: {}", block, pool.type_of(block)->name, text));
    }
}

void ConversionPlan::convert(PoolParts& pool, std::uint64_t block, const TypeChange& change, std::byte* made)
{
    class Told final : public ConversionProblems {
    public:
        Told(ConversionPlan& plan, PoolParts& parts, std::uint64_t object) noexcept : plan_(plan), pool_(parts), object_(object) {}
        void tell(const std::string& text) override { plan_.tell_of(pool_, object_, text); }

    private:
        ConversionPlan& plan_;
        PoolParts& pool_;
        std::uint64_t object_;
    } told(*this, pool, block);
    change.convert(pool.bytes_of(block), pool.memory.object(block).size, made, told);
}

}  // namespace stillpoint::breeze
