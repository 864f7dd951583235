// The library's only copy of fmt's formatting code: every other file includes fmt/core.h, whose
// templates end in the functions instantiated here.

#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::basic_format_args<fmt::buffer_context<char>>,
                                            fmt::detail::locale_ref);
