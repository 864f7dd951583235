#include "recovery.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <utility>

#include "api/registry.hpp"
#include "canonical_image.hpp"
#include "heap/heap.hpp"
#include "heap/image_heap.hpp"
#include "objects/object_program.hpp"
#include "objects/object_workload.hpp"
#include "page_digests.hpp"
#include "pool/directory.hpp"
#include "pool/image.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"
#include "runtime/sync_objects.hpp"
#include "sim/sim_medium.hpp"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

namespace {

/// Memory at the pool's own address, so that pointers in a recovered image lead where they should.
class MappedImage {
public:
    explicit MappedImage(std::uintptr_t address, std::uint64_t bytes) : bytes_(bytes)
    {
        base_ = static_cast<std::byte*>(mmap(reinterpret_cast<void*>(address), bytes_, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0));
        if (base_ == MAP_FAILED) {
            throw std::runtime_error("the window of durable addresses is taken");
        }
    }
    MappedImage(const MappedImage&) = delete;
    MappedImage& operator=(const MappedImage&) = delete;
    ~MappedImage() { munmap(base_, bytes_); }
    [[nodiscard]] std::byte* base() const noexcept { return base_; }

private:
    std::byte* base_;
    std::uint64_t bytes_;
};

struct Visit {
    const ProgramPlan* plan;
    const PoolFacts* facts;
    Recovered* recovered;
};

/// The error where another number of blocks is live, or "": one that no pointer leads to is lost for good.
std::string leak_in(Heap::Options options, std::uint64_t blocks)
{
    options.grow = [](void*, std::uint64_t) -> Result<std::uint64_t> { return fail(SP_E_NO_MEMORY, 0, "a crash image does not grow"); };
    const auto heap = Heap::attach(options);
    if (!heap) {
        return heap.error().message;
    }
    const std::uint64_t live = (*heap)->statistics().live_blocks;
    (*heap)->detach();
    return live == blocks ? "" : std::to_string(live) + " blocks are live, and " + std::to_string(blocks) + " of them can be reached";
}

std::string look_at_parts(const Visit& visit, const Heap::Options& heap, const FindObject& find)
{
    if (!visit.plan->objects->reads_images) {
        return "";
    }
    const std::unique_ptr<ObjectWorkload> workload = visit.plan->objects->make();
    std::uint64_t blocks = 0;
    if (std::string wrong = workload->look_at_image(find, visit.recovered->parts, blocks); !wrong.empty()) {
        return wrong;
    }
    return leak_in(heap, blocks);
}

/// Everything above the engine: tables, heap, directory, workload.
std::string look_at(const Visit& visit, std::byte* base, std::uint64_t image_bytes)
{
    const PoolFacts& facts = *visit.facts;
    const layout::TableFormat format = table_format_of(base);
    if (auto checked = check_image(base, format, {facts.image_bytes_first_max, facts.image_bytes_max, facts.base_address}); !checked) {
        return checked.error().message;
    }
    const ImageGeometry geometry = ImageGeometry::for_image(facts.image_bytes_first_max, format);
    const Directory directory(base, geometry);
    const Heap::Options heap = heap_options_of(base, facts, image_bytes, format);
    for (const auto& checked : {directory.check(image_bytes), Heap::check(heap), sync_objects_check(heap, facts.base_address, geometry)}) {
        if (!checked) {
            return checked.error().message;
        }
    }
    const FindObject find = [&](const std::string& handle) -> const void* {
        const auto entry = directory.find(handle);
        return entry ? reinterpret_cast<const void*>(entry->address) : nullptr;
    };
    if (visit.plan->objects != nullptr) {
        return look_at_parts(visit, heap, find);
    }
    const void* const root = find(Workload::root_handle);
    if (root == nullptr) {
        return "";  // Committed before the program made its root.
    }
    const auto workload = visit.plan->workload->make_for(visit.plan->engine);
    visit.recovered->operations = operations_of(root);
    if (std::string wrong = workload->check(root, find); !wrong.empty()) {
        return wrong;
    }
    visit.recovered->model_digest = workload->digest(root, find);
    return "";
}

Result<void> visit_image(void* context, std::byte* image, std::uint64_t image_bytes)
{
    const Visit& visit = *static_cast<Visit*>(context);
    const MappedImage mapped(visit.facts->base_address, image_bytes);
    const std::uint64_t pages = image_bytes / page_bytes;
    std::vector<unsigned char> present = resident_pages(image, pages);
    visit.recovered->page_digests.resize(pages);
    static constexpr std::byte zeroes[page_bytes] = {};
    for (std::uint64_t page = 0; page < pages; ++page) {
        if (present[page] == 0 || std::memcmp(image + page * page_bytes, zeroes, page_bytes) == 0) {
            present[page] = 0;
        } else {
            std::memcpy(mapped.base() + page * page_bytes, image + page * page_bytes, page_bytes);
        }
    }
    visit.recovered->problem = look_at(visit, mapped.base(), image_bytes);
    if (!visit.recovered->problem.empty()) {
        return {};
    }
    if (const MakeCanonical make = canonical_form_of(visit.plan->engine); make != nullptr) {
        make(mapped.base(), image_bytes);
    }
    for (std::uint64_t page = 0; page < pages; ++page) {
        if (present[page] != 0) {
            visit.recovered->page_digests[page] = page_digest(mapped.base() + page * page_bytes);
        }
    }
    visit.recovered->image_digest = image_digest(visit.recovered->page_digests);
    return {};
}

/// By a process of its own: each image where nothing else reads it, else one of some.
bool is_opened(const ProgramPlan& plan, const sim::CrashImage& image)
{
    constexpr std::uint64_t one_of = 8;
    const bool is_readable = image.unreadable_sector == sim::CrashImage::none;  // A stage has no sectors that cannot be read.
    return !plan.objects->reads_images || (is_readable && image.digest() % one_of == 0);
}

}  // namespace

