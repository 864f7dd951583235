#include "engines/breeze/object_view.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include "core/formatted.hpp"
#include "engines/breeze/object_headers.hpp"
#include "engines/breeze/offline.hpp"
#include "engines/breeze/value_forms.hpp"
#include "stillpoint/breeze.h"

namespace stillpoint::breeze {

namespace {

constexpr std::size_t fields_shown_max = 4096;    ///< of an object
constexpr std::uint64_t elements_shown_max = 16;  ///< of an array of numbers
constexpr std::uint64_t text_shown_max = 256;     ///< of an array of characters

/// Characters up to the first zero, as C writes them.
std::string text_of_characters(const std::byte* place, std::uint64_t count)
{
    std::string text = "\"";
    std::uint64_t i = 0;
    for (; i < count && i < text_shown_max && place[i] != std::byte{0}; ++i) {
        const auto one = std::to_integer<unsigned char>(place[i]);
        const bool is_plain = one >= ' ' && one < 0x7f;
        text += one == '"' || one == '\\' ? "\\" : "";
        text += is_plain ? std::string(1, static_cast<char>(one)) : formatted("\\x{:02x}", one);
    }
    return text + (i == text_shown_max && i < count ? "\"..." : "\"");
}

std::string text_of_values(const Field& field, const std::byte* place, std::uint64_t count)
{
    if (field.encoding == NVM_DATA_CHARACTER && (count != 1 || field.is_tail())) {
        return text_of_characters(place, count);
    }
    if (count == 1 && !field.is_tail()) {
        return text_of_value(field, place);
    }
    std::string text = "{";
    for (std::uint64_t i = 0; i < count && i < elements_shown_max; ++i) {
        text += (i == 0 ? "" : ", ") + text_of_value(field, place + i * field.element_bytes);
    }
    return text + (count > elements_shown_max ? ", ...}" : "}");
}

/// The data of an object, field by field.
struct ShownData {
    std::deque<std::string> texts;  ///< They stay where they are.
    std::vector<ShownField> fields;

    void add(const Type& type, const std::byte* object, std::uint64_t begin, std::uint64_t end, const std::string& prefix)
    {
        for (const Field& field : type.fields) {
            const std::uint64_t place = begin + field.offset;
            const bool is_there = field.tag_bytes == 0 ||
                                  Type::tag_at(object + begin + field.tag_offset, field.tag_bytes) == field.tag_value;
            if (!is_there || fields.size() >= fields_shown_max) {
                continue;
            }
            const std::uint64_t count = field.is_tail() ? (end - place) / field.element_bytes : field.count;
            for (std::uint64_t i = 0; field.nested != nullptr && i < count && fields.size() < fields_shown_max; ++i) {
                const std::uint64_t inner = place + i * field.element_bytes;
                const std::string index = count == 1 ? std::string() : formatted("[{}]", i);
                add(*field.nested, object, inner, inner + field.element_bytes, prefix + field.name + index + ".");
            }
            if (field.kind == NVM_FIELD_DATA || field.kind == NVM_FIELD_TAIL) {
                const std::string& name = texts.emplace_back(prefix + field.name);
                fields.push_back(
                    {name, place, count * field.element_bytes, texts.emplace_back(text_of_values(field, object + place, count))});
            }
        }
    }
};

/// Objects nearest to the root first, each once.
class View {
public:
    View(PoolParts& pool, const ObjectRequest& request, void (*shown)(void* context, const ShownObject& object), void* context) noexcept
        : pool_(pool), request_(request), show_(shown), context_(context)
    {
    }

    [[nodiscard]] Result<ObjectFigures> run();

private:
    struct Waiting {
        std::uint64_t block;
        std::uint64_t depth;
    };
    [[nodiscard]] bool is_object(std::uint64_t block) const noexcept
    {
        return block != 0 && pool_.zones.block_of(block) == block && pool_.allocated(block) && pool_.type_of(block) != nullptr;
    }
    void meet(std::uint64_t block, std::uint64_t depth);
    void show(const Waiting& object);
    [[nodiscard]] ShownPointer pointer_at(const std::byte* object, std::uint64_t place, const PointerRun& run) const noexcept;

