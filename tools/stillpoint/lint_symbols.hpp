#pragma once
// Names and lines of addresses: asks llvm-symbolizer, or addr2line where that is missing.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stillpoint::tool {

struct SourcePlace {
    std::string function;
    std::string file;
    int line = 0;
};

/// Collect addresses with want_…, resolve() them all, then ask.
class LintSymbols {
public:
    void want_code(const std::string& module, std::uint64_t offset) { code_[module][offset]; }
    void want_data(const std::string& module, std::uint64_t offset) { data_[module][offset]; }

    /// One process for each module and some hundred addresses. Without a tool nothing is known.
    void resolve();

    /// Innermost inlined function first; empty where nothing is known.
    [[nodiscard]] std::vector<SourcePlace> code(const std::string& module, std::uint64_t offset) const;
    /// The variable; empty where it is not known.
    [[nodiscard]] std::string data(const std::string& module, std::uint64_t offset) const;

private:
    std::map<std::string, std::map<std::uint64_t, std::vector<SourcePlace>>> code_;
    std::map<std::string, std::map<std::uint64_t, std::string>> data_;
};

}  // namespace stillpoint::tool
