// Invariants: an instruction of a local function is found by its name, one of a library by the library's, and an
// address of no object by neither.

#include "os/code_location.hpp"

#include <cstring>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

namespace stillpoint::os {
namespace {

[[gnu::noinline]] int local_function_of_the_test(int value)
{
    asm volatile("");
    return value + 1;
}

const void* inside(const void* function) { return static_cast<const char*>(function) + 1; }

TEST(CodeLocation, NamesALocalFunctionAndItsProgram)
{
    ASSERT_EQ(local_function_of_the_test(1), 2);
    const CodeLocation found = locate_code(inside(reinterpret_cast<const void*>(&local_function_of_the_test)));
    EXPECT_STREQ(found.module_name, "os_test");
    EXPECT_NE(std::strstr(found.function, "local_function_of_the_test"), nullptr) << found.function;
    EXPECT_EQ(found.function_begin, reinterpret_cast<std::uintptr_t>(&local_function_of_the_test));
    EXPECT_NE(found.module_offset, 0u);
}

TEST(CodeLocation, NamesALibrary)
{
    const CodeLocation found = locate_code(inside(reinterpret_cast<const void*>(&gnu_get_libc_version)));
    EXPECT_NE(std::strstr(found.module_name, "libc"), nullptr) << found.module_name;
    EXPECT_STREQ(found.function, "gnu_get_libc_version");
}

TEST(CodeLocation, KnowsNothingOfAnAddressOutsideEveryObject)
{
    const int on_stack = 0;
    const CodeLocation found = locate_code(&on_stack);
    EXPECT_STREQ(found.module_name, "?");
    EXPECT_STREQ(found.function, "");
}

}  // namespace
}  // namespace stillpoint::os
