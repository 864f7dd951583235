#include "io_ways.hpp"

#include <algorithm>
#include <aio.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <liburing.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace io_ways {

namespace {

bool complain(std::string_view what, long wanted, long got)
{
    std::fprintf(stderr, "io_program: %.*s: %ld of %ld bytes (%s)\n", static_cast<int>(what.size()), what.data(), got, wanted,
                 got < 0 ? std::strerror(errno) : "short");
    return false;
}

bool whole(std::string_view what, std::size_t wanted, ssize_t got)
{
    return got == static_cast<ssize_t>(wanted) || complain(what, static_cast<long>(wanted), got);
}

class WithFile : public Way {
public:
    WithFile(std::string_view name, const char* path, int flags) : name_(name), file_(open(path, O_RDONLY | O_CLOEXEC | flags)) {}
    ~WithFile() override { close(file_); }

protected:
    std::string_view name_;
    int file_;
};

// -- Calls of libc that read into the buffer ----------------------------------------------------

struct Calls {
    static ssize_t by_pread(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        return pread(file, buffer, size, static_cast<off_t>(offset));
    }
    static ssize_t by_read(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        return lseek(file, static_cast<off_t>(offset), SEEK_SET) < 0 ? -1 : read(file, buffer, size);
    }
    static constexpr int parts_max = 1024;
    static int cut_into_parts(void* buffer, std::size_t size, iovec (&parts)[parts_max])
    {
        constexpr std::size_t part = 65536;
        int count = 0;
        for (std::size_t at = 0; at < size; at += part) {
            parts[count++] = {static_cast<char*>(buffer) + at, std::min(part, size - at)};
        }
        return count;
    }
    static ssize_t by_readv(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        iovec parts[parts_max];
        const int count = cut_into_parts(buffer, size, parts);
        return lseek(file, static_cast<off_t>(offset), SEEK_SET) < 0 ? -1 : readv(file, parts, count);
    }
    static ssize_t by_preadv(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        iovec parts[parts_max];
        const int count = cut_into_parts(buffer, size, parts);
        return preadv(file, parts, count, static_cast<off_t>(offset));
    }
    static ssize_t by_preadv2(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        const iovec part{buffer, size};
        return preadv2(file, &part, 1, static_cast<off_t>(offset), 0);
    }
    static ssize_t by_syscall(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        return syscall(SYS_pread64, file, buffer, size, offset);
    }
    static ssize_t by_aio(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        aiocb request{};
        request.aio_fildes = file;
        request.aio_buf = buffer;
        request.aio_nbytes = size;
        request.aio_offset = static_cast<off_t>(offset);
        if (aio_read(&request) != 0) {
            return -1;
        }
        const aiocb* const list[] = {&request};
        while (aio_error(&request) == EINPROGRESS) {
            aio_suspend(list, 1, nullptr);
        }
        errno = aio_error(&request);
        return aio_return(&request);
    }
    static ssize_t by_stream(int file, void* buffer, std::size_t size, std::uint64_t offset)
    {
        FILE* const stream = fdopen(dup(file), "r");
        std::size_t got = 0;
        if (stream != nullptr && fseeko(stream, static_cast<off_t>(offset), SEEK_SET) == 0) {
            got = fread(buffer, 1, size, stream);
        }
        if (stream != nullptr) {
            fclose(stream);
        }
        return static_cast<ssize_t>(got);
    }
};

class ByCall final : public WithFile {
public:
    using Call = ssize_t (*)(int, void*, std::size_t, std::uint64_t);
    ByCall(std::string_view name, const char* path, int flags, Call call) : WithFile(name, path, flags), call_(call) {}
    bool fill(void* buffer, std::size_t size, std::uint64_t offset) override
    {
        return whole(name_, size, call_(file_, buffer, size, offset));
    }

private:
    Call call_;
};

// -- Sockets: another thread sends what the file has --------------------------------------------

class BySocket final : public WithFile {
public:
    using Call = ssize_t (*)(int, void*, std::size_t);
    BySocket(std::string_view name, const char* path, Call call) : WithFile(name, path, 0), call_(call)
    {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0) {
            std::perror("io_program: socketpair");
            std::exit(2);
        }
    }
    ~BySocket() override
    {
        close(ends_[0]);
        close(ends_[1]);
    }
    bool fill(void* buffer, std::size_t size, std::uint64_t offset) override
    {
        std::thread sender([&] {
            std::unique_ptr<char[]> bytes(new char[size]);
            std::size_t sent = 0;
            if (pread(file_, bytes.get(), size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size)) {
                for (ssize_t here = 0; sent < size && (here = send(ends_[1], bytes.get() + sent, size - sent, 0)) > 0;) {
                    sent += static_cast<std::size_t>(here);
                }
            }
        });
        std::size_t got = 0;
        ssize_t here = 0;
        while (got < size && (here = call_(ends_[0], static_cast<char*>(buffer) + got, size - got)) > 0) {
            got += static_cast<std::size_t>(here);
        }
        if (got < size) {
            const int error = errno;
            shutdown(ends_[0], SHUT_RDWR);
            errno = error;
        }
        sender.join();
        return got == size || complain(name_, static_cast<long>(size), here);
    }
    static ssize_t by_recv(int file, void* buffer, std::size_t size) { return recv(file, buffer, size, MSG_WAITALL); }
    static ssize_t by_recvmsg(int file, void* buffer, std::size_t size)
    {
        iovec part{buffer, size};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        return recvmsg(file, &message, 0);
    }
    static ssize_t by_recvmmsg(int file, void* buffer, std::size_t size)
    {
        iovec part{buffer, size};
        mmsghdr messages[1]{};
        messages[0].msg_hdr.msg_iov = &part;
        messages[0].msg_hdr.msg_iovlen = 1;
        const int got = recvmmsg(file, messages, 1, 0, nullptr);
        return got < 0 ? got : static_cast<ssize_t>(messages[0].msg_len);
    }

private:
    Call call_;
    int ends_[2] = {-1, -1};
};

