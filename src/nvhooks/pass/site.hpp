#pragma once
// A site: one hook to be made, at one place. The passes work on a function's list of sites, and only the last
// one writes code.

#include <cstdint>
#include <vector>

#include "descriptions.hpp"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Value.h"

namespace stillpoint::nvhooks {

enum class SiteKind : std::uint8_t { pre_read, post_read, pre_write, post_write, pointer_stored };

[[nodiscard]] inline bool is_before_access(SiteKind kind) { return kind == SiteKind::pre_read || kind == SiteKind::pre_write; }

struct Site {
    SiteKind kind = SiteKind::post_write;
    llvm::Instruction* anchor = nullptr;
    bool after = false;                     ///< right after the anchor; else right before it
    llvm::Value* pointer = nullptr;         ///< as the program has it: possibly relative
    std::int64_t offset = 0;                ///< bytes from `pointer` to the first byte
    std::uint64_t size = 0;                 ///< bytes; 0: one of the next two tells
    llvm::Value* dynamic_size = nullptr;    ///< i64, known where the hook is made
    const MemoryEffect* effect = nullptr;   ///< of `call`, whose arguments tell the size
    llvm::CallBase* call = nullptr;
    llvm::Value* condition = nullptr;       ///< i1: the access happens at all (masked lanes); null: it does
    llvm::Value* stored_pointer = nullptr;  ///< pointer_stored: the value
    llvm::SmallVector<llvm::Instruction*, 1> accesses;  ///< what it is the hook of
    bool hoisted = false;                   ///< made for a loop
    llvm::Instruction* gathered_at = nullptr;  ///< before which its group of hooks stands; null: it is in none
    bool removed = false;

    /// Whether all is known that merging needs: a constant number of bytes, written for certain.
    [[nodiscard]] bool is_plain() const { return size != 0 && condition == nullptr && kind != SiteKind::pointer_stored; }
};

using Sites = std::vector<Site>;

/// A pointer operand that may hold a relative pointer, to be replaced by the absolute one.
struct PointerUse {
    llvm::Instruction* instruction;
    unsigned operand;
};

}  // namespace stillpoint::nvhooks
