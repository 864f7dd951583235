// Fuzzer: any bytes of an increment. The input is laid over (by exclusive or) a good one of a few pages, so that the empty input is
// that one. Its first byte says whether the header and the index get checksums that hold: else hardly an input would come past them.
//
// Demanded: an error that says why, or pages that lie inside the file of the state that it makes, each with the digest that it has there.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "arch/checksum.hpp"
#include "media/increment_checksum.hpp"
#include "media/increment_file.hpp"

namespace {

using namespace stillpoint;

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

os::Descriptor file_of(const std::vector<std::byte>& bytes)
{
    os::Descriptor file{memfd_create("increment", MFD_CLOEXEC)};
    demand(file.valid() && pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return file;
}

/// One page is changed, one is cleared, and one is as before.
std::vector<std::byte> good_increment()
{
    char folder[] = "/tmp/increment-fuzz-XXXXXX";
    demand(mkdtemp(folder) != nullptr);
    const std::string scratch_name = std::string(folder) + "/scratch";
    const std::string name = std::string(folder) + "/increment";
    const IncrementedPool pool{{7}, "engine", 1};
    std::vector<std::byte> bytes(2 * CopiedFile::block_bytes, std::byte{0});
    std::memset(bytes.data(), 1, 3 * page_bytes);
    const os::Descriptor before = file_of(bytes);
    const auto base = PageDigests::of_file(before.get(), "base", bytes.size(), digest_seed(pool.uuid));
    demand(base.has_value());
    std::memset(bytes.data() + page_bytes, 2, page_bytes);
    std::memset(bytes.data() + 2 * page_bytes, 0, page_bytes);
    const os::Descriptor after = file_of(bytes);
    {
        auto scratch = CopiedFile::open(scratch_name, 0600);
        auto made = NewIncrement::open(name, 0600);
        demand(scratch.has_value() && made.has_value());
        scratch->leave_out(*base);
        demand(scratch->take_pass(after.get(), "source", nullptr).has_value());
        const layout::FileState state{1, 1, bytes.size(), base->of_all()};
        demand(made->write(pool, state, *base, {2, 1, bytes.size(), 0}, *scratch).has_value());
        bytes.resize(static_cast<std::size_t>(lseek(made->fd(), 0, SEEK_END)));
        demand(pread(made->fd(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    }
    unlink(scratch_name.c_str());
    unlink(name.c_str());
    rmdir(folder);
    return bytes;
}

/// As a hostile writer would do it.
void seal(std::vector<std::byte>& bytes)
{
    layout::IncrementHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const bool is_inside = header.changed_runs < 1000 && header.cleared_runs < 1000 && header.digest_runs < 1000 && header.digests < 1000;
    if (is_inside && sizeof header + index_bytes_of(header) <= bytes.size()) {
        header.index_checksum = checksum64(bytes.data() + sizeof header, index_bytes_of(header), layout::increment_checksum_seed);
    }
    header.checksum = increment_checksum(header);
    std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const std::vector<std::byte> good = good_increment();
    std::vector<std::byte> bytes = good;
    for (std::size_t i = 1; i < size && i <= bytes.size(); ++i) {
        bytes[i - 1] ^= std::byte{data[i]};
    }
    // A file of terabytes is read for seconds: that it is allowed needs no fuzzer.
    constexpr std::size_t upper_half = offsetof(layout::IncrementHeader, own) + offsetof(layout::FileState, file_bytes) + 4;
    std::memset(bytes.data() + upper_half, 0, 4);
    if (size > 0 && (data[0] & 1U) != 0) {
        seal(bytes);
    }
    const auto increment = IncrementFile::take(file_of(bytes), "increment");
    if (!increment) {
        demand(!increment.error().text().empty());
        return 0;
    }
    const auto look = [](void* self, std::uint64_t page, const std::byte* at) -> Result<void> {
        const auto& taken = *static_cast<const IncrementFile*>(self);
        demand(page < taken.header().own.file_bytes / page_bytes && taken.digests().digest_of(at) == taken.digests()[page]);
        return {};
    };
    const auto read = increment->visit(look, const_cast<IncrementFile*>(&*increment));
    demand(read.has_value() || !read.error().text().empty());
    return 0;
}
