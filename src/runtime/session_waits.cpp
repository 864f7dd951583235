#include "runtime/session_waits.hpp"

#include "runtime/fase.hpp"

namespace stillpoint {

Result<Session*> session_to_wait_in()
{
    Session* const session = used_session();
    if (session == nullptr) {
        return fail(SP_E_NOT_OPEN, 0, "no pool is open: nothing becomes durable");
    }
    if (session->detached.load(std::memory_order_acquire)) {
        return fail(SP_E_DETACHED, 0, "a child made by fork has no pool: nothing becomes durable here");
    }
    if (inside_fase()) {
        return fail(SP_E_INSIDE_FASE, 0, "the calling thread holds a lock: release it first, or the checkpoint waits for the caller");
    }
    return session;
}

Result<Session*> session_to_make_durable()
{
    auto session = session_to_wait_in();
    if (session && (*session)->private_medium != nullptr) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{} is open for reading only (damaged=read-only): nothing becomes durable", (*session)->pool);
    }
    return session;
}

Result<void> take_checkpoint()
{
    const AtRest here(used_session());
    auto session = session_to_make_durable();
    return session ? (*session)->engine->checkpoint_now() : Result<void>{pass_on(session.error())};
}

}  // namespace stillpoint
