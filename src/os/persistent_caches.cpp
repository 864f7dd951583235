#include "os/persistent_caches.hpp"

#include <climits>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "os/descriptor.hpp"

namespace stillpoint::os {

namespace {

bool region_domain_is_cpu_cache(const char* devices, const char* region) noexcept
{
    char path[PATH_MAX];
    std::snprintf(path, sizeof path, "%s/%s/persistence_domain", devices, region);
    const Descriptor file{open(path, O_RDONLY | O_CLOEXEC)};
    char text[32] = {};
    return file.valid() && read(file.get(), text, sizeof text - 1) > 0 && std::strcmp(text, "cpu_cache\n") == 0;
}

}  // namespace

bool caches_are_persistent(const char* devices) noexcept
{
    DIR* const list = opendir(devices);
    if (list == nullptr) {
        return false;
    }
    unsigned regions = 0;
    bool all = true;
    while (const dirent* const entry = readdir(list)) {
        if (std::strncmp(entry->d_name, "region", 6) == 0) {
            ++regions;
            all = all && region_domain_is_cpu_cache(devices, entry->d_name);
        }
    }
    closedir(list);
    return all && regions > 0;
}

}  // namespace stillpoint::os
