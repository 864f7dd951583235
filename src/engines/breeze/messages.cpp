#include "engines/breeze/messages.hpp"

#include "os/code_location.hpp"

namespace stillpoint::breeze {

PlaceText describe(const CodePlace& place) noexcept
{
    PlaceText made{};
    char* end = made.text;
    if (place.file != nullptr) {
        end = fmt::format_to_n(made.text, sizeof made.text - 1, "{}:{}", place.file, place.line).out;
    } else if (place.code != nullptr) {
        // The call, not the instruction that it returns to.
        const os::CodeLocation where = os::locate_code(static_cast<const std::byte*>(place.code) - 1);
        end = fmt::format_to_n(made.text, sizeof made.text - 1, "{}{}{} + {:#x}", where.function, *where.function != '\0' ? " in " : "",
                               where.module_name, where.module_offset)
                  .out;
    } else {
        end = fmt::format_to_n(made.text, sizeof made.text - 1, "an unknown place in the program").out;
    }
    *end = '\0';
    return made;
}

}  // namespace stillpoint::breeze
