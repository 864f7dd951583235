#pragma once
// For the tests of this layer: a directory of its own for each test, removed afterwards.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace stillpoint::test {

class TemporaryDirectory {
public:
    /// Below $TMPDIR, or below the working directory (the build's). `parent` overrides both.
    explicit TemporaryDirectory(const std::string& parent = {})
    {
        const char* const from_environment = std::getenv("TMPDIR");
        std::string name = !parent.empty() ? parent : from_environment != nullptr ? from_environment : ".";
        name += "/stillpoint-test-XXXXXX";
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("cannot make " + name);
        }
        path_ = std::filesystem::absolute(name).string();
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

}  // namespace stillpoint::test
