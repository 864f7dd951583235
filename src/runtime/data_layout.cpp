#include "runtime/data_layout.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/formatted.hpp"
#include "core/store_marks.hpp"
#include "os/elf_section.hpp"
#include "os/log.hpp"
#include "pool/image.hpp"
#include "pool/image_layout.hpp"
#include "runtime/session_state.hpp"
#include "runtime/session_waits.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

namespace {

using Record = ::sp_layout_record;

layout::DataLayout& kept_in(std::byte* image) { return reinterpret_cast<layout::ImageHeader*>(image)->data_layout; }

std::string layout_text(std::string_view name, std::uint64_t number) { return formatted("{}:{}", name, number); }

struct Found {
    std::optional<StatedLayout> layout;
    std::vector<LayoutStep> steps;
    std::string contradiction;  ///< a second layout
    std::string bad_name;
};

void add_record(Found& found, const Record& record)
{
    if (record.name == nullptr) {
        found.steps.push_back({record.from, record.number, record.step});
        return;
    }
    if (!is_data_layout_name(record.name)) {
        found.bad_name = record.name;
    } else if (!found.layout) {
        found.layout = StatedLayout{record.name, record.number, {}};
    } else if (found.layout->name != record.name || found.layout->number != record.number) {
        found.contradiction = layout_text(record.name, record.number);
    }
}

/// The linker may leave zeroes between the records of two objects.
bool add_section(void* context, const os::LoadedSection& section)
{
    auto& found = *static_cast<Found*>(context);
    for (std::uint64_t at = 0; at + sizeof(Record) <= section.size;) {
        Record record{};
        std::memcpy(&record, section.memory + at, sizeof record);
        if (record.record_bytes != sizeof record || (record.name == nullptr && record.step == nullptr)) {
            at += sizeof(std::uint64_t);
            continue;
        }
        at += sizeof record;
        add_record(found, record);
    }
    return true;
}

tl::unexpected<Failure> bad_layout(std::string_view text)
{
    return fail(SP_E_INVALID_ARGUMENT, 0,
                "\"{}\" is not a layout: write NAME:NUMBER, where the name has 1 to 47 letters, digits, \".\", \"_\" and \"-\"", text);
}

}  // namespace

Result<StatedLayout> parse_layout(std::string_view text)
{
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    const std::string_view digits = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    StatedLayout stated{std::string(name), 0, {}};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), stated.number);
    if (!is_data_layout_name(name) || digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
        return bad_layout(text);
    }
    return stated;
}

Result<std::optional<StatedLayout>> stated_layout(std::string_view option, bool reads_records)
{
    Found found;
    if (reads_records) {
        os::visit_sections("sp_layouts", &add_section, &found);
    }
    if (!found.bad_name.empty()) {
        return bad_layout(found.bad_name);
    }
    if (!option.empty()) {
        auto parsed = parse_layout(option);
        if (!parsed) {
            return pass_on(parsed.error());
        }
        if (found.layout && (found.layout->name != parsed->name || found.layout->number != parsed->number)) {
            found.contradiction = layout_text(parsed->name, parsed->number);
        } else if (!found.layout) {
            found.layout = std::move(*parsed);
        }
    }
    if (!found.contradiction.empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "two layouts are stated for one pool, {} and {}: a program and its libraries state one",
                    layout_text(found.layout->name, found.layout->number), found.contradiction);
    }
    if (!found.layout && !found.steps.empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the program has SP_LAYOUT_STEP, and states no layout: add SP_LAYOUT(name, number)");
    }
    if (found.layout) {
        found.layout->steps = std::move(found.steps);
    }
    return std::move(found.layout);
}

