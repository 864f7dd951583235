// Detection of persistent caches. Invariant: a doubt is a no, since a needless write back costs time and a
// missing one costs data.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "os/persistent_caches.hpp"

namespace stillpoint::os {
namespace {

class PersistentCaches : public testing::Test {
protected:
    PersistentCaches()
    {
        const char* const parent = std::getenv("TMPDIR");
        std::string name = std::string{parent != nullptr ? parent : "."} + "/devices-XXXXXX";
        devices_ = mkdtemp(name.data());
    }
    ~PersistentCaches() override { std::filesystem::remove_all(devices_); }

    void add_region(const std::string& name, const std::string& domain) const
    {
        std::filesystem::create_directory(devices_ / name);
        if (!domain.empty()) {
            std::ofstream{devices_ / name / "persistence_domain"} << domain << '\n';
        }
    }

    std::filesystem::path devices_;
};

TEST_F(PersistentCaches, AreNotThereWithoutPersistentMemory)
{
    EXPECT_FALSE(caches_are_persistent((devices_ / "missing").c_str()));
    EXPECT_FALSE(caches_are_persistent(devices_.c_str()));
}

TEST_F(PersistentCaches, AreThereWhenEveryRegionSaysSo)
{
    add_region("region0", "cpu_cache");
    add_region("region1", "cpu_cache");
    add_region("namespace0.0", "");
    EXPECT_TRUE(caches_are_persistent(devices_.c_str()));
}

TEST_F(PersistentCaches, AreNotTrustedWhenOneRegionSaysOtherwiseOrNothing)
{
    add_region("region0", "cpu_cache");
    add_region("region1", "memory_controller");
    EXPECT_FALSE(caches_are_persistent(devices_.c_str()));
    std::filesystem::remove_all(devices_ / "region1");
    add_region("region2", "");
    EXPECT_FALSE(caches_are_persistent(devices_.c_str()));
}

}  // namespace
}  // namespace stillpoint::os
