#pragma once
// A file that has its name only when it is whole: it is made under another name in the same folder first.

#include <string>

#include "core/result.hpp"

namespace stillpoint::tool {

class NewFile {
public:
    /// Errors: pool_exists (something has that name).
    [[nodiscard]] static Result<NewFile> at(const std::string& path);
    NewFile(NewFile&& other) noexcept = default;
    NewFile& operator=(NewFile&&) = delete;
    /// Removes the file under its first name, if it is there.
    ~NewFile();

    /// The name to make it under.
    [[nodiscard]] const std::string& first_name() const noexcept { return first_name_; }
    /// Gives the file its name, durably, unless something else has got it meanwhile. Errors: pool_exists, io.
    [[nodiscard]] Result<void> publish() const;

private:
    explicit NewFile(const std::string& path);

    std::string path_;
    std::string first_name_;
};

}  // namespace stillpoint::tool
