#include "layer.hpp"

#include <algorithm>

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/YAMLTraits.h"
#include "llvm/Support/raw_ostream.h"
#include "nvhooks/abi/nvhooks_abi.h"
#include "yaml_errors.hpp"

LLVM_YAML_IS_SEQUENCE_VECTOR(stillpoint::nvhooks::Allocator)
static_assert(sizeof(nvhooks_module::layer) == 32, "what the message about `name` says");

namespace llvm::yaml {

using stillpoint::nvhooks::Allocator;
using stillpoint::nvhooks::CardTable;
using stillpoint::nvhooks::Hook;
using stillpoint::nvhooks::Layer;
using stillpoint::nvhooks::Marks;
using stillpoint::nvhooks::Optimizations;
using stillpoint::nvhooks::Transactions;
using stillpoint::nvhooks::Window;

/// yes and no, on and off, as well as true and false.
struct Switch {
    bool on = false;
};

template <>
struct ScalarTraits<Switch> {
    static void output(const Switch& value, void*, raw_ostream& out) { out << (value.on ? "yes" : "no"); }
    static StringRef input(StringRef text, void*, Switch& value)
    {
        if (text == "yes" || text == "true" || text == "on") {
            value.on = true;
            return {};
        }
        value.on = false;
        return text == "no" || text == "false" || text == "off" ? StringRef() : StringRef("expected yes or no");
    }
    static QuotingType mustQuote(StringRef) { return QuotingType::None; }
};

template <>
struct ScalarEnumerationTraits<Marks> {
    static void enumeration(IO& io, Marks& value)
    {
        io.enumCase(value, "calls", Marks::calls);
        io.enumCase(value, "cards", Marks::cards);
    }
};

template <>
struct ScalarEnumerationTraits<Hook> {
    static void enumeration(IO& io, Hook& value)
    {
        io.enumCase(value, "is_nvm", Hook::is_nvm);
        io.enumCase(value, "to_absolute_ptr", Hook::to_absolute_ptr);
        io.enumCase(value, "pre_nvm_read", Hook::pre_nvm_read);
        io.enumCase(value, "post_nvm_read", Hook::post_nvm_read);
        io.enumCase(value, "pre_nvm_write", Hook::pre_nvm_write);
        io.enumCase(value, "pre_nvm_write_gathered", Hook::pre_nvm_write_gathered);
        io.enumCase(value, "writes_gathered", Hook::writes_gathered);
        io.enumCase(value, "post_nvm_write", Hook::post_nvm_write);
        io.enumCase(value, "pointer_stored", Hook::pointer_stored);
        io.enumCase(value, "blocking_call", Hook::blocking_call);
    }
};

template <>
struct MappingTraits<Window> {
    static void mapping(IO& io, Window& window)
    {
        io.mapRequired("shift", window.shift);
        io.mapRequired("index", window.index);
    }
    static std::string validate(IO&, Window& window) { return window.shift >= 12 && window.shift <= 63 ? "" : "window: shift is 12 to 63"; }
};

template <>
struct MappingTraits<CardTable> {
    static void mapping(IO& io, CardTable& cards)
    {
        io.mapRequired("shift", cards.shift);
        io.mapRequired("table", cards.table);
        io.mapOptional("coarse-shift", cards.coarse_shift);
        io.mapOptional("coarse-table", cards.coarse_table);
    }
    static std::string validate(IO&, CardTable& cards)
    {
        if (cards.shift < 4 || cards.shift > 21) {
            return "cards: shift is 4 to 21 (a card of 16 bytes to 2 MiB)";
        }
        if ((cards.coarse_shift == 0) != (cards.coarse_table == 0) || (cards.coarse_shift != 0 && cards.coarse_shift <= cards.shift)) {
            return "cards: coarse-shift and coarse-table come together, and a coarse card stands for more than a card";
        }
        return "";
    }
};

template <>
struct MappingTraits<Allocator> {
    static void mapping(IO& io, Allocator& allocator)
    {
        io.mapRequired("function", allocator.function);
        io.mapOptional("size", allocator.size);
    }
};

namespace {
void map_switch(IO& io, const char* key, bool& value)
{
    Switch as_text{value};
    io.mapOptional(key, as_text);
    value = as_text.on;
}
}  // namespace

template <>
struct MappingTraits<Optimizations> {
    static void mapping(IO& io, Optimizations& optimizations)
    {
        map_switch(io, "static-check", optimizations.static_check);
        map_switch(io, "coalesce-fields", optimizations.coalesce_fields);
        map_switch(io, "coalesce-loops", optimizations.coalesce_loops);
        map_switch(io, "no-extra-tracking", optimizations.no_extra_tracking);
    }
};

template <>
struct MappingTraits<Transactions> {
    static void mapping(IO& io, Transactions& transactions)
    {
        io.mapOptional("cloned", transactions.cloned);
        io.mapOptional("pure", transactions.pure);
    }
};

template <>
struct MappingTraits<Layer> {
    static void mapping(IO& io, Layer& layer)
    {
        io.mapRequired("name", layer.name);
        io.mapOptional("hooks", layer.hooks);
        io.mapOptional("transactions", layer.transactions);
        io.mapOptional("marks", layer.marks);
        io.mapOptional("window", layer.window);
        io.mapOptional("cards", layer.cards);
        io.mapOptional("optimizations", layer.optimizations);
        map_switch(io, "track-newly-allocated", layer.track_newly_allocated);
        map_switch(io, "describe-types", layer.describe_types);
        io.mapOptional("allocators", layer.allocators);
        io.mapOptional("keeps-fase", layer.keeps_fase);
        io.mapOptional("blocking", layer.blocking);
        io.mapOptional("descriptions", layer.descriptions);
    }
    static std::string validate(IO&, Layer& layer)
    {
        if (layer.name.empty() || layer.name.size() > sizeof(nvhooks_module::layer) - 1) {
            return "name: 1 to 31 bytes";
        }
        if (layer.hooks.empty() && !layer.transactions) {
            return "hooks: a layer needs at least one, or transactions";
        }
        for (std::size_t i = 0; i < layer.hooks.size(); ++i) {
            if (std::count(layer.hooks.begin(), layer.hooks.end(), layer.hooks[i]) > 1) {
                return "hooks: one is named twice";
            }
        }
        if (layer.has(Hook::pre_nvm_write_gathered) != layer.has(Hook::writes_gathered) ||
            (layer.has(Hook::writes_gathered) && (!layer.has(Hook::pre_nvm_write) || layer.has(Hook::to_absolute_ptr)))) {
            return "hooks: pre_nvm_write_gathered and writes_gathered go together, beside pre_nvm_write and without to_absolute_ptr";
        }
        if (layer.marks == Marks::cards && (!layer.window || !layer.optimizations.static_check)) {
            return "marks: cards need a window, and the optimization static-check";
        }
        if (layer.marks == Marks::cards && !layer.has(Hook::post_nvm_write)) {
            return "marks: cards stand for the hook post_nvm_write, which is not in hooks";
        }
        if (layer.marks == Marks::cards && layer.has(Hook::to_absolute_ptr)) {
            return "marks: cards need absolute addresses; take to_absolute_ptr out of hooks";
        }
        if (layer.blocking.empty() == layer.has(Hook::blocking_call)) {
            return "blocking: the functions whose calls get the hook blocking_call; one is not without the other";
        }
        if (layer.window && !layer.optimizations.static_check && !layer.has(Hook::is_nvm)) {
            return "optimizations: without static-check the hook is_nvm must be in hooks";
        }
        if (layer.has(Hook::to_absolute_ptr) && !layer.has(Hook::is_nvm) && !layer.window) {
            return "hooks: to_absolute_ptr needs is_nvm or a window, which tell relative pointers from others";
        }
        return "";
    }
};

}  // namespace llvm::yaml

