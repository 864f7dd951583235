#pragma once
// Guards for calls that receive messages into memory of the program (runtime/kernel_call.hpp): by name, and by number.

#include <sys/socket.h>

#include "runtime/kernel_call.hpp"

namespace stillpoint {

/// The buffers that one message is received into: the parts, and what the kernel says of it.
class MessageCall {
public:
    explicit MessageCall(msghdr* message) noexcept
        : parts_(message != nullptr ? message->msg_iov : nullptr, message != nullptr ? message->msg_iovlen : 0),
          name_(message != nullptr ? message->msg_name : nullptr, message != nullptr ? message->msg_namelen : 0),
          control_(message != nullptr ? message->msg_control : nullptr, message != nullptr ? message->msg_controllen : 0),
          header_(message, sizeof *message)
    {
    }
    ssize_t returned(ssize_t stored) noexcept { return parts_.returned(stored); }

private:
    KernelCallParts parts_;
    KernelCall name_;
    KernelCall control_;
    KernelCall header_;
};

/// Some of what a message is received into is durable.
[[nodiscard]] inline bool receives_into_durable(const msghdr& message) noexcept
{
    bool durable = stillpoint_is_persistent(message.msg_name) || stillpoint_is_persistent(message.msg_control);
    for (std::size_t part = 0; part < message.msg_iovlen && !durable; ++part) {
        durable = stillpoint_is_persistent(message.msg_iov[part].iov_base);
    }
    return durable;
}

/// `receive(count)` makes the call for so many messages. Where one is durable only the first is asked for: fewer than asked for is
/// what this call may return.
template <class Receive>
int receive_messages(mmsghdr* messages, unsigned count, Receive receive)
{
    if (count == 0 || messages == nullptr) {
        return receive(count);
    }
    bool durable = stillpoint_is_persistent(messages) != 0;
    for (unsigned i = 0; i < count && !durable; ++i) {
        durable = receives_into_durable(messages[i].msg_hdr);
    }
    if (!durable) {
        return receive(count);
    }
    MessageCall call(&messages[0].msg_hdr);
    const KernelCall header(&messages[0], sizeof messages[0]);
    const int received = receive(1U);
    call.returned(received == 1 ? static_cast<ssize_t>(messages[0].msg_len) : received);
    return received;
}

}  // namespace stillpoint