// -- io_uring -----------------------------------------------------------------------------------

class ByRing final : public WithFile {
public:
    ByRing(const char* path, bool fixed) : WithFile(fixed ? "uring-fixed" : "uring", path, O_DIRECT), fixed_(fixed)
    {
        if (const int error = io_uring_queue_init(32, &ring_, 0); error != 0) {
            std::fprintf(stderr, "io_program: io_uring: %s\n", std::strerror(-error));
            std::exit(2);
        }
    }
    ~ByRing() override { io_uring_queue_exit(&ring_); }
    bool fill(void* buffer, std::size_t size, std::uint64_t offset) override
    {
        if (fixed_ && !pin(buffer, size)) {
            return false;
        }
        // Several requests in flight.
        constexpr std::size_t part = 64 * 1024;
        unsigned requests = 0;
        for (std::size_t at = 0; at < size; at += part, ++requests) {
            io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
            char* const to = static_cast<char*>(buffer) + at;
            const auto bytes = static_cast<unsigned>(std::min(part, size - at));
            if (fixed_) {
                io_uring_prep_read_fixed(entry, file_, to, bytes, offset + at, 0);
            } else {
                io_uring_prep_read(entry, file_, to, bytes, offset + at);
            }
        }
        if (const int submitted = io_uring_submit(&ring_); submitted != static_cast<int>(requests)) {
            return complain(name_, static_cast<long>(requests), submitted);
        }
        for (; requests != 0; --requests) {
            io_uring_cqe* entry = nullptr;
            if (const int error = io_uring_wait_cqe(&ring_, &entry); error != 0) {
                errno = -error;
                return complain(name_, static_cast<long>(size), -1);
            }
            if (entry->res <= 0 || entry->res % 512 != 0) {
                errno = -std::min(0, entry->res);
                return complain(name_, static_cast<long>(size), entry->res);
            }
            io_uring_cqe_seen(&ring_, entry);
        }
        return true;
    }

private:
    /// The buffer stays registered for as long as the next calls use the same one.
    bool pin(void* buffer, std::size_t size)
    {
        if (buffer == pinned_) {
            return true;
        }
        if (pinned_ != nullptr) {
            io_uring_unregister_buffers(&ring_);
        }
        const iovec part{buffer, size};
        if (const int error = io_uring_register_buffers(&ring_, &part, 1); error != 0) {
            errno = -error;
            return complain("io_uring_register_buffers", 0, -1);
        }
        pinned_ = buffer;
        return true;
    }
    io_uring ring_{};
    bool fixed_;
    void* pinned_ = nullptr;
};

// -- Kernel AIO, by raw system calls --------------------------------------------------------------

class ByKernelAio final : public WithFile {
public:
    explicit ByKernelAio(const char* path) : WithFile("kernel-aio", path, O_DIRECT)
    {
        if (syscall(SYS_io_setup, 16, &context_) != 0) {
            std::perror("io_program: io_setup");
            std::exit(2);
        }
    }
    ~ByKernelAio() override { syscall(SYS_io_destroy, context_); }
    bool fill(void* buffer, std::size_t size, std::uint64_t offset) override
    {
        iocb request{};
        request.aio_fildes = static_cast<unsigned>(file_);
        request.aio_lio_opcode = IOCB_CMD_PREAD;
        request.aio_buf = reinterpret_cast<std::uintptr_t>(buffer);
        request.aio_nbytes = size;
        request.aio_offset = static_cast<std::int64_t>(offset);
        iocb* list[] = {&request};
        if (syscall(SYS_io_submit, context_, 1, list) != 1) {
            return complain(name_, static_cast<long>(size), -1);
        }
        io_event event{};
        while (syscall(SYS_io_getevents, context_, 1, 1, &event, nullptr) != 1) {
            if (errno != EINTR) {
                return complain(name_, static_cast<long>(size), -1);
            }
        }
        return whole(name_, size, static_cast<ssize_t>(event.res));
    }

private:
    aio_context_t context_ = 0;
};

