#pragma once
// A file descriptor that is closed when its owner goes away.

#include <utility>

#include "os/own_descriptors.hpp"

namespace stillpoint::os {

class Descriptor {
public:
    Descriptor() noexcept = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { reset(); }

    /// Gives it a high number that the program cannot close (own_descriptors.hpp).
    void claim() noexcept { fd_ = claim_descriptor(fd_); }
    /// -1 where there is none.
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
    void reset() noexcept
    {
        if (fd_ >= 0) {
            close_descriptor(std::exchange(fd_, -1));  // Errors mean nothing here: sync() came before.
        }
    }

private:
    int fd_ = -1;
};

}  // namespace stillpoint::os