LLVM_YAML_IS_FLOW_SEQUENCE_VECTOR(stillpoint::nvhooks::Hook)
static_assert(NVHOOKS_WINDOW_SHIFT > NVHOOKS_CARD_SHIFT, "a window has cards");

namespace stillpoint::nvhooks {

namespace {

/// The card table of libstillpoint, where the layer's window is its own.
std::optional<CardTable> default_cards(const Window& window)
{
    if (window.shift != NVHOOKS_WINDOW_SHIFT) {
        return std::nullopt;
    }
    return CardTable{NVHOOKS_CARD_SHIFT, NVHOOKS_CARD_TABLE_FOR(window.index), NVHOOKS_COARSE_SHIFT,
                     NVHOOKS_COARSE_TABLE_FOR(window.index)};
}

}  // namespace

bool Layer::has(Hook hook) const { return std::find(hooks.begin(), hooks.end(), hook) != hooks.end(); }

llvm::Expected<Layer> read_layer(llvm::StringRef path)
{
    auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!file) {
        return llvm::createStringError(file.getError(), "%s: error: the layer's configuration cannot be read: %s", path.str().c_str(),
                                       file.getError().message().c_str());
    }
    Layer layer;
    if (auto error = read_yaml(**file, path, layer)) {
        return error;
    }
    if (layer.marks == Marks::cards && !layer.cards) {
        layer.cards = default_cards(*layer.window);
        if (!layer.cards) {
            return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                           "%s: error: cards: needed, since the window is not libstillpoint's", path.str().c_str());
        }
    }
    for (std::string& description : layer.descriptions) {
        if (!llvm::sys::path::is_absolute(description)) {
            llvm::SmallString<256> whole(llvm::sys::path::parent_path(path));
            llvm::sys::path::append(whole, description);
            description = std::string(whole);
        }
    }
    return layer;
}

}  // namespace stillpoint::nvhooks
