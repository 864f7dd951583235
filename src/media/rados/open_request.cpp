#include "media/rados/open_request.hpp"

#include <unistd.h>

#include "media/rados/rados_name.hpp"

namespace stillpoint::rados {

namespace {

constexpr std::uint32_t timeout_ms = 20'000;

}  // namespace

Result<OpenRequest> request_for(const MediumOptions& options, Mode mode, std::uint64_t size_bytes)
{
    const auto name = parse_rados_name(options.path);
    if (!name) {
        return pass_on(name.error());
    }
    OpenRequest request{};
    request.magic = protocol_magic;
    request.version = protocol_version;
    request.mode = mode;
    request.take_over = options.take_over ? 1 : 0;
    request.lease_ms = options.lease_ms;
    request.timeout_ms = timeout_ms;
    request.process = getpid();
    request.size_bytes = size_bytes;
    request.writer = options.writer;
    const bool fits = put_text(request.ceph_pool, name->ceph_pool) && put_text(request.name, name->name) &&
                      put_text(request.user, name->user) && put_text(request.configuration, name->configuration);
    return fits ? Result<OpenRequest>{request} : Result<OpenRequest>{fail(SP_E_INVALID_ARGUMENT, 0, "{} is too long", options.path)};
}

}  // namespace stillpoint::rados
