#pragma once
// A layer's configuration: what its YAML tells the pass (docs/guide/nvhooks.md has the schema).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace stillpoint::nvhooks {

/// The hooks of [NVHooks Table 4.1], and ours for `stillpoint lint`.
enum class Hook : std::uint8_t {
    is_nvm,
    to_absolute_ptr,
    pre_nvm_read,
    post_nvm_read,
    pre_nvm_write,
    pre_nvm_write_gathered,  ///< with writes_gathered
    writes_gathered,
    post_nvm_write,
    pointer_stored,
    blocking_call,
};

/// How post_nvm_write is made.
enum class Marks : std::uint8_t { calls, cards };

/// Durable addresses are those with (address >> shift) == index: what static-check compares with.
struct Window {
    unsigned shift = 0;
    std::uint64_t index = 0;
};

struct CardTable {
    unsigned shift = 0;
    std::uint64_t table = 0;  ///< address of the card of the window's first byte
    /// A mark that sets a card sets the coarse card over it, too. 0: there are none.
    unsigned coarse_shift = 0;
    std::uint64_t coarse_table = 0;

    /// Bytes of memory that one card stands for.
    [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{1} << shift; }
};

struct Allocator {
    std::string function;
    std::string size;  ///< an expression, as in descriptions; empty: unknown
};

struct Optimizations {
    bool static_check = true;
    bool coalesce_fields = true;
    bool coalesce_loops = true;
    bool no_extra_tracking = true;
};

/// How functions are called inside transactions. Names that end in `*` stand for all that begin so.
struct Transactions {
    std::vector<std::string> cloned;  ///< functions whose clones the layer's runtime has
    std::vector<std::string> pure;    ///< functions that are called as they are
};

struct Layer {
    std::string name;
    std::vector<Hook> hooks;
    Marks marks = Marks::calls;
    std::optional<Window> window;
    std::optional<CardTable> cards;
    Optimizations optimizations;
    bool track_newly_allocated = true;
    bool describe_types = false;  ///< for the command `stillpoint cc`: programs may use NVM_AUTO_TYPE
    std::vector<Allocator> allocators;
    std::vector<std::string> keeps_fase;
    std::vector<std::string> blocking;  ///< functions whose calls get the hook blocking_call; C++ ones by their symbol
    std::optional<Transactions> transactions;
    std::vector<std::string> descriptions;  ///< paths of description files, made absolute

    [[nodiscard]] bool has(Hook hook) const;
    /// Whether is_nvm is a comparison in line.
    [[nodiscard]] bool checks_in_line() const { return window && optimizations.static_check; }
};

/// Reads and validates a layer's YAML. Errors: "path:line:column: error: ..." for each thing found wrong,
/// as compilers print them; or that the file cannot be read.
[[nodiscard]] llvm::Expected<Layer> read_layer(llvm::StringRef path);

}  // namespace stillpoint::nvhooks
