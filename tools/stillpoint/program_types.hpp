#pragma once
// The types and variables that a program's debug information (DWARF) describes. Read by libdw of elfutils, which finds separate debug
// files too. What the file says is not trusted: every walk has a limit, and what makes no sense becomes a type of opaque bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace stillpoint::tool {

enum class TypeKind : std::uint8_t {
    opaque,  ///< bytes that nothing is known of
    nothing, ///< void, functions
    signed_number,
    unsigned_number,
    floating,
    boolean,
    character,
    enumeration,
    pointer,
    array,
    record,  ///< struct, class, union
    lock,    ///< of libc, or of C++: its fields mean nothing to a reader
};

using TypeId = std::uint32_t;

struct TypeMember {
    std::string name;       ///< empty: an anonymous struct or union
    std::string type_name;  ///< as the source has it
    TypeId type = 0;
    std::uint64_t offset = 0;
    std::uint32_t bit_offset = 0;  ///< of a bit field, from `offset`
    std::uint32_t bits = 0;        ///< of a bit field; else 0
    bool is_base = false;          ///< a base class
};

/// A member that is there only while the discriminant of its record has that value: a variant of an enum of Rust.
struct TypeVariant {
    TypeMember member;
    std::optional<std::uint64_t> value;  ///< nullopt: it is there while no other variant is
};

struct ProgramType {
    TypeKind kind = TypeKind::opaque;
    std::string name;
    std::uint64_t size = 0;
    TypeId target = 0;        ///< of a pointer or an array; of an enumeration: its number
    std::uint64_t count = 0;  ///< elements of an array
    bool is_unbounded = false;  ///< an array of which the program does not say how long it is
    bool is_union = false;
    std::vector<TypeMember> members;
    std::vector<TypeVariant> variants;
    std::uint64_t discriminant_offset = 0;
    std::uint64_t discriminant_bytes = 0;  ///< 0: there is none, since one variant is always there
    std::vector<std::pair<std::int64_t, std::string>> enumerators;
    std::vector<TypeId> arguments;  ///< types that a template was made for

    /// The variant that a record with these bytes has; nullptr: none.
    [[nodiscard]] const TypeVariant* variant_in(std::span<const std::byte> record) const noexcept;
};

struct ProgramVariable {
    TypeId type;
    std::string type_name;
    std::uint64_t address;  ///< in the file, before it is loaded
    std::string file;       ///< source file; may be empty
};

/// The reason in words, and what to do.
struct ProgramError {
    int exit_code;
    std::string text;
    std::string_view next = "`stillpoint dump --help`";
};

class ProgramTypes {
public:
    /// Reads the list of types and variables; the types themselves are read as they are asked for.
    [[nodiscard]] static tl::expected<std::unique_ptr<ProgramTypes>, ProgramError> open(const std::string& path);
    ~ProgramTypes();

    /// By the name in the source, with its namespaces: "struct node", "long", "bank::account", "node*", "int[8]".
    [[nodiscard]] std::optional<TypeId> find_type(std::string_view name);
    /// A type made from a template, by the beginning of its name: the arguments that follow are the default ones.
    [[nodiscard]] std::optional<TypeId> find_instance(std::string_view beginning);
    /// Types whose names have that one in them, for messages.
    [[nodiscard]] std::vector<std::string> similar_types(std::string_view name) const;
    /// `file` decides between several of one name; empty: any.
    [[nodiscard]] std::optional<ProgramVariable> find_variable(std::string_view name, std::string_view file);
    /// Variables that lie at addresses of the file from `begin` to before `end`, with their names.
    [[nodiscard]] std::vector<std::pair<std::string, ProgramVariable>> variables_between(std::uint64_t begin, std::uint64_t end);
    /// Classes of C++ whose objects the program asks for by their names, each once.
    [[nodiscard]] std::set<TypeId> durable_classes();
    /// Valid until the next call.
    [[nodiscard]] const ProgramType& type(TypeId id);
    [[nodiscard]] TypeId array_of(TypeId element, std::uint64_t count);
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    struct Reader;
    explicit ProgramTypes(std::string path);

    std::string path_;
    std::unique_ptr<Reader> reader_;
};

}  // namespace stillpoint::tool