    PoolParts& pool_;
    const ObjectRequest& request_;
    void (*show_)(void* context, const ShownObject& object);
    void* context_;
    ObjectFigures figures_;
    std::deque<Waiting> waiting_;
};

void View::meet(std::uint64_t block, std::uint64_t depth)
{
    if (pool_.marks.is_marked(block)) {
        return;
    }
    if (depth > request_.depth_max) {
        figures_.has_more = true;  // By another way the object may be nearer.
        return;
    }
    pool_.marks.mark(block);
    waiting_.push_back({block, depth});
}

ShownPointer View::pointer_at(const std::byte* object, std::uint64_t place, const PointerRun& run) const noexcept
{
    const std::uint64_t pointer = word_at(object + place);
    ShownPointer shown{run.name, place, run.kind == PointerKind::weak, PointerTarget::none, 0, 0};
    if (pointer == 0) {
        return shown;
    }
    const std::uint64_t target = pool_.target_of(pointer);
    shown.target = shown.is_weak ? PointerTarget::freed : PointerTarget::unknown;
    if (!is_object(target) || pointer - pool_.base() < target + object_header_bytes) {
        return shown;
    }
    const bool is_same = !shown.is_weak || word_at(object + place + offsetof(nvm_weak, version)) == pool_.memory.object(target).version;
    if (is_same) {
        shown.target = PointerTarget::object;
        shown.object = target;
        shown.inside = pointer - pool_.base() - target - object_header_bytes;
    }
    return shown;
}

void View::show(const Waiting& object)
{
    const ObjectHeader& header = pool_.memory.object(object.block);
    const Type& type = *pool_.type_of(object.block);
    const std::byte* const bytes = pool_.bytes_of(object.block);
    std::vector<ShownPointer> pointers;
    std::deque<std::string> names;  // Their texts stay where they are.
    type.visit_pointers(bytes, header.size, [&](std::uint64_t place, const PointerRun& run) {
        ShownPointer& shown = pointers.emplace_back(pointer_at(bytes, place, run));
        shown.field = names.emplace_back(name_of_pointer(type, header.size, place, run));
    });
    std::ranges::sort(pointers, {}, &ShownPointer::offset);
    ShownData data;
    for (std::uint64_t begin = 0; begin + type.size <= header.size; begin += type.has_tail ? header.size : type.size) {
        const bool is_array = !type.has_tail && header.size > type.size;
        data.add(type, bytes, begin, type.has_tail ? header.size : begin + type.size,
                 is_array ? formatted("[{}].", begin / type.size) : std::string());
    }
    std::ranges::sort(data.fields,
                      [](const ShownField& a, const ShownField& b) { return std::tie(a.offset, a.field) < std::tie(b.offset, b.field); });
    show_(context_, {.place = object.block,
                     .identity = header.version,
                     .depth = object.depth,
                     .type = type.name,
                     .element_bytes = type.has_tail ? header.size : type.size,
                     .references = references_in(header.counts),
                     .bytes = {bytes, header.size},
                     .pointers = pointers,
                     .fields = data.fields,
                     .is_complete = type.is_complete && data.fields.size() < fields_shown_max});
    ++figures_.shown;
    for (const ShownPointer& pointer : pointers) {
        if (pointer.target == PointerTarget::object) {
            meet(pointer.object, object.depth + 1);
        }
    }
}

Result<ObjectFigures> View::run()
{
    const std::uint64_t root = request_.root != 0 ? request_.root : load_word(pool_.memory.header().root);
    if (request_.root != 0 && (root >= pool_.memory.bytes() || !is_object(root))) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: no object has its header at byte {} of the image", pool_.memory.medium().path(), root);
    }
    figures_.has_root = root != 0;
    if (root == 0) {
        return figures_;
    }
    if (root >= pool_.memory.bytes() || !is_object(root)) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the root leads to byte {} of the image, where no object is", pool_.memory.medium().path(),
                    root);
    }
    if (auto begun = pool_.marks.begin(pool_.memory.bytes()); !begun) {
        return pass_on(begun.error());
    }
    meet(root, 0);
    while (!waiting_.empty()) {
        if (figures_.shown == request_.objects_max) {
            figures_.has_more = true;
            break;
        }
        const Waiting next = waiting_.front();
        waiting_.pop_front();
        show(next);
    }
    pool_.marks.end();
    return figures_;
}

}  // namespace

std::string name_of_pointer(const Type& type, std::uint64_t size, std::uint64_t place, const PointerRun& run)
{
    std::string name;
    std::uint64_t in_element = place;
    if (!type.has_tail && size > type.size) {  // An array of the type.
        name = "[" + std::to_string(place / type.size) + "].";
        in_element = place % type.size;
    }
    name += run.name;
    if (run.count != 1) {
        name += "[" + std::to_string((in_element - run.offset) / run.stride) + "]";
    }
    return name;
}

Result<ObjectFigures> show_objects(const Pool& pool, const ObjectRequest& request, Findings& findings,
                                   void (*show)(void* context, const ShownObject& object), void* context)
{
    auto opened = open_copy(pool, findings, nullptr);
    if (!opened) {
        return pass_on(opened.error());
    }
    (*opened)->parts().counts.drain();
    return View((*opened)->parts(), request, show, context).run();
}

Result<void> show_memory(const Pool& pool, Findings& findings, void (*show)(void* context, std::span<const std::byte> memory),
                         void* context, void (*progress)(std::uint64_t done, std::uint64_t total))
{
    auto opened = open_copy(pool, findings, progress);
    if (!opened) {
        return pass_on(opened.error());
    }
    PoolParts& parts = (*opened)->parts();
    parts.counts.drain();
    show(context, {parts.memory.base(), parts.memory.bytes()});
    return {};
}

}  // namespace stillpoint::breeze
