#include "cluster.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "../stillpoint/output.hpp"

#include "core/units.hpp"
#include "media/rados/agent_protocol.hpp"

namespace stillpoint::rados {

using tool::text_of;

namespace {

/// A paused owner must find itself blocked whenever it goes on; the cluster's default is an hour.
constexpr std::uint32_t blocked_seconds = 365 * 24 * 3600;
constexpr std::size_t head_bytes_max = 4096;

std::string name_of_error(int error) { return text_of("{} ({})", std::strerror(-error), -error); }

/// The user that CEPH_ARGS names, as for Ceph's own commands; librados itself looks there for options only.
std::string user_in_environment()
{
    const char* const arguments = std::getenv("CEPH_ARGS");
    std::istringstream words(arguments != nullptr ? arguments : "");
    std::string user;
    for (std::string word; words >> word;) {
        for (const std::string_view option : {"--id", "--user", "--name", "-n"}) {
            std::string value;
            if (word == option) {
                words >> value;
            } else if (word.starts_with(option) && word[option.size()] == '=') {
                value = word.substr(option.size() + 1);
            } else {
                continue;
            }
            user = value.starts_with("client.") ? value.substr(value.find('.') + 1) : value;
        }
    }
    return user;
}

std::string name_of_user(const ClusterPlace& place) { return "client." + (place.user.empty() ? std::string("admin") : place.user); }

Failure failure_to_connect(const ClusterPlace& place, int error, std::string_view step)
{
    const std::string title = text_of("rados://{}/{}", place.ceph_pool, place.name);
    const std::string where = place.configuration.empty() ? "/etc/ceph/ceph.conf" : place.configuration;
    switch (-error) {
    case ETIMEDOUT:
        return fail(SP_E_TIMED_OUT, ETIMEDOUT,
                    "{}: no monitor of the cluster answers; see that it runs (`ceph status`) and that {} names it", title, where)
            .value();
    case EACCES:
    case EPERM:
        return fail(SP_E_POOL_READ_ONLY, -error, "{}: the cluster refuses {}: check its key and its rights (`ceph auth get {}`)", title,
                    name_of_user(place), name_of_user(place))
            .value();
    case ENOENT:
        return fail(SP_E_POOL_READ_ONLY, ENOENT,
                    "{}: {}: there is no configuration, or it names no key of {}; set CEPH_CONF or CEPH_KEYRING, or say ?conf=FILE&id=USER",
                    title, step, name_of_user(place))
            .value();
    default: return fail(SP_E_IO, -error, "{}: {}: {}; see `ceph status`", title, step, name_of_error(error)).value();
    }
}

}  // namespace

void add_lock_call(const WriteOp& op, const char* method, const std::string& message)
{
    rados_write_op_exec(op.get(), lock_class, method, message.data(), message.size(), nullptr);
}

void add_comparison(const WriteOp& op, const std::string& text)
{
    rados_write_op_cmpxattr(op.get(), head_attribute, LIBRADOS_CMPXATTR_OP_EQ, text.data(), text.size());
}

void add_head(const WriteOp& op, const std::string& text) { rados_write_op_setxattr(op.get(), head_attribute, text.data(), text.size()); }

Result<std::unique_ptr<Cluster>> Cluster::connect(ClusterPlace place)
{
    std::unique_ptr<Cluster> cluster(new Cluster);
    if (place.user.empty()) {
        place.user = user_in_environment();
    }
    cluster->place_ = place;
    int error = rados_create(&cluster->cluster_, place.user.empty() ? nullptr : place.user.c_str());
    if (error != 0) {
        return pass_on(failure_to_connect(place, error, "librados cannot begin"));
    }
    rados_t const handle = cluster->cluster_;
    error = rados_conf_read_file(handle, place.configuration.empty() ? nullptr : place.configuration.c_str());
    if (error != 0) {
        return pass_on(failure_to_connect(place, error, "the configuration cannot be read"));
    }
    rados_conf_parse_env(handle, nullptr);
    const std::string seconds = std::to_string((place.timeout_ms + 1999) / 2000);
    for (const auto& [option, value] : {std::pair<const char*, const char*>{"client_mount_timeout", seconds.c_str()},
                                        {"rados_mon_op_timeout", seconds.c_str()},
                                        {"log_to_stderr", "false"},
                                        {"err_to_stderr", "false"},
                                        {"log_file", ""}}) {
        rados_conf_set(handle, option, value);
    }
    if (error = rados_connect(handle); error != 0) {
        return pass_on(failure_to_connect(place, error, "the cluster cannot be reached"));
    }
    error = rados_ioctx_create(handle, place.ceph_pool.c_str(), &cluster->io_);
    if (error == -ENOENT) {
        return fail(SP_E_INVALID_ARGUMENT, ENOENT, "rados://{0}/{1}: the cluster has no pool {0}; make it with `ceph osd pool create {0}`",
                    place.ceph_pool, place.name);
    }
    if (error != 0) {
        return pass_on(failure_to_connect(place, error, "the Ceph pool cannot be opened"));
    }
    return cluster;
}

Cluster::~Cluster()
{
    if (io_ != nullptr) {
        rados_ioctx_destroy(io_);
    }
    if (cluster_ != nullptr) {
        rados_shutdown(cluster_);
    }
}

std::string Cluster::title() const { return text_of("rados://{}/{}", place_.ceph_pool, place_.name); }

std::string Cluster::object_name(std::uint64_t index) const { return text_of("stillpoint.{}.{:08x}", place_.name, index); }

Result<std::string> Cluster::address() const
{
    char* text = nullptr;
    if (const int error = rados_getaddrs(cluster_, &text); error != 0 || text == nullptr) {
        return pass_on(failure_of(error, "asking for this client's address"));
    }
    std::string address = text;
    rados_buffer_free(text);
    return address;
}

/// The monitor's answer, which is JSON; empty where there is none.
std::string Cluster::property_of_pool(std::string_view variable) const
{
    const std::string command = text_of(R"({{"prefix":"osd pool get","pool":"{}","var":"{}","format":"json"}})", place_.ceph_pool,
                                        variable);
    const char* commands[] = {command.c_str()};
    char* output = nullptr;
    std::size_t output_bytes = 0;
    char* status = nullptr;
    std::size_t status_bytes = 0;
    const int error = rados_mon_command(cluster_, commands, 1, nullptr, 0, &output, &output_bytes, &status, &status_bytes);
    std::string text = error == 0 && output != nullptr ? std::string(output, output_bytes) : std::string{};
    rados_buffer_free(output);
    rados_buffer_free(status);
    return text;
}

Cluster::Redundancy Cluster::redundancy() const
{
    const std::string text = property_of_pool("size");
    constexpr std::string_view field = "\"size\":";
    const std::size_t at = text.find(field);
    Redundancy result;
    if (at != std::string::npos) {
        std::from_chars(text.data() + at + field.size(), text.data() + text.size(), result.copies);
    }
    // The monitor refuses the question of a pool that is replicated.
    result.is_erasure_coded = result.copies != 0 && !property_of_pool("erasure_code_profile").empty();
    return result;
}

Result<HeadState> Cluster::read_head(bool with_lock) const
{
    HeadState state;
    const std::string question = info_message(lock_name);
    std::string answer(64 * kib, '\0');
    std::size_t answer_bytes = 0;
    int attributes_error = 0;
    int lock_error = 0;
    rados_xattrs_iter_t attributes = nullptr;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_getxattrs(op, &attributes, &attributes_error);
    if (with_lock) {
        rados_read_op_exec_user_buf(op, lock_class, "get_info", question.data(), question.size(), answer.data(), answer.size(),
                                    &answer_bytes, &lock_error);
    }
    const int error = rados_read_op_operate(op, io_, object_name(0).c_str(), 0);
    rados_release_read_op(op);
    if (error == -ENOENT) {
        return state;
    }
    if (error != 0 || attributes_error != 0 || lock_error != 0) {
        return pass_on(failure_of(error != 0 ? error : attributes_error != 0 ? attributes_error : lock_error, "reading the pool's head"));
    }
    const char* name = nullptr;
    const char* value = nullptr;
    std::size_t value_bytes = 0;
    while (rados_getxattrs_next(attributes, &name, &value, &value_bytes) == 0 && name != nullptr) {
        if (std::strcmp(name, head_attribute) == 0 && value_bytes <= head_bytes_max) {
            state.text.assign(value, value_bytes);
        }
    }
    rados_getxattrs_end(attributes);
    const auto lock = with_lock ? lock_state_in({answer.data(), std::min(answer_bytes, answer.size())}) : std::optional(LockState{});
    state.head = Head::parse(state.text);
    if (!lock || !state.head) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the object {} is no head of a pool, or it is damaged; restore the pool from a copy", title(),
                    object_name(0));
    }
    if (state.head->layout > Head::layout_known || (state.head->object_bytes != object_bytes && state.head->layout == Head::layout_known)) {
        return fail(SP_E_POOL_VERSION, 0, "{}: its objects have layout {}, this Stillpoint knows layout {}; use a newer one", title(),
                    state.head->layout, Head::layout_known);
    }
    if (state.head->size_bytes == 0 || state.head->size_bytes % page_bytes != 0 || state.head->size_bytes > file_bytes_max) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: its head says that it has {} bytes, which no pool has; restore it from a copy", title(),
                    state.head->size_bytes);
    }
    state.lock = *lock;
    return state;
}

