#include "rados_library.hpp"

#include <dlfcn.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

namespace stillpoint::tool {

namespace {

constexpr const char* library_name = "librados.so.2";
constexpr const char* lock_name = "stillpoint-doctor";

}  // namespace

// Declared as in <rados/librados.h>, whose C interface is stable: a build needs no Ceph then.
struct RadosConnection::Functions {
    int (*create)(void**, const char*);
    int (*conf_read_file)(void*, const char*);
    int (*conf_parse_env)(void*, const char*);
    int (*conf_set)(void*, const char*, const char*);
    int (*connect)(void*);
    void (*shutdown)(void*);
    int (*mon_command)(void*, const char**, std::size_t, const char*, std::size_t, char**, std::size_t*, char**, std::size_t*);
    void (*buffer_free)(char*);
    int (*ioctx_create)(void*, const char*, void**);
    void (*ioctx_destroy)(void*);
    int (*write_full)(void*, const char*, const char*, std::size_t);
    int (*remove)(void*, const char*);
    int (*lock_exclusive)(void*, const char*, const char*, const char*, const char*, timeval*, std::uint8_t);
    int (*unlock)(void*, const char*, const char*, const char*);
    int (*blocklist_add)(void*, char*, std::uint32_t);

    [[nodiscard]] Result<void> load()
    {
        void* const library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            return fail(SP_E_UNSUPPORTED, 0, "{} cannot be loaded, without which no cluster can be reached; install librados2 (Debian)",
                        library_name);
        }
        bool complete = true;
        const auto find = [&](const char* name, auto& function) {
            void* const symbol = dlsym(library, name);
            complete = complete && symbol != nullptr;
            std::memcpy(&function, &symbol, sizeof symbol);
        };
        find("rados_create", create);
        find("rados_conf_read_file", conf_read_file);
        find("rados_conf_parse_env", conf_parse_env);
        find("rados_conf_set", conf_set);
        find("rados_connect", connect);
        find("rados_shutdown", shutdown);
        find("rados_mon_command", mon_command);
        find("rados_buffer_free", buffer_free);
        find("rados_ioctx_create", ioctx_create);
        find("rados_ioctx_destroy", ioctx_destroy);
        find("rados_write_full", write_full);
        find("rados_remove", remove);
        find("rados_lock_exclusive", lock_exclusive);
        find("rados_unlock", unlock);
        find("rados_blocklist_add", blocklist_add);
        if (!complete) {
            return fail(SP_E_UNSUPPORTED, 0, "{} is too old: Ceph 16 (Pacific) or a newer one is needed", library_name);
        }
        return {};
    }
};

namespace {

tl::unexpected<Failure> refusal(const ClusterName& name, int error)
{
    const std::string user = "client." + name.user;
    switch (error) {
    case ETIMEDOUT:
        return fail(SP_E_TIMED_OUT, error,
                    "no monitor of the cluster answers; see that one runs (ceph status), and that the configuration "
                    "names it");
    case EACCES:
    case EPERM:
        return fail(SP_E_POOL_READ_ONLY, error, "the cluster refuses {0}: compare its key with what `ceph auth get {0}` says", user);
    case EINVAL:
        return fail(SP_E_INVALID_ARGUMENT, error, "the configuration {} is malformed; its last line ends with a newline, too",
                    name.configuration.empty() ? "that librados finds" : name.configuration);
    case ENOENT:
        return fail(SP_E_POOL_READ_ONLY, error,
                    "there is no configuration of a cluster, or no key of {}; set CEPH_CONF, or name both: rados://{}?conf=FILE&id=USER",
                    user, name.ceph_pool);
    default: return fail(SP_E_IO, error, "the cluster cannot be reached: {}; see `ceph status`", std::strerror(error));
    }
}

}  // namespace

RadosConnection::RadosConnection() : functions_(std::make_unique<Functions>()) {}

RadosConnection::~RadosConnection()
{
    if (pool_ != nullptr) {
        functions_->ioctx_destroy(pool_);
    }
    if (cluster_ != nullptr) {
        functions_->shutdown(cluster_);
    }
}

Result<std::unique_ptr<RadosConnection>> RadosConnection::open(const ClusterName& name, unsigned timeout_s)
{
    std::unique_ptr<RadosConnection> connection(new RadosConnection);
    Functions& functions = *connection->functions_;
    if (const auto loaded = functions.load(); !loaded) {
        return pass_on(loaded.error());
    }
    if (const int error = functions.create(&connection->cluster_, name.user.c_str()); error != 0) {
        connection->cluster_ = nullptr;
        return refusal(name, -error);
    }
    void* const cluster = connection->cluster_;
    if (const int error = functions.conf_read_file(cluster, name.configuration.empty() ? nullptr : name.configuration.c_str());
        error != 0) {
        return refusal(name, -error);
    }
    functions.conf_parse_env(cluster, nullptr);
    const std::string seconds = std::to_string(timeout_s);
    for (const char* option : {"client_mount_timeout", "rados_mon_op_timeout", "rados_osd_op_timeout"}) {
        functions.conf_set(cluster, option, seconds.c_str());
    }
    for (const auto& [option, value] : {std::pair{"log_file", ""}, {"log_to_stderr", "false"}, {"err_to_stderr", "false"}}) {
        functions.conf_set(cluster, option, value);
    }
    if (const int error = functions.connect(cluster); error != 0) {
        return refusal(name, -error);
    }
    return connection;
}

RadosConnection::Answer RadosConnection::ask_monitor(const std::string& command)
{
    const char* commands[] = {command.c_str()};
    char* out = nullptr;
    char* words = nullptr;
    std::size_t out_bytes = 0;
    std::size_t words_bytes = 0;
    const int error = functions_->mon_command(cluster_, commands, 1, nullptr, 0, &out, &out_bytes, &words, &words_bytes);
    Answer answer{-error, out == nullptr ? std::string{} : std::string(out, out_bytes)};
    functions_->buffer_free(out);
    functions_->buffer_free(words);
    return answer;
}

int RadosConnection::open_pool(const std::string& name) { return -functions_->ioctx_create(cluster_, name.c_str(), &pool_); }

int RadosConnection::write_object(const std::string& name, const std::string& content)
{
    return -functions_->write_full(pool_, name.c_str(), content.data(), content.size());
}

int RadosConnection::remove_object(const std::string& name) { return -functions_->remove(pool_, name.c_str()); }

int RadosConnection::try_lock(const std::string& name)
{
    timeval duration{30, 0};
    const int error = functions_->lock_exclusive(pool_, name.c_str(), lock_name, "", "", &duration, 0);
    return error != 0 ? -error : -functions_->unlock(pool_, name.c_str(), lock_name, "");
}

int RadosConnection::try_block_list()
{
    char address[] = "192.0.2.1:0/1";
    return -functions_->blocklist_add(cluster_, address, 1);
}

}  // namespace stillpoint::tool
