#include "os/numa.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "support/temporary_directory.hpp"

namespace stillpoint::os {
namespace {

/// A folder like the kernel's, of a machine that is not this one.
class FakeNodes : public ::testing::Test {
protected:
    void write(const std::string& name, const std::string& text)
    {
        const std::filesystem::path path = folder_.file(name);
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << '\n';
    }
    NumaNodes read() { return NumaNodes::read(folder_.path().c_str()); }

    test::TemporaryDirectory folder_;
};

TEST_F(FakeNodes, AllNodesWithCpusAreFound)
{
    write("online", "0-1,4");
    write("node0/cpulist", "0-1,8-9");
    write("node1/cpulist", "");
    write("node4/cpulist", "2,7");
    const NumaNodes nodes = read();
    ASSERT_EQ(nodes.count(), 2U);
    EXPECT_EQ(nodes.number(0), 0U);
    EXPECT_EQ(nodes.number(1), 4U);
    EXPECT_EQ(CPU_COUNT(&nodes.cpus(0)), 4);
    EXPECT_TRUE(CPU_ISSET(9, &nodes.cpus(0)));
    EXPECT_EQ(CPU_COUNT(&nodes.cpus(1)), 2);
    EXPECT_TRUE(CPU_ISSET(7, &nodes.cpus(1)));
}

TEST_F(FakeNodes, WithoutTheFilesAllCpusAreOneNode)
{
    const NumaNodes nodes = read();
    EXPECT_EQ(nodes.count(), 1U);
    EXPECT_TRUE(nodes.run_near(0));
    write("online", "x,-");
    EXPECT_EQ(read().count(), 1U);
}

TEST_F(FakeNodes, AThreadThatMayNotRunThereStaysWhereItIs)
{
    write("online", "0");
    write("node0/cpulist", "1020-1023");
    EXPECT_FALSE(read().run_near(0));
}

TEST(NumaNodes, TheMachinesOwnCanBeReadAndPagesSpread)
{
    const NumaNodes nodes = NumaNodes::read();
    ASSERT_GE(nodes.count(), 1U);
    void* const memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    nodes.spread_pages(memory, 1 << 20);
    static_cast<char*>(memory)[5000] = 1;
    munmap(memory, 1 << 20);
}

}  // namespace
}  // namespace stillpoint::os
