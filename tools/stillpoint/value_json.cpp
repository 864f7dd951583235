#include "value_json.hpp"

#include "output.hpp"

namespace stillpoint::tool {

void add_value(Json& json, std::string_view key, const ValueNode& value)
{
    json.begin_object(key).text("name", value.name).text("type", value.type).text("address", text_of("{:#x}", value.address));
    json.number("size_bytes", value.size_bytes);
    if (!value.text.empty()) {
        json.text("value", value.text);
    }
    if (value.points_to != PointsTo::no_pointer) {
        json.text("target", word_of(value.points_to));
    }
    if (value.block) {
        json.number("block_bytes", value.block.bytes);
    }
    if (!value.note.empty()) {
        json.text("note", value.note);
    }
    if (value.is_array || !value.members.empty()) {
        json.begin_array(value.is_array ? "elements" : "fields");
        for (const ValueNode& member : value.members) {
            add_value(json, {}, member);
        }
        json.end_array();
    }
    if (value.left_out != 0) {
        json.number("left_out", value.left_out);
    }
    if (!value.pointee.empty()) {
        add_value(json, "object", value.pointee.front());
    }
    json.end_object();
}

}  // namespace stillpoint::tool
