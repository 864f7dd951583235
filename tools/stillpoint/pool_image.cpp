#include "pool_image.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <memory>

#include "heap/layout_table.hpp"
#include "heap/image_heap.hpp"
#include "heap/span_table_view.hpp"
#include "output.hpp"
#include "pool/image.hpp"
#include "runtime/durable_globals_table.hpp"

namespace stillpoint::tool {

using heap::SpanKind;
using heap::SpanTableView;

PoolImage::PoolImage(const OpenedPool& opened, const RecoveredImage& image, std::vector<HandleFacts> handles)
    : base_address_(opened.pool.facts().base_address), bytes_(image.base, image.bytes),
      heap_(heap_options_of(image.base, opened.pool.facts(), image.bytes, opened.driver->table_format)), handles_(std::move(handles))
{
    std::ranges::sort(handles_, {}, &HandleFacts::handle);
    read_runs();
    read_globals();
    read_objects(opened, image.facts);
}

void PoolImage::read_runs()
{
    const SpanTableView table(heap_);
    if (!table.check_room()) {
        return;
    }
    for (std::uint64_t span = 0; span < table.spans();) {
        const auto covered = table.validate(span);
        if (covered && table.word(span).entry().kind() != SpanKind::free_or_rest && !table.is_table_run(span)) {
            runs_.push_back({span, *covered});
        }
        span += covered ? *covered : 1;
    }
}

void PoolImage::read_globals()
{
    for (layout::DurableGlobals& entry : reinterpret_cast<layout::ImageHeader*>(heap_.image_base)->durable_globals) {
        if (entry.name[0] == '\0') {
            continue;
        }
        const auto block = durable_globals::read_block(heap_, entry);
        if (!block) {
            continue;  // Damage, of which verify_all() has told.
        }
        const std::uint64_t begin = base_address_ + static_cast<std::uint64_t>(block->memory - heap_.image_base);
        for (const durable_globals::KeptVariable& kept : block->variables) {
            const auto& variable = kept.variable;
            globals_.push_back(
                {variable.name, variable.scope, variable.type, variable.module, begin + kept.offset, variable.size, kept.retired});
        }
    }
}

void PoolImage::read_objects(const OpenedPool& opened, const std::vector<FactRow>& rows)
{
    if (opened.driver->facts == nullptr) {
        return;
    }
    const auto columns = opened.driver->facts->columns;
    const auto column = [columns](std::string_view name) {
        return static_cast<std::size_t>(std::ranges::find(columns, name, &FactColumn::name) - columns.begin());
    };
    const std::size_t name = column("name");
    const std::size_t type = column("type");
    const std::size_t address = column("address");
    const std::size_t to_replay = column("logged_operations");
    for (const FactRow& row : rows) {
        if (std::max({name, type, address, to_replay}) < row.size()) {
            objects_.push_back({row[name].text, row[type].text, row[address].number, row[to_replay].number});
        }
    }
}

std::span<const std::byte> PoolImage::at(std::uint64_t address, std::uint64_t bytes) const noexcept
{
    const std::uint64_t offset = address - base_address_;
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
        return {};
    }
    return bytes_.subspan(offset, bytes);
}

LiveBlock PoolImage::block_of(std::uint64_t address) const noexcept
{
    const SpanTableView table(heap_);
    const std::uint64_t spans_offset = table.layout().spans_offset;
    const std::uint64_t offset = address - base_address_;
    if (offset < spans_offset || offset >= bytes_.size()) {
        return {};
    }
    const std::uint64_t span = (offset - spans_offset) / heap::span_bytes;
    const auto after = std::ranges::upper_bound(runs_, span, {}, &Run::first);
    if (after == runs_.begin() || span - (after - 1)->first >= (after - 1)->spans) {
        return {};
    }
    const Run& run = *(after - 1);
    const heap::SpanWord word = table.word(run.first);
    const std::uint64_t begin = base_address_ + spans_offset + run.first * heap::span_bytes;
    if (word.entry().kind() == SpanKind::large) {
        return {begin, run.spans * heap::span_bytes, word.layout()};
    }
    const heap::SizeClass& c = heap::size_classes[word.entry().payload()];
    const std::uint64_t inside = address - begin;
    const std::uint64_t number = inside >= c.first_block ? (inside - c.first_block) / c.block_bytes : c.blocks;
    if (number >= c.blocks || table.mark(run.first, c, static_cast<std::uint32_t>(number)) == 0) {
        return {};
    }
    return {begin + c.first_block + number * c.block_bytes, c.block_bytes, word.layout()};
}

void PoolImage::for_each_block(const std::function<void(const LiveBlock&)>& visit) const
{
    const SpanTableView table(heap_);
    for (const Run& run : runs_) {
        const heap::SpanWord word = table.word(run.first);
        const std::uint64_t begin = base_address_ + table.layout().spans_offset + run.first * heap::span_bytes;
        if (word.entry().kind() == SpanKind::large) {
            visit({begin, run.spans * heap::span_bytes, word.layout()});
            continue;
        }
        const heap::SizeClass& c = heap::size_classes[word.entry().payload()];
        for (std::uint32_t block = 0; block < c.blocks; ++block) {
            if (table.mark(run.first, c, block) != 0) {
                visit({begin + c.first_block + std::uint64_t{block} * c.block_bytes, c.block_bytes, word.layout()});
            }
        }
    }
}

std::string PoolImage::layout_name(const LiveBlock& block) const
{
    const SpanTableView table(heap_);
    if (block.layout == 0 || !table.is_logged() || block.layout > heap::LayoutTable::records_max) {
        return {};
    }
    const auto& name = table.layouts().records[block.layout - 1].type_name;
    const std::string kept(name, strnlen(name, sizeof name));
    // As std::type_info has it, where the layout was found from a C++ type.
    int status = 0;
    const bool may_be_mangled = !kept.empty() && (kept[0] == 'N' || (kept[0] >= '0' && kept[0] <= '9'));
    const std::unique_ptr<char, decltype(&std::free)> plain(
        may_be_mangled ? abi::__cxa_demangle(kept.c_str(), nullptr, nullptr, &status) : nullptr, &std::free);
    return plain ? plain.get() : kept;
}

Result<Verification> visit_pool_image(const OpenedPool& opened, bool progress, const std::function<void(const PoolImage&)>& visit)
{
    if (opened.driver->make == nullptr) {
        return fail(SP_E_UNSUPPORTED, 0, "pools of the engine {} have no image with handles; `stillpoint dump` shows their objects",
                    opened.driver->format.name);
    }
    std::vector<HandleFacts> handles;
    return verify_all(
        opened, progress, [&handles](const HandleFacts& handle) { handles.push_back(handle); },
        [&](const RecoveredImage& image) { visit(PoolImage(opened, image, std::move(handles))); });
}

}  // namespace stillpoint::tool
