// Fuzzer: any bytes in a pool of typed objects. The pool has lists, a ring, an array with pointers, weak pointers, a large object, and a
// transaction that a crash has cut off. The input changes bytes of it: each four bytes say in which place (an object, a table, a log), at
// which of its bytes and by what. Its first byte says what is made consistent again, since else hardly an input would come past the checks
// of object headers: bit 0 heads, bit 1 the rest of headers.
//
// Demanded: a check ends, with findings or without. Where it finds nothing every object can be shown, and a collection frees none that is
// shown. Whatever it finds, showing and collecting end too.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "engines/breeze/object_headers.hpp"
#include "engines/breeze/object_view.hpp"
#include "engines/breeze/offline.hpp"
#include "os/log.hpp"
#include "support/crash_medium.hpp"
#include "support/patched_medium.hpp"

namespace {

using namespace stillpoint;
using namespace stillpoint::breeze;
using stillpoint::testing::PatchedFile;
using stillpoint::testing::PatchedMedium;

struct Node {
    Node* next;
    std::uint64_t value;
    nvm_weak friendly;
};
struct Table {
    std::uint64_t count;
    Node* nodes[1];  ///< `count` of them
};
struct Sheet {
    std::uint64_t words[20'000];
};
struct Root {
    Node* lists[2];
    Table* table;
    Sheet* sheet;
    std::uint32_t tag;
    Node* tagged;
};
NVM_TYPE(Node, NVM_HAS_PTR(Node, next), NVM_HAS_WEAK(Node, friendly));
NVM_TYPE(Table, NVM_HAS_PTR_TAIL(Table, nodes));
NVM_TYPE(Sheet, NVM_HAS_TAIL(Sheet, words));
NVM_TYPE(Root, NVM_HAS_PTR(Root, lists), NVM_HAS_PTR(Root, table), NVM_HAS_PTR(Root, sheet), NVM_HAS_PTR_IF(Root, tagged, tag, 1));

constexpr std::uint64_t image_bytes = 4 * mib;
constexpr std::uint64_t bytes_of_place = 256;  ///< that an input can change, from each on

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

struct Base {
    std::shared_ptr<PatchedFile> file;
    std::uint64_t image = 0;              ///< in the file
    std::uint64_t key = 0;
    std::vector<std::uint64_t> blocks;    ///< of objects, in the image
    std::vector<std::uint64_t> places;    ///< in the image
};

template <class T>
T* make(Transaction& transaction, std::uint32_t type, std::uint64_t bytes = sizeof(T))
{
    return reinterpret_cast<T*>(transaction.allocate(type, bytes, {}).value());
}

void fill(BreezePool& pool)
{
    Transaction& transaction = pool.begin();
    auto* const root = make<Root>(transaction, NVM_TYPE_ID(Root));
    Node* last = nullptr;
    for (std::uint64_t i = 0; i < 6; ++i) {
        auto* const node = make<Node>(transaction, NVM_TYPE_ID(Node));
        node->value = i;
        node->next = root->lists[i % 2];
        root->lists[i % 2] = node;
        last = i == 0 ? node : last;
    }
    last->next = root->lists[0];  // A ring.
    root->table = make<Table>(transaction, NVM_TYPE_ID(Table), sizeof(Table) + 7 * sizeof(Node*));
    for (std::uint64_t i = 0; i < 8; ++i) {
        root->table->nodes[i] = root->lists[i % 2];
    }
    root->sheet = make<Sheet>(transaction, NVM_TYPE_ID(Sheet));
    root->tag = 1;
    root->tagged = root->lists[1];
    const std::uint64_t block = pool.parts().memory.offset_of(last) - object_header_bytes;
    root->lists[1]->friendly = {last, pool.parts().memory.object(block).version};
    demand(transaction.set_root(pool.parts().memory.offset_of(root) - object_header_bytes).has_value());
    demand(transaction.commit().has_value());
    pool.end(transaction);
    // One that is cut off.
    Transaction& open = pool.begin();
    demand(open.log_range(pool.parts().memory.offset_of(root), sizeof(Root), {}, true).has_value());
    root->lists[0] = make<Node>(open, NVM_TYPE_ID(Node));
}

Base make_base()
{
    const Pool::CreateOptions options{pool_format(), image_bytes, image_bytes};
    auto memory = std::make_shared<test::CrashMemory>(Pool::file_bytes_for(options).value());
    auto made = Pool::create(std::make_unique<test::CrashMedium>(memory), options);
    demand(made.has_value() && BreezePool::format(*made).has_value());
    Base base;
    base.image = made->segments().front().first_file_page * page_bytes;
    auto pool = BreezePool::open(std::move(*made), {.threads = 1, .counts_in_background = false});
    demand(pool.has_value());
    fill(**pool);
    PoolParts& parts = (*pool)->parts();
    base.key = parts.key;
    const Geometry& geometry = parts.geometry;
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (parts.allocated(block)) {
                base.blocks.push_back(block);
            }
        });
    }
    base.file = std::make_shared<PatchedFile>(std::vector<std::byte>(memory->now(), memory->now() + memory->size()));
    base.places = base.blocks;
    for (const std::uint64_t table :
         {std::uint64_t{0}, types_offset, types_offset + bytes_of_place, types_offset + 2 * bytes_of_place, geometry.log_headers_offset,
          geometry.logs_offset, geometry.activations_offset, geometry.redo_offset, geometry.rewrites_offset, geometry.zones_offset}) {
        base.places.push_back(table);
    }
    return base;
}