std::optional<std::vector<LayoutStep>> steps_between(const StatedLayout& stated, std::uint64_t from)
{
    // Breadth first: `came_by[i]` is the step before step i. Steps may lead back, too: each is taken once.
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> came_by(stated.steps.size(), none);
    std::vector<bool> is_reached(stated.steps.size(), false);
    std::vector<std::size_t> last{none};
    while (!last.empty()) {
        std::vector<std::size_t> next;
        for (const std::size_t before : last) {
            const std::uint64_t number = before == none ? from : stated.steps[before].to;
            if (number == stated.number) {
                std::vector<LayoutStep> way;
                for (std::size_t at = before; at != none; at = came_by[at]) {
                    way.insert(way.begin(), stated.steps[at]);
                }
                return way;
            }
            for (std::size_t i = 0; i < stated.steps.size(); ++i) {
                if (stated.steps[i].from == number && !is_reached[i]) {
                    is_reached[i] = true;
                    came_by[i] = before;
                    next.push_back(i);
                }
            }
        }
        last = std::move(next);
    }
    return std::nullopt;
}

Result<std::vector<LayoutStep>> settle_layout(Engine& engine, Programs programs, const StatedLayout& stated)
{
    layout::DataLayout& kept = kept_in(engine.image_base());
    const std::string wanted = layout_text(stated.name, stated.number);
    if (kept.name[0] == '\0') {
        layout::DataLayout first{};
        std::memcpy(first.name, stated.name.data(), stated.name.size());
        first.number = stated.number;
        announce_store(&kept, sizeof kept);
        kept = first;
        note_store(&kept, sizeof kept);
        return std::vector<LayoutStep>{};
    }
    const std::string present = layout_text(kept.name, kept.number);
    if (stated.name != kept.name) {
        return fail(SP_E_LAYOUT, 0,
                    "the pool's data have the layout {}, the program's is {}: this is the pool of another program; name another pool",
                    present, wanted);
    }
    auto steps = steps_between(stated, kept.number);
    if (!steps && kept.number > stated.number) {
        return fail(SP_E_LAYOUT, 0, "the pool's data have the layout {}, which is newer than the program's, {}: start a newer program",
                    present, wanted);
    }
    if (!steps) {
        return fail(SP_E_LAYOUT, 0,
                    "the pool's data have the layout {}, the program's is {}, and it has no step from {}: start the program that wrote "
                    "the pool, or one with SP_LAYOUT_STEP({}, {}, function)",
                    present, wanted, kept.number, kept.number, stated.number);
    }
    if (!steps->empty() && engine.divides_program()) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "the pool's data have the layout {}, the program's is {}: its steps need a program whose threads are not processes; "
                    "start it once without that option",
                    present, wanted);
    }
    if (!steps->empty() && programs == Programs::operations) {
        return fail(
            SP_E_UNSUPPORTED, 0,
            "the pool's data have the layout {}, the program's is {}: the engine {} makes single operations of objects durable, and "
            "has no step over several; make new objects of the old ones, under new names",
            present, wanted, engine.pool_facts().engine_name);
    }
    return std::move(*steps);
}

Result<void> run_layout_steps(Session& session)
{
    const std::vector<LayoutStep> steps = std::move(session.layout_steps);
    session.layout_steps.clear();
    layout::DataLayout& kept = kept_in(session.engine->image_base());
    for (const LayoutStep& step : steps) {
        auto result = session.engine->run_as_one(step.run, kept.number, step.to);
        if (!result) {
            return pass_on(result.error());
        }
        if (*result != 0) {
            return fail(SP_E_LAYOUT, 0, "the step from layout {} to {} failed with the value {}: the pool is as it was", step.from, step.to,
                        *result);
        }
    }
    if (steps.empty()) {
        return {};
    }
    if (auto taken = take_checkpoint(); !taken) {
        return taken;
    }
    os::log(os::Severity::note, "{}: the data have the layout {} now, by {} step{}", session.pool, layout_text(kept.name, kept.number),
            steps.size(), steps.size() == 1 ? "" : "s");
    return {};
}

}  // namespace stillpoint
