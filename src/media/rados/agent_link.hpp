#pragma once
// The medium's end of the conversation with its agent: starts it, opens a pool by it, passes requests, waits for their ends.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "media/rados/agent_protocol.hpp"
#include "os/descriptor.hpp"

namespace stillpoint::rados {

/// Path of the agent's program, beside the library or where it is installed. Errors: unsupported.
[[nodiscard]] Result<std::string> find_agent();

class AgentLink {
public:
    /// Starts the program `agent` and has it open what `request` says. Errors: the agent's own; unsupported (it cannot be started),
    /// timed_out, io (it ended, or its answer is none).
    [[nodiscard]] static Result<std::unique_ptr<AgentLink>> open(const std::string& agent, const OpenRequest& request, OpenReply& reply);
    /// The link that a standby left for this path over exec, if this process has one and the agent owns the pool: nothing where not.
    /// `keep`: it is this process's from here on, and no other's; else it is only used, and stays as it is.
    [[nodiscard]] static std::unique_ptr<AgentLink> inherited(std::string_view path, bool keep, OpenReply& reply);
    ~AgentLink();
    AgentLink(const AgentLink&) = delete;
    AgentLink& operator=(const AgentLink&) = delete;

    [[nodiscard]] Slot& slot(std::uint32_t number) noexcept { return state_->slots[number]; }
    [[nodiscard]] std::byte* data(std::uint32_t number) noexcept { return data_of(*state_, number); }

    /// Hands the slot's request, which the caller has filled in, to the agent. No malloc. Errors: io (the agent has ended).
    [[nodiscard]] Result<void> request(std::uint32_t number) noexcept;
    [[nodiscard]] bool is_done(std::uint32_t number) noexcept;
    /// Waits until the request is done: its outcome. The slot is free afterwards. Errors: its own; io (the agent has ended).
    [[nodiscard]] Result<void> finish(std::uint32_t number) noexcept;
    /// Waits until the request is done, or `deadline_ns` of the monotonic clock; the slot stays as it is. False: the agent has ended.
    [[nodiscard]] bool await(std::uint32_t number, std::uint64_t deadline_ns = UINT64_MAX) noexcept;

    /// ok while this process owns the pool and its lease runs. Waits for a renewal where it does not. Errors: pool_locked (lost), io.
    [[nodiscard]] Result<void> check_ownership() noexcept;

    /// Whether the link stays when this ends: the pool must not be closed.
    [[nodiscard]] bool is_borrowed() const noexcept { return is_borrowed_; }

    // For a standby, before leave_to_program().
    /// False: no second reply has come within that time. Errors: the agent's own, io.
    [[nodiscard]] Result<bool> await_second_reply(OpenReply& reply, std::uint64_t ns) noexcept;
    [[nodiscard]] const SharedState& state() const noexcept { return *state_; }
    /// Puts into the environment what inherited() finds after exec. Errors: io.
    [[nodiscard]] Result<void> leave_to_program(std::string_view path, const OpenReply& reply);

    /// In a child after fork: the agent is the parent's.
    void detach_after_fork() noexcept;

private:
    AgentLink() = default;
    [[nodiscard]] Result<void> start(const std::string& agent, bool keep_memory);
    [[nodiscard]] Result<OpenReply> converse(const OpenRequest& request);
    [[nodiscard]] bool has_ended() noexcept;
    [[nodiscard]] Failure end_of_agent() const noexcept;

    [[nodiscard]] Result<OpenReply> receive_reply();
    [[nodiscard]] bool can_receive(std::uint64_t ns) noexcept;

    os::Descriptor socket_;
    os::Descriptor memory_;  ///< of a standby's link only
    bool is_borrowed_ = false;
    SharedState* state_ = nullptr;
    bool detached_ = false;
};

}  // namespace stillpoint::rados