int Cluster::operate(const WriteOp& op, std::uint64_t index) const
{
    return rados_write_op_operate2(op.get(), io_, object_name(index).c_str(), nullptr, LIBRADOS_OPERATION_FULL_TRY);
}

Result<void> Cluster::block(const std::string& address) const
{
    std::string text = address;
    if (const int error = rados_blocklist_add(cluster_, text.data(), blocked_seconds); error != 0) {
        if (error == -EACCES || error == -EPERM) {
            return fail(SP_E_POOL_READ_ONLY, -error,
                        "{}: {} may not put the last owner on the cluster's block list, without which two could write; allow it with `ceph "
                        "auth caps {} mon 'profile simple-rados-client-with-blocklist' osd 'allow rwx pool={}'`",
                        title(), name_of_user(place_), name_of_user(place_), place_.ceph_pool);
        }
        return pass_on(failure_of(error, "putting the last owner on the cluster's block list"));
    }
    // From here on this client's operations carry the map that has the entry: an OSD takes that map before it does one of them.
    const int error = rados_wait_for_latest_osdmap(cluster_);
    return error == 0 ? Result<void>{} : Result<void>{pass_on(failure_of(error, "waiting for the cluster's map"))};
}

Result<void> Cluster::remove_objects(std::uint64_t size_bytes, bool with_the_first) const
{
    const std::uint64_t count = (size_bytes + object_bytes - 1) / object_bytes;
    for (std::uint64_t index = count; index-- > (with_the_first ? 0u : 1u);) {
        if (const int error = rados_remove(io_, object_name(index).c_str()); error != 0 && error != -ENOENT) {
            return pass_on(failure_of(error, "removing an object"));
        }
    }
    return {};
}

