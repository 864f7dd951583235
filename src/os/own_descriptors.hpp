#pragma once
// The descriptors of the runtime in the program's process. They get high numbers, which no program meets that counts
// from 3 upwards, and they are listed here, so that the interposer can refuse to close or replace them: a program that closes
// everything it did not open (daemons do) must not end its own durability, and pages must not go to a file that it
// opens next under that number.

namespace stillpoint::os {

/// Takes `fd` over: its new number, or `fd` itself where no high number is free. -1 stays -1.
[[nodiscard]] int claim_descriptor(int fd) noexcept;
/// Closes a descriptor, claimed or not.
void close_descriptor(int fd) noexcept;
/// For one that other code closes.
void disown_descriptor(int fd) noexcept;
/// Any thread; async-signal-safe.
[[nodiscard]] bool is_own_descriptor(int fd) noexcept;
/// The lowest one that is at least `first`, or -1.
[[nodiscard]] int next_own_descriptor(int first) noexcept;

}  // namespace stillpoint::os