Recovered recover(const ProgramPlan& plan, const sim::CrashImage& image)
{
    Recovered recovered;
    if (!image.named) {
        return recovered;
    }
    if (plan.typed != nullptr) {
        return recover_typed(plan, image);
    }
    const EngineDriver& driver = *find_engine(plan.engine);
    auto pool = Pool::open(std::make_unique<sim::ImageMedium>(image.content, byte_addressable(plan), image.unreadable_sector),
                           driver.format, true);
    if (!pool) {
        const bool never_finished = pool.error().code == SP_E_NOT_A_POOL;
        recovered.kind = never_finished ? Recovered::Kind::nothing : Recovered::Kind::refused;
        recovered.problem = never_finished ? "" : pool.error().message;
        return recovered;
    }
    Visit visit{&plan, &pool->facts(), &recovered};
    const auto report = driver.check(*pool, nullptr, &visit_image, &visit, nullptr);
    if (!report) {
        recovered.kind = Recovered::Kind::refused;
        recovered.problem = report.error().message;
        return recovered;
    }
    recovered.kind = Recovered::Kind::state;
    recovered.epoch = report->epoch;
    if (plan.objects != nullptr && recovered.problem.empty() && is_opened(plan, image)) {
        const PartDigests read = std::exchange(recovered.parts, {});
        recover_objects(plan, image, recovered);
        if (recovered.problem.empty() && !read.empty() && read != recovered.parts) {
            recovered.problem = "a program that opens the pool finds another state than a check of it";
        }
    }
    return recovered;
}

std::string judge(const Recovered& recovered, const History& history)
{
    const Floor& floor = history.floor();
    const std::string acknowledged = "; acknowledged were epoch " + std::to_string(floor.epoch) + " and " +
                                     std::to_string(floor.operations) + " operations";
    if (recovered.kind == Recovered::Kind::refused) {
        return "refused: " + recovered.problem;
    }
    if (recovered.kind == Recovered::Kind::nothing || recovered.epoch == 0) {
        const std::string lost = history.parts().judge({});
        return floor.epoch == 0 && lost.empty() ? "" : "the pool is empty" + acknowledged + "; " + lost;
    }
    const std::string epoch = "epoch " + std::to_string(recovered.epoch);
    if (!recovered.problem.empty()) {
        return epoch + ": " + recovered.problem;
    }
    if (recovered.epoch < floor.epoch || recovered.operations < floor.operations) {
        return epoch + " with " + std::to_string(recovered.operations) + " operations" + acknowledged;
    }
    if (history.has_parts_only()) {
        return history.parts().judge(recovered.parts);  // Snapshots come when they like.
    }
    const std::uint64_t* const model = history.operation(recovered.operations);
    if (recovered.operations != 0 && (model == nullptr || *model != recovered.model_digest)) {
        return epoch + " is not a state after " + std::to_string(recovered.operations) + " operations";
    }
    if (history.has_operations_only()) {
        return "";
    }
    const EpochState* const state = history.state(recovered.epoch);
    if (state == nullptr && !history.has_every_state()) {
        return "";  // Before the run's first operation.
    }
    if (state == nullptr) {
        return epoch + " was never captured, or was lost before";
    }
    if (state->operations != recovered.operations) {
        return epoch + " has " + std::to_string(recovered.operations) + " operations and had " + std::to_string(state->operations);
    }
    if (state->image_digest == recovered.image_digest) {
        return "";
    }
    for (std::size_t page = 0; page < std::max(state->page_digests.size(), recovered.page_digests.size()); ++page) {
        const std::uint64_t was = page < state->page_digests.size() ? state->page_digests[page] : 0;
        const std::uint64_t is = page < recovered.page_digests.size() ? recovered.page_digests[page] : 0;
        if (was != is) {
            return epoch + ": image page " + std::to_string(page) + " is not as it was captured";
        }
    }
    return epoch + " is not as it was captured";
}

}  // namespace stillpoint::explorer
