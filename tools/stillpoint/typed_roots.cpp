#include "typed_roots.hpp"

#include <algorithm>

#include "type_descriptions.hpp"

namespace stillpoint::tool {

namespace {

/// `type`, or an array of it that fills the object. A structure that ends with an array of any length fills it by that.
TypeId type_that_fills(ProgramTypes& program, TypeId type, std::uint64_t bytes)
{
    const std::uint64_t size = program.type(type).size;
    const auto& members = program.type(type).members;
    if (!members.empty() && program.type(members.back().type).is_unbounded) {
        return type;
    }
    return size != 0 && bytes > size && bytes % size == 0 ? program.array_of(type, bytes / size) : type;
}

void note_misfit(TypedRoot& root, ProgramTypes& program)
{
    const std::uint64_t size = program.type(*root.type).size;
    if (size > root.size_bytes) {
        root.note = text_of("the type has {} bytes, the object {}", size, root.size_bytes);
    }
}

/// The type that the pool itself names, by its engine.
std::string name_in_pool(const PoolImage& image, const LiveBlock& block, const NamedObject* object)
{
    return object != nullptr ? object->class_name : image.layout_name(block);
}

/// The class that the pool calls `name`, in the words of a compiler: "durable::map<string,i32>" has other arguments there.
std::optional<TypeId> instance_of(ProgramTypes& program, const std::string& name)
{
    constexpr std::pair<std::string_view, std::string_view> words[] = {
        {"string", "std::__cxx11::basic_string<char,std::char_traits<char>,std::allocator<char>>"},
        {"i8", "signed char"},
        {"u8", "unsigned char"},
        {"i16", "short int"},
        {"u16", "short unsigned int"},
        {"i32", "int"},
        {"u32", "unsigned int"},
        {"i64", "long int"},
        {"u64", "long unsigned int"},
        {"f32", "float"},
        {"f64", "double"}};
    if (!name.ends_with('>')) {
        return std::nullopt;
    }
    std::string text = "stillpoint::";
    for (std::size_t at = 0; at < name.size();) {
        const std::size_t end = std::min(name.find_first_of("<>,: ", at), name.size());
        const std::string_view one = std::string_view(name).substr(at, end - at);
        const auto* const word = std::ranges::find(words, one, [](const auto& pair) { return pair.first; });
        text += word == std::end(words) ? one : word->second;
        text += name.substr(end, 1);
        at = end + 1;
    }
    text.pop_back();
    return program.find_instance(text);
}

void find_type_of_handle(TypedRoot& root, ProgramTypes& program, const HandleTypes& stated)
{
    if (const auto here = stated.find(root.name); here != stated.end()) {
        if (const auto found = program.find_type(here->second)) {
            root.type = type_that_fills(program, *found, root.size_bytes);
            root.source = "SP_ROOT";
            return;
        }
    }
    for (const std::string& name : {root.type_name, "stillpoint::" + root.type_name}) {
        const auto found = root.type_name.empty() ? std::nullopt : program.find_type(name);
        if (found) {
            root.type = type_that_fills(program, *found, root.size_bytes);
            root.source = "pool";
            return;
        }
    }
    if (const auto found = instance_of(program, root.type_name)) {
        root.type = type_that_fills(program, *found, root.size_bytes);
        root.source = "pool";
        return;
    }
    const auto same_name = program.find_type(root.name);
    if (same_name && program.type(*same_name).size == root.size_bytes) {
        root.type = same_name;
        root.source = "name of the handle";
    }
}

tl::expected<TypeId, ProgramError> wanted_type(ProgramTypes& program, const std::string& handle, const std::string& name)
{
    if (const auto found = program.find_type(name)) {
        return *found;
    }
    std::string near;
    for (const std::string& one : program.similar_types(name)) {
        near += (near.empty() ? "; there are: " : ", ") + one;
    }
    return tl::unexpected<ProgramError>(
        {exit_codes::usage, text_of("--type {}={}: {} has no type of that name{}", handle, name, program.path(), near)});
}

tl::expected<TypedRoot, ProgramError> root_of_handle(const PoolImage& image, const HandleFacts& handle, ProgramTypes* program,
                                                     const HandleTypes& types, const HandleTypes& stated)
{
    TypedRoot root{RootKind::handle, handle.handle, handle.address, handle.size_bytes, image.block_of(handle.address), {}, {}, {}, {}};
    if (!root.block || root.block.address != root.address || root.block.bytes < root.size_bytes) {
        root.note = "no live block of that size begins there";
    }
    const auto object = std::ranges::find(image.objects(), handle.handle, &NamedObject::name);
    const bool is_object = object != image.objects().end() && object->address - root.address <= root.size_bytes;
    root.type_name = name_in_pool(image, root.block, is_object ? &*object : nullptr);
    root.source = root.type_name.empty() ? "" : "pool";
    if (is_object) {
        root.size_bytes -= object->address - root.address;
        root.address = object->address;
        root.note = root.note.empty() && object->to_replay != 0 ? text_of("{} logged operations are not in it yet", object->to_replay)
                                                                : root.note;
    }
    if (program == nullptr) {
        return root;
    }
    if (const auto wanted = types.find(handle.handle); wanted != types.end()) {
        const auto type = wanted_type(*program, handle.handle, wanted->second);
        if (!type) {
            return tl::unexpected<ProgramError>(type.error());
        }
        root.type = type_that_fills(*program, *type, root.size_bytes);
        root.source = "--type";
    } else {
        find_type_of_handle(root, *program, stated);
    }
    if (root.type) {
        root.type_name = program->type(*root.type).name;
        note_misfit(root, *program);
    }
    return root;
}

TypedRoot root_of_global(const PoolImage& image, const KeptGlobal& global, ProgramTypes* program)
{
    TypedRoot root{
        RootKind::global, global.name, global.address, global.size_bytes, image.block_of(global.address), {}, global.type, {}, {}};
    root.source = global.type.empty() ? "" : "pool";
    if (global.retired) {
        root.note = "the program that ran last does not have it";
    }
    const auto variable = program != nullptr && !global.name.empty() ? program->find_variable(global.name, global.scope) : std::nullopt;
    if (variable) {
        root.type = variable->type;
        root.type_name = variable->type_name;
        root.source = "variable";
        note_misfit(root, *program);
    }
    return root;
}

}  // namespace

int report_error(const ProgramError& error) { return report_error(error.exit_code, error.text, {.next = error.next}); }

void add_type_options(CommandLine& line, std::string& program, HandleTypes& types)
{
    line.text_option("--program", "PROGRAM", program, "Take types from the debug information of this program (compiled with -g).");
    const auto take = [&types](const std::string& text) -> std::string {
        const std::size_t at = text.find('=');
        if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
            return "\"" + text + "\" is not of the form HANDLE=TYPE";
        }
        types[text.substr(0, at)] = text.substr(at + 1);
        return "";
    };
    line.repeated_option("--type", "HANDLE=TYPE", take, "The type of a handle's object; may be given again.");
}

