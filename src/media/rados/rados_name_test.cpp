// Names of pools in Ceph. Invariants: what is accepted names one Ceph pool and one pool; anything else is refused with the form to use.

#include "media/rados/rados_name.hpp"

#include <gtest/gtest.h>

namespace stillpoint {
namespace {

TEST(RadosName, HasACephPoolAndAName)
{
    const auto name = parse_rados_name("rados://data/bank-1.pool");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->ceph_pool, "data");
    EXPECT_EQ(name->name, "bank-1.pool");
    EXPECT_EQ(name->configuration, "");
    EXPECT_EQ(name->user, "");
}

TEST(RadosName, TakesConfigurationAndUser)
{
    const auto name = parse_rados_name("rados://data/bank?conf=/etc/ceph/other.conf&id=bank");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->configuration, "/etc/ceph/other.conf");
    EXPECT_EQ(name->user, "bank");
    EXPECT_EQ(parse_rados_name("rados://data/bank?id=bank")->user, "bank");
}

TEST(RadosName, RefusesEverythingElse)
{
    for (const char* const text : {"", "bank.pool", "/srv/bank.pool", "rados:/data/bank", "rados://", "rados://data", "rados:///bank",
                                   "rados://data/", "rados://data/a/b", "rados://da ta/bank", "rados://data/b\nank", "rados://data/bank?",
                                   "rados://data/bank?conf=", "rados://data/bank?conf=ceph.conf", "rados://data/bank?id=",
                                   "rados://data/bank?id=a/b", "rados://data/bank?size=4", "rados://data/bank?id=a&&id=b"}) {
        const auto name = parse_rados_name(text);
        if (std::string_view(text) == "rados://data/bank?") {
            EXPECT_TRUE(name);  // An empty question asks for nothing.
            continue;
        }
        ASSERT_FALSE(name) << text;
        EXPECT_EQ(name.error().code, SP_E_INVALID_ARGUMENT);
        EXPECT_NE(name.error().text().find("rados://CEPHPOOL/NAME"), std::string_view::npos) << name.error().text();
    }
    EXPECT_FALSE(parse_rados_name("rados://data/" + std::string(128, 'a')));
    EXPECT_TRUE(parse_rados_name("rados://data/" + std::string(127, 'a')));
}

TEST(RadosName, OfACephPoolAloneNeedsNoName)
{
    for (const char* const text :
         {"rados://data", "rados://data/bank", "rados://data/", "rados://data?id=bank", "rados://data/a/b?id=bank"}) {
        const auto name = parse_ceph_pool(text);
        ASSERT_TRUE(name) << text;
        EXPECT_EQ(name->ceph_pool, "data");
        EXPECT_EQ(name->name, "");
        EXPECT_EQ(name->user, std::string_view(text).ends_with("?id=bank") ? "bank" : "");
    }
    for (const char* const text :
         {"", "/srv/data", "rados://", "rados:///bank", "rados://da ta", "rados://data?size=3", "rados://data?conf=a"}) {
        const auto name = parse_ceph_pool(text);
        ASSERT_FALSE(name) << text;
        EXPECT_EQ(name.error().code, SP_E_INVALID_ARGUMENT);
        EXPECT_NE(name.error().text().find("named rados://CEPHPOOL, with"), std::string_view::npos) << name.error().text();
    }
}

TEST(RadosName, PathsOfFilesAreNone)
{
    EXPECT_TRUE(is_rados_name("rados://data/bank"));
    EXPECT_TRUE(is_rados_name("rados://"));
    EXPECT_FALSE(is_rados_name("rados"));
    EXPECT_FALSE(is_rados_name("./rados://data/bank"));
    EXPECT_FALSE(is_rados_name(""));
}

}  // namespace
}  // namespace stillpoint
