#pragma once
// A new pool of a chosen format of its engine, as an older version of the library has made it.

#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "core/units.hpp"
#include "media/open.hpp"
#include "pool/pool.hpp"

namespace stillpoint::test {

/// 16 MiB that may grow to 64. Call it in ASSERT_NO_FATAL_FAILURE where the test goes on.
inline void make_pool_of_format(const std::string& path, const EngineFormat& format, Durability durability)
{
    const Pool::CreateOptions create{format, 16 * mib, 64 * mib};
    MediumOptions medium;
    medium.path = path;
    medium.durability = durability;
    auto created = create_medium(medium, *Pool::file_bytes_for(create));
    ASSERT_TRUE(created) << created.error().text();
    ASSERT_TRUE(Pool::create(std::move(*created), create));
}

}  // namespace stillpoint::test
