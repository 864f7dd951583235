#pragma once
// Which of the loaded modules call functions of this library's interface: found in what the loader itself reads.

namespace stillpoint::os {

/// True if a module that is loaded now, and is not this library, refers to a name that the library offers (sp_*, nv*,
/// nvhooks_*); names that it only intercepts are not references. Start-up only.
[[nodiscard]] bool loaded_modules_use_this_library() noexcept;

}  // namespace stillpoint::os