tl::expected<std::vector<TypedRoot>, ProgramError> typed_roots(const PoolImage& image, ProgramTypes* program, const HandleTypes& types)
{
    for (const auto& [handle, type] : types) {
        if (std::ranges::find(image.handles(), handle, &HandleFacts::handle) == image.handles().end()) {
            return tl::unexpected<ProgramError>(
                {exit_codes::usage, text_of("--type {}={}: the pool has no handle of that name", handle, type)});
        }
    }
    const HandleTypes stated = program == nullptr ? HandleTypes() : stated_root_types(program->path());
    std::vector<TypedRoot> roots;
    for (const HandleFacts& handle : image.handles()) {
        auto root = root_of_handle(image, handle, program, types, stated);
        if (!root) {
            return tl::unexpected<ProgramError>(root.error());
        }
        roots.push_back(std::move(*root));
    }
    for (const KeptGlobal& global : image.globals()) {
        roots.push_back(root_of_global(image, global, program));
    }
    return roots;
}

tl::expected<std::unique_ptr<ProgramTypes>, ProgramError> open_program(const std::string& path, const HandleTypes& types)
{
    if (!path.empty()) {
        return ProgramTypes::open(path);
    }
    if (!types.empty()) {
        return tl::unexpected<ProgramError>(
            {exit_codes::usage, "--type needs --program: the program whose debug information has the type"});
    }
    return nullptr;
}

}  // namespace stillpoint::tool