void seal(Base& base, std::uint8_t what)
{
    for (const std::uint64_t block : base.blocks) {
        ObjectHeader header;
        std::memcpy(&header, base.file->bytes().data() + base.image + block, sizeof header);
        if ((what & 1) != 0) {
            const BlockHead head{static_cast<BlockState>(header.head >> head_state_shift & 0xf), header.head & head_granules_mask};
            header.head = head_of(base.key, block, head);
        }
        if ((what & 2) != 0) {
            header.generation = generation_in(header.generation) | header_check(base.key, block, header) << header_check_shift;
        }
        base.file->patch(base.image + block, reinterpret_cast<const std::byte*>(&header), sizeof header);
    }
}

class Counted final : public Findings {
    void tell(const Failure& failure, bool /*is_damage*/) override { demand(!failure.text().empty()); }
};

struct Shown {
    std::set<std::uint64_t> objects;
    std::uint64_t sum = 0;  ///< of all bytes: each is read
};

void show(void* context, const ShownObject& object)
{
    Shown& shown = *static_cast<Shown*>(context);
    demand(shown.objects.insert(object.place).second);
    for (const std::byte one : object.bytes) {
        shown.sum += std::to_integer<std::uint64_t>(one);
    }
}

void look_at(const Pool& pool)
{
    Counted findings;
    const auto report = check_pool(pool, &findings, nullptr, nullptr, nullptr);
    const bool is_sound = report.has_value() && findings.damages() == 0;
    Counted damaged;
    Shown shown;
    const auto figures = show_objects(pool, {0, UINT64_MAX, UINT64_MAX}, damaged, &show, &shown);
    demand(!is_sound || (figures.has_value() && damaged.damages() == 0));
    auto copy = open_copy(pool, damaged, nullptr, window_base + window_bytes / 4);
    if (!copy) {
        demand(!is_sound);
        return;
    }
    const auto collected = (*copy)->collect();
    demand(!is_sound || collected.has_value());
    for (const std::uint64_t block : shown.objects) {
        demand(!is_sound || (*copy)->parts().allocated(block));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static Base base = make_base();
    os::set_least_severity(os::Severity::error);
    if (size == 0) {
        return 0;
    }
    for (std::size_t at = 1; at + 4 <= size; at += 4) {
        const std::uint64_t place = base.places[static_cast<std::size_t>(data[at] + 256 * data[at + 1]) % base.places.size()];
        const std::uint64_t offset = base.image + place + data[at + 2] % bytes_of_place;
        const std::byte changed = base.file->bytes()[offset] ^ std::byte{data[at + 3]};
        base.file->patch(offset, &changed, 1);
    }
    seal(base, data[0]);
    {
        const auto pool = Pool::open(std::make_unique<PatchedMedium>(base.file), EngineFormat{}, true);
        demand(pool.has_value());
        look_at(*pool);
    }
    base.file->undo();
    return 0;
}
