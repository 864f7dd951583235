#include "core_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <string>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/units.hpp"

namespace stillpoint::tool {

namespace {

#if defined(__aarch64__)
constexpr Elf64_Half machine = EM_AARCH64;
#else
constexpr Elf64_Half machine = EM_X86_64;
#endif

constexpr std::size_t core_piece_bytes = 64 * kib;

tl::unexpected<Failure> refused(const char* folder, int error)
{
    return fail(error == ENOSPC || error == EDQUOT || error == EFBIG ? SP_E_NO_SPACE : SP_E_IO, error,
                "{}: the memory of the pool cannot be written there for gdb: {}; set TMPDIR to a folder with room", folder,
                std::strerror(error));
}

bool write_all(int file, const void* from, std::size_t bytes, std::uint64_t offset)
{
    const auto* at = static_cast<const char*>(from);
    while (bytes != 0) {
        const ssize_t written = pwrite(file, at, bytes, static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        at += written;
        bytes -= static_cast<std::size_t>(written);
        offset += static_cast<std::uint64_t>(written);
    }
    return true;
}

/// A thread that has no registers: gdb wants one.
struct ThreadNote {
    Elf64_Nhdr header;
    char name[8];
    char status[sizeof(elf_prstatus)];  ///< without the alignment of its members
};

ThreadNote thread_note()
{
    ThreadNote note{};
    note.header = {.n_namesz = 5, .n_descsz = sizeof note.status, .n_type = NT_PRSTATUS};
    std::memcpy(note.name, "CORE", 5);
    elf_prstatus status{};
    status.pr_pid = 1;
    std::memcpy(note.status, &status, sizeof status);
    return note;
}

bool is_zero(std::span<const std::byte> bytes)
{
    return bytes.empty() || (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool write_data(int file, std::span<const std::byte> bytes, std::uint64_t offset)
{
    for (std::size_t at = 0; at < bytes.size(); at += core_piece_bytes) {
        const auto piece = bytes.subspan(at, std::min(core_piece_bytes, bytes.size() - at));
        if (!is_zero(piece) && !write_all(file, piece.data(), piece.size(), offset + at)) {
            return false;
        }
    }
    return true;
}

}  // namespace

Result<os::Descriptor> write_core_file(const char* folder, const std::vector<CoreSegment>& segments)
{
    std::string name = std::string(folder) + "/stillpoint-core-XXXXXX";
    os::Descriptor file(mkstemp(name.data()));  // Not closed by exec: gdb gets it.
    if (!file.valid()) {
        return refused(folder, errno);
    }
    unlink(name.c_str());
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_CORE;
    header.e_machine = machine;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(segments.size() + 1);
    const ThreadNote note = thread_note();
    const std::uint64_t note_offset = sizeof header + header.e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr notes{};
    notes.p_type = PT_NOTE;
    notes.p_offset = note_offset;
    notes.p_filesz = sizeof note;
    notes.p_align = alignof(Elf64_Nhdr);
    bool is_written = write_all(file.get(), &header, sizeof header, 0) && write_all(file.get(), &notes, sizeof notes, sizeof header) &&
                      write_all(file.get(), &note, sizeof note, note_offset);
    std::uint64_t end = round_up(note_offset + sizeof note, page_bytes);
    for (std::size_t i = 0; i < segments.size() && is_written; ++i) {
        const auto bytes = segments[i].bytes;
        Elf64_Phdr segment{};
        segment.p_type = PT_LOAD;
        segment.p_flags = PF_R | PF_W;
        segment.p_offset = end;
        segment.p_vaddr = segments[i].address;
        segment.p_filesz = bytes.size();
        segment.p_memsz = bytes.size();
        segment.p_align = 1;
        is_written = write_all(file.get(), &segment, sizeof segment, sizeof header + (i + 1) * sizeof segment) &&
                     write_data(file.get(), bytes, end);
        end = round_up(end + bytes.size(), page_bytes);
    }
    if (!is_written || ftruncate(file.get(), static_cast<off_t>(end)) != 0) {
        return refused(folder, errno);
    }
    return file;
}

}  // namespace stillpoint::tool
