#include "new_file.hpp"

#include <unistd.h>

#include "media/file_names.hpp"
#include "output.hpp"

namespace stillpoint::tool {

NewFile::NewFile(const std::string& path) : path_(path), first_name_(text_of("{}.unfinished-{}", path, getpid())) {}

NewFile::~NewFile()
{
    if (!first_name_.empty()) {
        unlink(first_name_.c_str());
    }
}

Result<NewFile> NewFile::at(const std::string& path)
{
    if (auto free = check_name_is_free(path); !free) {
        return pass_on(free.error());
    }
    return NewFile(path);
}

Result<void> NewFile::publish() const { return give_name(first_name_, path_); }

}  // namespace stillpoint::tool
