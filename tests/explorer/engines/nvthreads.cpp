#include "nvthreads.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

#include "core/store_marks.hpp"
#include "engines/nvthreads/nvthreads_engine.hpp"
#include "engines/nvthreads/processes/supervisor.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/session_state.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint::explorer {

namespace {

using namespace nvthreads;
using namespace nvthreads::processes;
using section_ends::Handover;

/// Waits are for sections of other threads: none of an explored program takes so long.
constexpr std::uint64_t wait_max_ns = 10'000'000'000;

}  // namespace

class Scribing::Records {
public:
    explicit Records(NvthreadsEngine& engine) : engine_(engine), base_(engine.image_base())
    {
        auto area = make_control_area();
        if (!area) {
            throw std::runtime_error("no memory for a control area");
        }
        area_ = *area;
        if (!supervisor_.start({area_, &engine.logs(), base_, engine.image_bytes(), wait_max_ns, StatisticsScope::current()})) {
            throw std::runtime_error("no threads for a supervisor");
        }
        current.store(this, std::memory_order_release);
        store_marks::want_calls(&note_store);
        store_marks::want_passing_blocks(nullptr);
        static constexpr section_ends::Calls calls{&hand_over, &ended};
        section_ends::want(calls);
    }
    ~Records()
    {
        publish(RecordKind::section_ends);
        engine_.listen();
        current.store(nullptr, std::memory_order_release);
        supervisor_.stop();
        munmap(area_, sizeof *area_);
    }
    Records(const Records&) = delete;
    Records& operator=(const Records&) = delete;

private:
    /// As a process of the program's: what its thread has stored since its last record.
    struct OwnRecord {
        std::uint64_t serial = 0;  ///< of its Records: another one may lie at the same address later
        std::uint32_t thread = 0;
        bool has_handed_over = false;
        std::uint64_t awaited = 0;  ///< position of the ring: what its last section may have seen
        std::vector<std::byte> bytes;
    };

    OwnRecord& own()
    {
        static thread_local OwnRecord record;
        if (record.serial != serial_) {
            record = {serial_, next_thread_.fetch_add(1) % threads_max, false, 0, {}};
        }
        return record;
    }
    void add(const void* address, std::size_t size)
    {
        const RunHead head{static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_), size};
        std::vector<std::byte>& bytes = own().bytes;
        const std::size_t at = bytes.size();
        bytes.resize(at + sizeof head + padded(size));
        std::memcpy(bytes.data() + at, &head, sizeof head);
        std::memcpy(bytes.data() + at + sizeof head, address, size);
    }
    /// The stores are in the image already, which the program's threads share here: locks keep others from them, as merges do there.
    void publish(RecordKind kind)
    {
        OwnRecord& record = own();
        const bool goes_on = kind == RecordKind::part;
        if (!record.bytes.empty() || (record.has_handed_over && !goes_on)) {
            const std::lock_guard guard(merges_);
            static_cast<void>(area_->ring.add(record.thread, kind, record.bytes.data(), record.bytes.size(), area_->has_failed));
            area_->ring.note_applied();
            record.bytes.clear();
            record.has_handed_over = goes_on;
        }
        record.awaited = area_->ring.tail();
    }

    static void note_store(const void* address, std::size_t size) noexcept { current.load(std::memory_order_acquire)->add(address, size); }
    static void hand_over(Handover handover) noexcept
    {
        if (handover != Handover::call_ends) {
            current.load(std::memory_order_acquire)->publish(handover == Handover::inside ? RecordKind::part : RecordKind::section_ends);
        }
    }
    static void ended() noexcept
    {
        Records& records = *current.load(std::memory_order_acquire);
        static_cast<void>(records.area_->await_durable(records.own().awaited, true, UINT64_MAX));
    }

    static inline std::atomic<Records*> current{nullptr};
    static inline std::atomic<std::uint64_t> serials{0};

    NvthreadsEngine& engine_;
    std::byte* base_;
    std::uint64_t serial_ = serials.fetch_add(1) + 1;
    ControlArea* area_ = nullptr;
    Supervisor supervisor_;
    std::mutex merges_;
    std::atomic<std::uint32_t> next_thread_{0};
};

Scribing::Scribing() : records_(std::make_unique<Records>(dynamic_cast<NvthreadsEngine&>(*open_session()->engine))) {}
Scribing::~Scribing() = default;

}  // namespace stillpoint::explorer
