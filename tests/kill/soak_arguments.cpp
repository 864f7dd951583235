#include "soak_arguments.hpp"

#include <cstdlib>

namespace soak {

bool parse(int argc, char** argv, unsigned threads_max, Arguments& arguments)
{
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--verify") {
            arguments.verify_only = true;
        } else if (word == "--report") {
            arguments.report = true;
        } else if (word == "--rings") {
            arguments.rings = true;
        } else if (!word.starts_with("--")) {
            arguments.notes = argv[i];
        } else if (i + 1 == argc) {
            return false;
        } else if (const char* const value = argv[++i]; word == "--threads") {
            arguments.threads = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
        } else if (word == "--operations") {
            arguments.operations = std::strtoull(value, nullptr, 10);
        } else if (word == "--phases") {
            arguments.phases = std::strtoull(value, nullptr, 10);
        } else if (word == "--acknowledged") {
            arguments.acknowledged = value;
        } else if (word == "--defect") {
            arguments.defect = value;
        } else if (word == "--expect") {
            arguments.expect = value;
        } else {
            return false;
        }
    }
    return arguments.notes != nullptr && arguments.threads >= 1 && arguments.threads <= threads_max && arguments.phases != 0;
}

}  // namespace soak
