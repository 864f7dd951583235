#include "program.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <vector>

#include "exit_codes.hpp"
#include "os/same_file.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

/// As the kernel: a script's interpreter may be a script, four times.
constexpr int script_depth_max = 4;

template <class... Args>
tl::unexpected<Refusal> refuse(int exit_code, fmt::format_string<Args...> format, Args&&... args)
{
    return tl::unexpected(Refusal{exit_code, text_of(format, std::forward<Args>(args)...)});
}

/// A file open for reading; closed at the end.
class File {
public:
    explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~File()
    {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] bool opened() const { return descriptor_ >= 0; }
    /// How many bytes were there, up to `size`.
    [[nodiscard]] std::size_t read_at(std::uint64_t offset, void* to, std::size_t size) const
    {
        const ssize_t got = pread(descriptor_, to, size, static_cast<off_t>(offset));
        return got < 0 ? 0 : static_cast<std::size_t>(got);
    }

private:
    int descriptor_;
};

struct ElfFacts {
    Elf64_Half machine = EM_NONE;
    unsigned char elf_class = ELFCLASSNONE;
    std::optional<std::string> loader;  ///< PT_INTERP: the dynamic loader; none in static programs
};

/// Facts of an ELF file of this machine's class; `loader` stays empty for the other class.
std::optional<ElfFacts> read_elf(const File& file)
{
    Elf64_Ehdr header{};
    if (file.read_at(0, &header, sizeof header) < sizeof(Elf32_Ehdr) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return std::nullopt;
    }
    ElfFacts facts;
    facts.elf_class = header.e_ident[EI_CLASS];
    facts.machine = header.e_machine;  // at the same offset in both classes
    if (facts.elf_class != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
        return facts;
    }
    for (unsigned index = 0; index < header.e_phnum; ++index) {
        Elf64_Phdr segment{};
        const std::uint64_t offset = header.e_phoff + index * sizeof segment;
        if (file.read_at(offset, &segment, sizeof segment) != sizeof segment) {
            break;
        }
        if (segment.p_type == PT_INTERP && segment.p_filesz > 0 && segment.p_filesz <= 4096) {
            std::string loader(segment.p_filesz, '\0');
            loader.resize(file.read_at(segment.p_offset, loader.data(), loader.size()));
            facts.loader = loader.c_str();  // up to its terminating zero
        }
    }
    return facts;
}

/// The tool's own facts: what the preloaded library was built for.
const ElfFacts& own_elf()
{
    static const ElfFacts facts = read_elf(File("/proc/self/exe")).value_or(ElfFacts{});
    return facts;
}

tl::expected<void, Refusal> examine_rights(const std::string& path)
{
    constexpr int code = exit_codes::not_runnable;
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) {
        return refuse(exit_codes::program_missing, "{}: {}", path, std::strerror(errno));
    }
    if ((status.st_mode & S_ISUID) != 0 || (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)) {
        return refuse(code,
                      "{} is set-{}: the system does not load libraries of the caller's choice into such a "
                      "program; run a copy without that bit (cp, then chmod u-s,g-s)",
                      path, (status.st_mode & S_ISUID) != 0 ? "uid" : "gid");
    }
    if (getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
        return refuse(code,
                      "{} has file capabilities: the system does not load libraries of the caller's choice into "
                      "such a program; run a copy without them (setcap -r)",
                      path);
    }
    return {};
}

tl::expected<void, Refusal> examine_elf(const std::string& path, const ElfFacts& facts)
{
    constexpr int code = exit_codes::not_runnable;
    if (facts.elf_class != own_elf().elf_class || facts.machine != own_elf().machine) {
        return refuse(code,
                      "{} is built for another architecture ({}-bit, ELF machine {}); this stillpoint is {}-bit, "
                      "machine {}. Build the program for this one",
                      path, facts.elf_class == ELFCLASS32 ? 32 : 64, facts.machine, own_elf().elf_class == ELFCLASS32 ? 32 : 64,
                      own_elf().machine);
    }
    if (!facts.loader) {
        return refuse(code,
                      "{} is statically linked: no library can be loaded into it, so its locks cannot be seen. "
                      "Link it dynamically (without -static)",
                      path);
    }
    if (own_elf().loader && *facts.loader != *own_elf().loader && !os::is_same_file(*facts.loader, *own_elf().loader)) {
        return refuse(code,
                      "{} uses another C library (its loader is {}, Stillpoint's is {}). Build the program against "
                      "the system's C library",
                      path, *facts.loader, *own_elf().loader);
    }
    return {};
}