// -- Another process stores ---------------------------------------------------------------------

/// Asked by a pipe, a child reads the file and stores into the parent's memory.
class ByOtherProcess final : public WithFile {
public:
    ByOtherProcess(const char* path, bool traced) : WithFile(traced ? "ptrace" : "process_vm_writev", path, 0), traced_(traced)
    {
        if (pipe2(ask_, O_CLOEXEC) != 0 || pipe2(answer_, O_CLOEXEC) != 0) {
            std::perror("io_program: pipe2");
            std::exit(2);
        }
        const pid_t parent = getpid();
        child_ = fork();
        if (child_ == 0) {
            close(ask_[1]);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(parent);
            _exit(0);
        }
        close(ask_[0]);
    }
    ~ByOtherProcess() override
    {
        // Closing the pipe does not end it: children of other threads, made meanwhile, have the pipe's end as well.
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    bool fill(void* buffer, std::size_t size, std::uint64_t offset) override
    {
        const Request request{buffer, size, offset};
        long stored = -1;
        if (write(ask_[1], &request, sizeof request) != sizeof request || read(answer_[0], &stored, sizeof stored) != sizeof stored) {
            return complain(name_, static_cast<long>(size), -1);
        }
        errno = stored < 0 ? static_cast<int>(-stored) : 0;
        return whole(name_, size, stored);
    }

private:
    struct Request {
        void* buffer;
        std::size_t size;
        std::uint64_t offset;
    };
    void serve(pid_t parent)
    {
        Request request{};
        const int memory = traced_ ? open(("/proc/" + std::to_string(parent) + "/mem").c_str(), O_RDWR | O_CLOEXEC) : -1;
        while (read(ask_[0], &request, sizeof request) == sizeof request) {
            std::unique_ptr<char[]> bytes(new char[request.size]);
            long stored = pread(file_, bytes.get(), request.size, static_cast<off_t>(request.offset));
            const iovec here{bytes.get(), request.size};
            const iovec there{request.buffer, request.size};
            if (stored > 0) {
                // /proc/PID/mem writes as PTRACE_POKEDATA does, also through a page that is read-only.
                stored = traced_ ? pwrite(memory, bytes.get(), request.size, reinterpret_cast<off_t>(request.buffer))
                                 : process_vm_writev(parent, &here, 1, &there, 1, 0);
                stored = stored < 0 ? -errno : stored;
            }
            if (write(answer_[1], &stored, sizeof stored) != sizeof stored) {
                return;
            }
        }
    }
    bool traced_;
    int ask_[2] = {-1, -1};
    int answer_[2] = {-1, -1};
    pid_t child_ = -1;
};

}  // namespace

std::unique_ptr<Way> make_way(std::string_view name, const char* file)
{
    struct Known {
        std::string_view name;
        int flags;
        ByCall::Call call;
    };
    constexpr Known known[] = {
        {"pread-direct", O_DIRECT, &Calls::by_pread},
        {"pread", 0, &Calls::by_pread},
        {"read-direct", O_DIRECT, &Calls::by_read},
        {"readv-direct", O_DIRECT, &Calls::by_readv},
        {"preadv-direct", O_DIRECT, &Calls::by_preadv},
        {"preadv2-direct", O_DIRECT, &Calls::by_preadv2},
        {"syscall-direct", O_DIRECT, &Calls::by_syscall},
        {"aio-direct", O_DIRECT, &Calls::by_aio},
        {"fread", 0, &Calls::by_stream},
    };
    for (const Known& way : known) {
        if (way.name == name) {
            return std::make_unique<ByCall>(way.name, file, way.flags, way.call);
        }
    }
    if (name == "recv") {
        return std::make_unique<BySocket>("recv", file, &BySocket::by_recv);
    }
    if (name == "recvmsg") {
        return std::make_unique<BySocket>("recvmsg", file, &BySocket::by_recvmsg);
    }
    if (name == "recvmmsg") {
        return std::make_unique<BySocket>("recvmmsg", file, &BySocket::by_recvmmsg);
    }
    if (name == "uring" || name == "uring-fixed") {
        return std::make_unique<ByRing>(file, name == "uring-fixed");
    }
    if (name == "kernel-aio") {
        return std::make_unique<ByKernelAio>(file);
    }
    if (name == "process_vm_writev" || name == "ptrace") {
        return std::make_unique<ByOtherProcess>(file, name == "ptrace");
    }
    std::fprintf(stderr, "io_program: there is no way called %.*s\n", static_cast<int>(name.size()), name.data());
    return nullptr;
}

}  // namespace io_ways
