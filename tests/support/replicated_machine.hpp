#pragma once
// For tests of pools with a replica: a machine whose files, and a cluster whose pools, are disks in memory. No Ceph is needed.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "media/open.hpp"
#include "media/replica/page_transfer.hpp"
#include "media/replica/replica_record.hpp"
#include "os/log.hpp"
#include "support/fake_medium.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::testing {

/// Takes the place of the file system and the cluster while it lives. Records of replicas are real files, in a folder of their own.
class ReplicatedMachine final : public MediumOpener {
public:
    using DiskPointer = std::shared_ptr<FakeDisk>;
    struct File {
        DiskPointer disk;
        std::uint64_t number;
    };
    /// Deep: what happens afterwards does not change it.
    struct State {
        std::map<std::string, File> files;
        std::string record;  ///< empty: there is none
    };

    ReplicatedMachine()
    {
        set_medium_opener(this);
        os::set_least_severity(os::Severity::error);
    }
    ~ReplicatedMachine() override
    {
        set_medium_opener(nullptr);
        os::set_least_severity(os::Severity::note);
    }

    [[nodiscard]] std::string local() const { return directory_.file("a.pool"); }
    [[nodiscard]] static std::string replica() { return "rados://data/a"; }
    [[nodiscard]] std::string record_path() const { return ReplicaRecordFile::path_for(local()); }

    Result<std::unique_ptr<Medium>> create(const MediumOptions& options, std::uint64_t size) override
    {
        const auto disk = std::make_shared<FakeDisk>(size);
        disk->path = options.path;
        disk->named = !options.publish_later && !lies_in_no_file(options.path);
        disk->crash_at = crash_at(options.path);
        files_[options.path] = {disk, ++files_made_};
        return attach(disk);
    }

    Result<std::unique_ptr<Medium>> open(const MediumOptions& options) override
    {
        const auto found = files_.find(options.path);
        if (found == files_.end() || !found->second.disk->named) {
            return fail(SP_E_POOL_MISSING, ENOENT, "{} is not there", options.path);
        }
        const DiskPointer& disk = found->second.disk;
        auto medium = attach(disk);
        if (!lies_in_no_file(options.path)) {
            return medium;
        }
        if (does_not_answer) {
            return fail(SP_E_IO, ETIMEDOUT, "{}: the cluster does not answer", options.path);
        }
        disk->writer = options.writer == 0 ? 0 : disk->writer;
        if (auto finished = finish_transfer(*medium); !finished) {
            return pass_on(finished.error());
        }
        return medium;
    }

    Result<void> replace(const std::string& first_name, const std::string& path) override
    {
        around_replace.push_back(state());
        files_.at(first_name).disk->path = path;
        files_[path] = files_.at(first_name);
        files_.erase(first_name);
        around_replace.push_back(state());
        return {};
    }

    std::uint64_t file_number(const std::string& path) override { return files_.contains(path) ? files_.at(path).number : 0; }

    /// A file that is copied over another, or in a place of its own.
    void put(const std::string& path, const Bytes& content)
    {
        const auto disk = std::make_shared<FakeDisk>(content);
        disk->path = path;
        files_[path] = {disk, ++files_made_};
    }
    void remove(const std::string& path) { files_.erase(path); }
    [[nodiscard]] bool has(const std::string& path) const { return files_.contains(path) && files_.at(path).disk->named; }
    [[nodiscard]] const DiskPointer& disk(const std::string& path) const { return files_.at(path).disk; }

    [[nodiscard]] State state() const
    {
        State state;
        for (const auto& [path, file] : files_) {
            state.files[path] = {std::make_shared<FakeDisk>(*file.disk), file.number};
        }
        std::ifstream record(record_path(), std::ios::binary);
        state.record.assign(std::istreambuf_iterator<char>(record), {});
        return state;
    }

    void put_record(const std::string& bytes) const
    {
        std::filesystem::remove(record_path());
        if (!bytes.empty()) {
            std::ofstream(record_path(), std::ios::binary) << bytes;
        }
    }

    void restore(const State& state)
    {
        files_.clear();
        for (const auto& [path, file] : state.files) {
            files_[path] = {std::make_shared<FakeDisk>(*file.disk), file.number};
        }
        put_record(state.record);
    }

    std::vector<State> around_replace;  ///< right before and right after each replace(): a kill there leaves them
    bool does_not_answer = false;
    std::string crashing_path;  ///< the file, there or to be made, that a crash strikes in its operation `crashing_operation`
    std::uint64_t crashing_operation = FakeDisk::never;

    /// Counts the operations of files that are there from now on, and arms the crash.
    void arm() const
    {
        for (const auto& [path, file] : files_) {
            file.disk->operations = 0;
            file.disk->crash_at = crash_at(path);
        }
    }

private:
    [[nodiscard]] std::uint64_t crash_at(const std::string& path) const
    {
        return path == crashing_path ? crashing_operation : FakeDisk::never;
    }

    test::TemporaryDirectory directory_{"/dev/shm"};  // A record is synced often.
    std::map<std::string, File> files_;
    std::uint64_t files_made_ = 0;
};

}  // namespace stillpoint::testing
