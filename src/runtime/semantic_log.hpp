#pragma once
// SemanticLog: what an engine that keeps objects by a log of their operations offers to the C API (stillpoint/pronto.h) and to
// the tools. The functions mean what those of the same name there mean.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "stillpoint/pronto.h"

namespace stillpoint {

struct Session;

class SemanticLog {
public:
    virtual ~SemanticLog() = default;

    /// The object's memory. `flags` and errors: sp_pronto_object.
    [[nodiscard]] virtual Result<void*> object(Session& session, const sp_pronto_type& type, const char* name, unsigned flags,
                                               const void* arguments, std::size_t bytes) = 0;
    [[nodiscard]] virtual Result<void> delete_object(Session& session, const char* name) = 0;
    [[nodiscard]] virtual bool is_object(const void* object) const noexcept = 0;

    [[nodiscard]] virtual Result<void*> begin(sp_pronto_operation& operation, void* object, std::uint32_t method,
                                              std::size_t bytes) = 0;
    virtual void start_logging(sp_pronto_operation& operation) noexcept = 0;
    [[nodiscard]] virtual Result<void> commit(sp_pronto_operation& operation, bool early) = 0;
    [[nodiscard]] virtual Result<void> commit_current() = 0;
    [[nodiscard]] virtual Result<void> end(sp_pronto_operation& operation, bool by_exception) = 0;
    [[nodiscard]] virtual Result<void> wait_read(const void* object) = 0;
    [[nodiscard]] virtual Result<void> numbers(const void* object, std::uint64_t* committed, std::uint64_t* durable) = 0;
};

}  // namespace stillpoint