/// The interpreter of a script, or nothing where the file is none.
std::optional<std::string> script_interpreter(const File& file)
{
    std::array<char, 256> line{};
    const std::size_t got = file.read_at(0, line.data(), line.size() - 1);
    if (got < 3 || line[0] != '#' || line[1] != '!') {
        return std::nullopt;
    }
    std::string_view text(line.data() + 2, got - 2);
    text = text.substr(0, text.find('\n'));
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        return std::string();
    }
    text = text.substr(begin);
    return std::string(text.substr(0, text.find_first_of(" \t\r")));
}

/// PATH's entries; an empty one is the current folder.
std::vector<std::string> search_path()
{
    const char* variable = std::getenv("PATH");
    std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    std::vector<std::string> folders;
    while (true) {
        const std::size_t colon = rest.find(':');
        const std::string_view folder = rest.substr(0, colon);
        folders.emplace_back(folder.empty() ? "." : folder);
        if (colon == std::string_view::npos) {
            return folders;
        }
        rest = rest.substr(colon + 1);
    }
}

bool is_executable_file(const std::string& path)
{
    struct stat status{};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

tl::expected<std::string, Refusal> find_program(std::string_view name)
{
    if (name.find('/') == std::string_view::npos) {
        for (const std::string& folder : search_path()) {
            std::string candidate = text_of("{}/{}", folder, name);
            if (is_executable_file(candidate)) {
                return candidate;
            }
        }
        const bool here = access(std::string(name).c_str(), F_OK) == 0;
        return refuse(exit_codes::program_missing, "{}: no such program in PATH{}", name,
                      here ? text_of("; for the file in this folder, say ./{}", name) : std::string());
    }
    std::string path(name);
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) {
        const bool missing = errno == ENOENT || errno == ENOTDIR;
        return refuse(missing ? exit_codes::program_missing : exit_codes::not_runnable, "cannot run {}: {}", path, std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return refuse(exit_codes::not_runnable, "cannot run {}: it is {}", path,
                      S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
    }
    if (access(path.c_str(), X_OK) != 0) {
        return refuse(exit_codes::not_runnable, "cannot run {}: {} (chmod +x makes a program executable)", path, std::strerror(errno));
    }
    return path;
}

tl::expected<void, Refusal> examine_program(const std::string& path)
{
    std::string current = path;
    for (int depth = 0; depth <= script_depth_max; ++depth) {
        if (auto rights = examine_rights(current); !rights) {
            return rights;
        }
        if (os::is_same_file(current, "/proc/self/exe")) {
            return refuse(exit_codes::usage, "nested `stillpoint run`: one program has one pool; name the program itself");
        }
        const File file(current);
        if (!file.opened()) {
            // Executable but not readable: the loader itself can run it, but nothing can be promised.
            return refuse(exit_codes::not_runnable, "cannot read {} to see whether it can be run durably: {}", current,
                          std::strerror(errno));
        }
        if (const auto facts = read_elf(file)) {
            return examine_elf(current, *facts);
        }
        const auto interpreter = script_interpreter(file);
        if (!interpreter) {
            return refuse(exit_codes::not_runnable, "{} is neither an ELF program nor a script that begins with #!", current);
        }
        if (!is_executable_file(*interpreter)) {
            return refuse(exit_codes::not_runnable, "{}: its interpreter '{}' is not an executable file", current, *interpreter);
        }
        current = *interpreter;
    }
    return refuse(exit_codes::not_runnable, "{}: too many interpreters that are scripts themselves", path);
}

}  // namespace stillpoint::tool
