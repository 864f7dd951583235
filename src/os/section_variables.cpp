#include "os/section_variables.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <link.h>
#include <utility>
#include <string_view>

#include "arch/checksum.hpp"
#include "os/elf_file.hpp"
#include "os/elf_section.hpp"

namespace stillpoint::os {

namespace {

/// As struct sp_persistent_record of stillpoint.h has it.
struct Record {
    const std::byte* address;
    std::uint64_t size;
    std::uint64_t alignment;
    const char* name;
    const char* type;
    const char* file;
};

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// "counter" of "counter.0", which GCC and Clang make of a variable inside a function.
std::string_view without_number(std::string_view name)
{
    const std::size_t dot = name.rfind('.');
    const bool numbered = dot != std::string_view::npos && dot != 0 && dot + 1 < name.size() &&
                          name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
    return numbered ? name.substr(0, dot) : name;
}

/// The name as the source has it.
std::string source_name(std::string_view symbol)
{
    std::string name(without_number(symbol));
    if (name.starts_with("_Z")) {
        int status = 0;
        if (char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status); text != nullptr) {
            name = text;
            std::free(text);  // NOLINT: __cxa_demangle's contract
        }
    }
    constexpr std::string_view unnamed = "(anonymous namespace)::";
    for (std::size_t at = name.find(unnamed); at != std::string::npos; at = name.find(unnamed)) {
        name.erase(at, unnamed.size());
    }
    return name;
}

bool is_known(const std::vector<SectionVariable>& variables, std::uint64_t offset)
{
    return std::ranges::any_of(variables, [offset](const SectionVariable& known) { return offset - known.offset < known.size; });
}

void add_symbols(VariableSection& found, const FileView& file, const Sections& sections, std::uint64_t section_address, ElfW(Word) kind)
{
    for (std::size_t i = 0; i < sections.count; ++i) {
        const auto& table = sections.headers[i];
        if (table.sh_type != kind || table.sh_link >= sections.count) {
            continue;
        }
        const std::uint64_t names = sections.headers[table.sh_link].sh_offset;
        const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
        const auto* const symbols = file.at<ElfW(Sym)>(table.sh_offset, count);
        std::string scope;
        for (std::uint64_t s = 0; symbols != nullptr && s < count; ++s) {
            const auto& symbol = symbols[s];
            const auto type = symbol.st_info & 0xf;
            if (type == STT_FILE) {
                scope = base_name(file.text(names + symbol.st_name));
                continue;
            }
            const std::uint64_t offset = symbol.st_value - section_address;
            if (type != STT_OBJECT || offset >= found.size || symbol.st_size == 0 || symbol.st_size > found.size - offset ||
                is_known(found.variables, offset)) {
                continue;
            }
            const bool is_local = symbol.st_info >> 4 == STB_LOCAL;
            found.variables.push_back(
                {source_name(file.text(names + symbol.st_name)), is_local ? scope : "", "", offset, symbol.st_size, 0});
        }
    }
}

/// The linker may leave zeroes between the records of two objects.
bool add_records(void* context, const LoadedSection& section)
{
    VariableSection& found = *static_cast<VariableSection*>(context);
    for (std::uint64_t at = 0; section.size - at >= sizeof(Record) && at <= section.size;) {
        Record record{};
        std::memcpy(&record, section.memory + at, sizeof record);
        if (record.address == nullptr || record.name == nullptr) {
            at += sizeof(void*);
            continue;
        }
        at += sizeof record;
        const auto offset = static_cast<std::uint64_t>(record.address - found.memory);
        if (offset < found.size && record.size != 0 && record.size <= found.size - offset && !is_known(found.variables, offset)) {
            found.variables.push_back({source_name(record.name), base_name(record.file == nullptr ? "" : record.file),
                                       record.type == nullptr ? "" : record.type, offset, record.size, record.alignment});
        }
    }
    return true;
}

/// The gaps that are more than padding: variables of a program that was stripped, and did not say their names otherwise.
void add_unnamed(VariableSection& found, bool is_stripped)
{
    std::ranges::sort(found.variables, {}, &SectionVariable::offset);
    std::vector<SectionVariable> unnamed;
    std::uint64_t end = 0;
    const auto add_gap = [&](std::uint64_t begin_of_next, std::uint64_t padding_max) {
        if (is_stripped && begin_of_next > end && begin_of_next - end > padding_max) {
            unnamed.push_back({"", "", "", end, begin_of_next - end, 0});
        }
    };
    for (const SectionVariable& variable : found.variables) {
        // Where the alignment is not known, what the offset is a multiple of bounds it.
        const std::uint64_t multiple_of = std::min<std::uint64_t>(variable.offset & (~variable.offset + 1), 64);
        const std::uint64_t alignment = variable.alignment != 0 ? variable.alignment : multiple_of;
        add_gap(variable.offset, alignment == 0 ? 0 : alignment - 1);
        end = std::max(end, variable.offset + variable.size);
    }
    add_gap(found.size, found.variables.empty() ? 0 : 63);
    found.variables.insert(found.variables.end(), unnamed.begin(), unnamed.end());
    std::ranges::sort(found.variables, {}, &SectionVariable::offset);
}

/// Hash of the build id, or of the code where there is no build id. strip changes neither.
std::uint64_t identity_of(const FileView& file, const Sections& sections)
{
    std::uint64_t code = 0;
    for (std::size_t i = 0; i < sections.count; ++i) {
        const auto& section = sections.headers[i];
        const auto* const bytes = section.sh_type != SHT_NOBITS ? file.at<std::byte>(section.sh_offset, section.sh_size) : nullptr;
        if (bytes == nullptr) {
            continue;
        }
        if (file.text(sections.names_offset + section.sh_name) == ".note.gnu.build-id") {
            return checksum64(bytes, section.sh_size, 1);
        }
        if ((section.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR)) {
            code = mix64(code, checksum64(bytes, section.sh_size, 2));
        }
    }
    return code;
}

struct RecordSearch {
    std::vector<VariableSection> sections;
    const char* records;
};

void add_names(VariableSection& found, const FileView& file, const Sections& headers, const LoadedSection& section, const char* records)
{
    // The records of every module are examined: an address tells whose they are.
    visit_sections(records, &add_records, &found);
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(section.memory) - section.load_offset;
    add_symbols(found, file, headers, address, SHT_SYMTAB);
    add_symbols(found, file, headers, address, SHT_DYNSYM);
    const bool has_symbols = std::any_of(headers.headers, headers.headers + headers.count,
                                         [](const auto& header) { return header.sh_type == SHT_SYMTAB; });
    add_unnamed(found, !has_symbols);
}

bool add_section(void* context, const LoadedSection& section)
{
    auto& search = *static_cast<RecordSearch*>(context);
    const FileView file(section.path);
    const Sections headers = sections_of(file);
    VariableSection found;
    found.module = section.module_name;
    found.memory = section.memory;
    found.size = section.size;
    found.identity = identity_of(file, headers);
    found.symbols_hash = section.layout_hash;
    add_names(found, file, headers, section, search.records);
    search.sections.push_back(std::move(found));
    return true;
}

}  // namespace

bool VariableSection::has_unnamed() const noexcept
{
    return std::ranges::any_of(variables, [](const SectionVariable& variable) { return variable.name.empty(); });
}

std::vector<VariableSection> find_variable_sections(const char* section, const char* records)
{
    RecordSearch search{{}, records};
    visit_sections(section, &add_section, &search);
    return std::move(search.sections);
}

}  // namespace stillpoint::os
