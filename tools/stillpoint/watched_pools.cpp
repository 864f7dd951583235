#include "watched_pools.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "media/open.hpp"
#include "os/descriptor.hpp"
#include "pool/superblock_layout.hpp"

namespace stillpoint::tool {

namespace {

bool begins_as_a_pool(const std::string& path)
{
    const os::Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    std::uint8_t magic[sizeof layout::superblock_magic];
    return file.valid() && pread(file.get(), magic, sizeof magic, 0) == sizeof magic &&
           std::memcmp(magic, layout::superblock_magic, sizeof magic) == 0;
}

/// Where the file is a regular one: its device and number.
std::optional<std::pair<dev_t, ino_t>> identity_of(const std::string& path)
{
    struct stat facts{};
    if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return std::nullopt;
    }
    return std::pair{facts.st_dev, facts.st_ino};
}

std::vector<std::string> matches_of(const std::string& pattern)
{
    glob_t found{};
    std::vector<std::string> paths;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
    return paths;
}

}  // namespace

Result<WatchedPool> look_at_pool(const std::string& path)
{
    WatchedPool pool{path, lock_holder_pid(path), std::nullopt, {}};
    if (pool.process == 0) {
        return fail(SP_E_NOT_OPEN, 0, "{}: no process has the pool open", path);
    }
    auto view = open_statistics(pool.process, path);
    if (!view) {
        return pass_on(view.error());
    }
    pool.view = std::move(*view);
    return pool;
}

std::vector<WatchedPool> look_at_pools(const std::vector<std::string>& named)
{
    std::vector<WatchedPool> pools;
    std::vector<std::pair<dev_t, ino_t>> seen;
    const auto add = [&](const std::string& path, bool is_named) {
        const auto identity = identity_of(path);
        if (identity && std::ranges::find(seen, *identity) != seen.end()) {
            return;
        }
        auto pool = identity || lies_in_no_file(path) ? look_at_pool(path)
                                                      : Result<WatchedPool>{WatchedPool{path, 0, std::nullopt, "there is no such file"}};
        if (pool) {
            pools.push_back(std::move(*pool));
        } else if (is_named || begins_as_a_pool(path)) {
            const bool is_usual = pool.error().code == SP_E_NOT_OPEN;
            pools.push_back({path, 0, std::nullopt, is_usual ? std::string{} : std::string(pool.error().text())});
        } else {
            return;
        }
        if (identity) {
            seen.push_back(*identity);
        }
    };
    for (const std::string& name : named) {
        const bool is_pattern = !lies_in_no_file(name) && name.find_first_of("*?[") != std::string::npos && !identity_of(name);
        if (!is_pattern) {
            add(name, true);
            continue;
        }
        for (const std::string& path : matches_of(name)) {
            if (identity_of(path)) {
                add(path, false);
            }
        }
    }
    return pools;
}

}  // namespace stillpoint::tool
