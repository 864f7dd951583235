#pragma once
// The meaning of an errno of a pool file to its user.

#include "stillpoint/error.h"

namespace stillpoint {

/// "Input/output error (EIO)": for messages; static text, no malloc.
[[nodiscard]] const char* describe_errno(int error) noexcept;
/// The public code of a system call that failed on a pool file.
[[nodiscard]] sp_error code_of_errno(int error) noexcept;
/// The advice; static text that ends a message.
[[nodiscard]] const char* advice_for(sp_error code) noexcept;
/// The advice for an error, where the errno tells more than its code.
[[nodiscard]] const char* advice_for_errno(int error) noexcept;

}  // namespace stillpoint
