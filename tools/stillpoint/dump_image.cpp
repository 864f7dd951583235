// The objects of a pool that has handles: their bytes, or, with the program's debug information, their fields.

#include <algorithm>

#include "dump.hpp"
#include "json.hpp"
#include "typed_roots.hpp"
#include "value_json.hpp"
#include "value_text.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t elements_default = 20;
constexpr std::uint64_t depth_default = 3;
constexpr std::uint64_t depth_max = 64;  ///< readers of JSON have limits too

struct HeapTotals {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

HeapTotals totals_of(const PoolImage& image)
{
    HeapTotals totals;
    image.for_each_block([&totals](const LiveBlock& block) {
        ++totals.blocks;
        totals.bytes += block.bytes;
    });
    return totals;
}

std::string_view kind_word(RootKind kind) { return kind == RootKind::handle ? "handle" : "global"; }

/// Writes what the visit of the image finds, as text or as JSON.
class ImageDump {
public:
    ImageDump(const DumpArguments& arguments, const OpenedPool& opened, ProgramTypes* program)
        : arguments_(arguments), opened_(opened), program_(program)
    {
    }

    void visit(const PoolImage& image)
    {
        auto roots = typed_roots(image, program_, arguments_.types);
        if (!roots) {
            error_ = roots.error();
            return;
        }
        if (!arguments_.root.empty()) {
            std::erase_if(*roots, [this](const TypedRoot& root) { return root.name != arguments_.root; });
            if (roots->empty()) {
                error_ = {exit_codes::usage,
                          text_of("--root {}: the pool has no handle and no durable global of that name", arguments_.root)};
                return;
            }
        }
        const ValueLimits limits{
            std::min(arguments_.depth.value_or(depth_default), depth_max),
            arguments_.limit.value_or(elements_default) == 0 ? UINT64_MAX : arguments_.limit.value_or(elements_default)};
        std::optional<ValueReader> reader;
        if (program_ != nullptr) {
            reader.emplace(image, *program_, limits);
        }
        begin(image);
        for (const TypedRoot& root : *roots) {
            add(image, root, reader ? &*reader : nullptr);
        }
        has_more_ = reader && reader->has_more();
    }

    /// After the pool was verified.
    int end(const Verification& verified)
    {
        if (error_) {
            return report_error(*error_);
        }
        if (arguments_.json && has_begun_) {
            json_.end_array().boolean("has_more", has_more_).number("durable_epoch", verified.recovery.epoch).begin_array("damaged");
            for (const Failure& failure : verified.damages) {
                json_.element(failure.text());
            }
            answer(std::move(json_.end_array()));
        } else if (has_more_) {
            print("more can be shown: raise --depth or --limit\n");
        }
        for (const Failure& failure : verified.damages) {
            if (&failure != &verified.damages.front()) {
                print_error("stillpoint: also: {}\n", printable(failure.text()));
            }
        }
        return verified.damage_count == 0 ? exit_codes::ok : report_failure(verified.damages.front());
    }

private:
    void begin(const PoolImage& image)
    {
        has_begun_ = true;
        const HeapTotals totals = totals_of(image);
        if (!arguments_.json) {
            print("{}: engine {}, {} of durable memory at {:#x}, {} live blocks of {}\n", arguments_.path, opened_.driver->format.name,
                  size_text(image.size_bytes()), image.base_address(), totals.blocks, size_text(totals.bytes));
            return;
        }
        json_.begin_object()
            .text("pool", arguments_.path)
            .text("engine", opened_.driver->format.name)
            .text("address", text_of("{:#x}", image.base_address()))
            .number("image_bytes", image.size_bytes())
            .number("live_blocks", totals.blocks)
            .number("live_bytes", totals.bytes)
            .begin_array("roots");
    }

    void add(const PoolImage& image, const TypedRoot& root, ValueReader* reader)
    {
        const auto bytes = image.at(root.address, root.size_bytes);
        const auto data = bytes.first(std::min<std::uint64_t>(bytes.size(), arguments_.bytes));
        std::optional<ValueNode> value;
        if (reader != nullptr && root.type) {
            value = reader->read(root.name, *root.type, root.address, root.size_bytes);
        }
        if (arguments_.json) {
            add_json(root, value, data);
        } else {
            print_text(root, value, data, image);
        }
    }

    void print_text(const TypedRoot& root, const std::optional<ValueNode>& value, std::span<const std::byte> data, const PoolImage& image)
    {
        print("{} \"{}\"  {}{} bytes at {:#x}{}{}\n", kind_word(root.kind), printable(root.name),
              root.type_name.empty() ? "" : printable(root.type_name) + ", ", root.size_bytes, root.address,
              root.kind == RootKind::handle && root.block ? text_of(", in a block of {}", root.block.bytes) : "",
              root.note.empty() ? "" : "  (" + root.note + ")");
        if (value) {
            print_value(*value);
        } else {
            print_rows(image, root.address, data);
        }
    }

    void add_json(const TypedRoot& root, const std::optional<ValueNode>& value, std::span<const std::byte> data)
    {
        json_.begin_object()
            .text("kind", kind_word(root.kind))
            .text("name", root.name)
            .text("address", text_of("{:#x}", root.address))
            .number("size_bytes", root.size_bytes)
            .number("block_bytes", root.block.bytes);
        if (!root.type_name.empty()) {
            json_.text("type", root.type_name).text("type_from", root.source);
        }
        if (!root.note.empty()) {
            json_.text("note", root.note);
        }
        if (value) {
            add_value(json_, "value", *value);
        } else {
            std::string digits;
            for (const std::byte one : data) {
                digits += text_of("{:02x}", std::to_integer<unsigned>(one));
            }
            json_.text("bytes", digits);
        }
        json_.end_object();
    }

    const DumpArguments& arguments_;
    const OpenedPool& opened_;
    ProgramTypes* program_;
    Json json_;
    bool has_begun_ = false;
    bool has_more_ = false;
    std::optional<ProgramError> error_;
};

}  // namespace

int dump_image(const DumpArguments& arguments, const OpenedPool& opened, bool progress)
{
    const auto program = open_program(arguments.program, arguments.types);
    if (!program) {
        return report_error(program.error());
    }
    ImageDump dump(arguments, opened, program->get());
    const auto verified = visit_pool_image(opened, progress, [&dump](const PoolImage& image) { dump.visit(image); });
    return verified ? dump.end(*verified) : report_failure(verified.error());
}

}  // namespace stillpoint::tool
