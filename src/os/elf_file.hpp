#pragma once
// An ELF file, read as far as its sections: what the loader does not map.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stillpoint::os {

/// A read-only view of a file; every access is checked against its size.
class FileView {
public:
    explicit FileView(const char* path)
    {
        const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
        struct stat facts{};
        if (descriptor >= 0 && fstat(descriptor, &facts) == 0 && facts.st_size > 0) {
            void* view = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
            if (view != MAP_FAILED) {
                bytes_ = static_cast<const std::byte*>(view);
                size_ = static_cast<std::size_t>(facts.st_size);
            }
        }
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    FileView(const FileView&) = delete;
    FileView& operator=(const FileView&) = delete;
    ~FileView()
    {
        if (bytes_ != nullptr) {
            munmap(const_cast<std::byte*>(bytes_), size_);
        }
    }

    template <class T>
    [[nodiscard]] const T* at(std::uint64_t offset, std::uint64_t count = 1) const
    {
        const std::uint64_t bytes = count * sizeof(T);
        if (offset > size_ || bytes / sizeof(T) != count || bytes > size_ - offset || offset % alignof(T) != 0) {
            return nullptr;
        }
        return reinterpret_cast<const T*>(bytes_ + offset);
    }
    [[nodiscard]] std::string_view text(std::uint64_t offset) const
    {
        if (offset >= size_) {
            return {};
        }
        const char* begin = reinterpret_cast<const char*>(bytes_ + offset);
        return {begin, strnlen(begin, size_ - offset)};
    }

private:
    const std::byte* bytes_ = nullptr;
    std::size_t size_ = 0;
};

struct Sections {
    const ElfW(Shdr) * headers = nullptr;
    std::size_t count = 0;
    std::uint64_t names_offset = 0;
};

inline Sections sections_of(const FileView& file)
{
    const auto* header = file.at<ElfW(Ehdr)>(0);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shentsize != sizeof(ElfW(Shdr))) {
        return {};
    }
    Sections sections;
    sections.headers = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
    if (sections.headers == nullptr || header->e_shstrndx >= header->e_shnum) {
        return {};
    }
    sections.count = header->e_shnum;
    sections.names_offset = sections.headers[header->e_shstrndx].sh_offset;
    return sections;
}

}  // namespace stillpoint::os
