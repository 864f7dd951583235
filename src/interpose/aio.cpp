// POSIX asynchronous I/O: threads of libc read, by calls that no shim sees. A durable buffer is in flight until the program
// has asked for the result.

#include <aio.h>

#include "interpose/real.hpp"
#include "runtime/kernel_call.hpp"

namespace {

template <class Request>
void begins(const Request& request) noexcept
{
    stillpoint::kernel_request_begins(const_cast<void*>(request.aio_buf), request.aio_nbytes, &request);
}

template <class Request>
void list_begins(Request* const* list, int count) noexcept
{
    for (int i = 0; i < count; ++i) {
        if (list[i] != nullptr && list[i]->aio_lio_opcode == LIO_READ) {
            begins(*list[i]);
        }
    }
}

}  // namespace

SHIM int aio_read(aiocb* request)
{
    begins(*request);
    return REAL(aio_read)(request);
}

SHIM int aio_read64(aiocb64* request)
{
    begins(*request);
    return REAL(aio_read64)(request);
}

SHIM int lio_listio(int mode, aiocb* const* list, int count, sigevent* event)
{
    list_begins(list, count);
    return REAL(lio_listio)(mode, list, count, event);
}

SHIM int lio_listio64(int mode, aiocb64* const* list, int count, sigevent* event)
{
    list_begins(list, count);
    return REAL(lio_listio64)(mode, list, count, event);
}

SHIM ssize_t aio_return(aiocb* request)
{
    stillpoint::kernel_request_ended(request);
    return REAL(aio_return)(request);
}

SHIM ssize_t aio_return64(aiocb64* request)
{
    stillpoint::kernel_request_ended(request);
    return REAL(aio_return64)(request);
}
