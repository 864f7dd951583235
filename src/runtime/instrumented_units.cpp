#include "runtime/instrumented_units.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "nvhooks/abi/nvhooks_abi.h"
#include "os/elf_section.hpp"

namespace stillpoint {

namespace {

/// Bounded, so that a record without a terminator does not overrun.
template <std::size_t size>
std::string_view text_of(const char (&field)[size]) noexcept
{
    return {field, strnlen(field, size)};
}

Result<void> check_record(const nvhooks_module& record, std::string_view object)
{
    if (record.magic != NVHOOKS_MODULE_MAGIC) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{}: a record of instrumented code is damaged (magic {:#x}); link the object again from what "
                    "`stillpoint cc` compiled",
                    object, record.magic);
    }
    if (record.abi_version != NVHOOKS_ABI_VERSION) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{}: {} was instrumented for version {} of the hooks, this library has version {}; compile it again "
                    "with the `stillpoint cc` of this version",
                    object, text_of(record.source), record.abi_version, NVHOOKS_ABI_VERSION);
    }
    const bool marks = (record.flags & NVHOOKS_MODULE_MARKS_CARDS) != 0;
    if (marks && record.card_shift != NVHOOKS_CARD_SHIFT) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{}: {} was instrumented for cards of {} bytes (layer {}), this library has cards of {}; compile it "
                    "again with its layer of this version",
                    object, text_of(record.source), std::uint64_t{1} << (record.card_shift & 63u), text_of(record.layer),
                    std::uint64_t{1} << NVHOOKS_CARD_SHIFT);
    }
    return {};
}

/// Units of other layers call functions of the same names, but not this library's.
bool marks_for_this_library(const nvhooks_module& record, const MarksWanted& wanted) noexcept
{
    return (wanted.cards && (record.flags & NVHOOKS_MODULE_MARKS_CARDS) != 0) ||
           ((record.flags & NVHOOKS_MODULE_CALLS_HOOKS) != 0 && text_of(record.layer) == wanted.layer);
}

struct Count {
    const MarksWanted& wanted;
    std::uint64_t units = 0;
    Result<void> outcome;
};

/// The linker lays the records of an object's units one after the other, with zeroes between them where
/// the compiler has aligned them to more than their words.
bool count_section(void* context, const os::LoadedSection& section)
{
    auto& count = *static_cast<Count*>(context);
    for (std::size_t at = 0; section.size - at >= sizeof(nvhooks_module::magic);) {
        nvhooks_module record{};
        std::memcpy(&record, section.memory + at, std::min(sizeof record, section.size - at));
        if (record.magic == 0) {
            at += sizeof record.magic;
            continue;
        }
        if (count.outcome = check_record(record, section.module_name); !count.outcome) {
            return false;
        }
        count.units += marks_for_this_library(record, count.wanted) ? 1u : 0u;
        at += std::min(sizeof record, section.size - at);
    }
    return true;
}

}  // namespace

Result<std::uint64_t> count_marking_units(const MarksWanted& wanted)
{
    Count count{wanted, 0, {}};
    os::visit_sections(NVHOOKS_MODULE_SECTION, &count_section, &count);
    if (!count.outcome) {
        return pass_on(count.outcome.error());
    }
    if (count.units == 0) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "tracker hooks: nothing in this program marks what it writes, so nothing would become durable; compile it "
                    "with `stillpoint cc --runtime={}` or `stillpoint c++ --runtime={}`, or use the default engine with the tracker auto",
                    wanted.layer, wanted.layer);
    }
    return count.units;
}

}  // namespace stillpoint