Failure Cluster::failure_of(int error, std::string_view action) const
{
    switch (-error) {
    case EPERM:
    case EACCES:
        return fail(SP_E_POOL_READ_ONLY, -error, "{}: {}: {} has no right to do it in the Ceph pool {} (`ceph auth get {}`)", title(),
                    action, name_of_user(place_), place_.ceph_pool, name_of_user(place_))
            .value();
    case ENOSPC:
    case EDQUOT:
        return fail(SP_E_NO_SPACE, ENOSPC,
                    "{}: {}: the cluster or the Ceph pool {} is full (`ceph df`, `ceph osd pool get-quota {}`); add "
                    "OSDs or raise the quota, then start the program again",
                    title(), action, place_.ceph_pool, place_.ceph_pool)
            .value();
    case ETIMEDOUT:
        return fail(SP_E_TIMED_OUT, ETIMEDOUT, "{}: {}: the cluster does not answer; see `ceph status`", title(), action).value();
    case EOPNOTSUPP:
        return fail(SP_E_UNSUPPORTED, EOPNOTSUPP,
                    "{}: {}: the Ceph pool {} does not take it; an erasure-coded one needs `ceph osd pool set {} allow_ec_overwrites true`",
                    title(), action, place_.ceph_pool, place_.ceph_pool)
            .value();
    default: return fail(SP_E_IO, -error, "{}: {}: {}; see `ceph health detail`", title(), action, name_of_error(error)).value();
    }
}

}  // namespace stillpoint::rados
