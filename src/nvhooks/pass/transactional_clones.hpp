#pragma once
// Transactional clones: a second version of each function that a transaction may call, whose accesses to memory go through the functions
// of the transactional memory ABI [Intel TM ABI 1.1] (src/itm). The functions themselves stay as they are.
//
// A clone of `f` has the name that GCC's -fgnu-tm gives it, so units of both compilers find each other's: `_ZGTt` and the rest of a name of
// C++, or the length and the name of a function in C. What a pointer to a function leads to is found at run time, by tables of pairs in the
// section .tm_clone_table, which the compiler's start files register.

#include <string>

#include "configuration.hpp"

namespace stillpoint::nvhooks {

/// Whether the name is that of a clone.
[[nodiscard]] bool is_clone_name(llvm::StringRef name);
[[nodiscard]] std::string clone_name_of(llvm::StringRef name);

/// Makes the clones of `module`, and the table of those whose address is taken. Returns how many accesses and calls were replaced.
/// Calls inside transactions that make these irrevocable are reported as -stillpoint-unknown-call asks.
unsigned make_transactional_clones(llvm::Module& module, const Configuration& configuration);

}  // namespace stillpoint::nvhooks
