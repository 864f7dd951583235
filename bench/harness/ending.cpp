#include "ending.hpp"

#include <cstdio>
#include <cstdlib>
#include <sysexits.h>

namespace bench {

void out_of_memory(std::string_view why)
{
    std::fprintf(stderr, "bench: no memory for the workload's data%s%.*s\n", why.empty() ? "" : ": ", static_cast<int>(why.size()),
                 why.data());
    std::_Exit(EX_OSERR);
}

void give_up(std::string_view why) { give_up(why, EX_SOFTWARE); }

void give_up(std::string_view why, int exit_code)
{
    std::fprintf(stderr, "bench: %.*s\n", static_cast<int>(why.size()), why.data());
    std::_Exit(exit_code);
}

}  // namespace bench
