#pragma once
// The variables in a section of a loaded module: their names, places and sizes. They come from the records that the
// program carries (struct sp_persistent_record, which survives strip), otherwise from the symbol tables of its file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stillpoint::os {

struct SectionVariable {
    std::string name;   ///< with its namespaces; empty: these bytes have no name
    std::string scope;  ///< base name of the source file, where that is known; empty
    std::string type;   ///< as the source spells it, where the program carries that; empty
    std::uint64_t offset = 0;  ///< in the section
    std::uint64_t size = 0;
    std::uint64_t alignment = 0;  ///< 0: not known
};

struct VariableSection {
    std::string module;        ///< base name of the module's file
    std::byte* memory = nullptr;
    std::uint64_t size = 0;
    std::uint64_t identity = 0;     ///< of this build, stripped or not: of its build id, or of its code
    std::uint64_t symbols_hash = 0; ///< LoadedSection::layout_hash
    std::vector<SectionVariable> variables;  ///< by offset; together with unnamed bytes they cover the section, padding aside

    [[nodiscard]] bool has_unnamed() const noexcept;
};

/// The sections called `section` of all modules loaded now, with what the sections called `records` say of them.
/// Start-up only: reads files. Throws std::bad_alloc.
[[nodiscard]] std::vector<VariableSection> find_variable_sections(const char* section, const char* records);

}  // namespace stillpoint::os
