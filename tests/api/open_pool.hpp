#pragma once
// A pool of the test's own, open in this process as long as the object lives.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "stillpoint/stillpoint.h"

class OpenPool {
public:
    explicit OpenPool(const std::string& options) : path_(pool_path())
    {
        std::filesystem::remove(path_);
        const std::string all = "quiet durability=process pool_size_mb=8 pool_max_mb=8 " + options;
        EXPECT_EQ(sp_open(path_.c_str(), all.c_str()), SP_OK) << sp_last_error();
    }
    OpenPool(const OpenPool&) = delete;
    OpenPool& operator=(const OpenPool&) = delete;
    ~OpenPool()
    {
        if (sp_epoch() != 0) {
            EXPECT_EQ(sp_close(), SP_OK) << sp_last_error();
        }
        std::filesystem::remove(path_);
    }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    static std::string pool_path()
    {
        return (std::filesystem::temp_directory_path() / ("api-" + std::to_string(getpid()) + ".pool")).string();
    }

    std::string path_;
};
