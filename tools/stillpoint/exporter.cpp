// `stillpoint exporter`: figures of pools for Prometheus, by HTTP. Each request looks at the pools again, so they come and go.

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "command.hpp"
#include "listen_address.hpp"
#include "prometheus.hpp"
#include "watched_pools.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view exporter_examples = "  stillpoint exporter bank.pool                   http://127.0.0.1:9742/metrics\n"
                                               "  stillpoint exporter '/srv/pools/*.pool'         also pools that are made later\n"
                                               "  stillpoint exporter --listen [::1]:9000 a.pool b.pool\n"
                                               "docs/guide/watching.md has a configuration of Prometheus.\n";

constexpr std::string_view exporter_exit_codes =
    "  0 ended by SIGTERM or SIGINT; 64 wrong usage; 69 the address is taken, or not one of this machine;\n"
    "  71 no memory\n";

constexpr int client_seconds_max = 10;  ///< for a request, and for taking the answer
constexpr ev_ssize_t head_bytes_max = 8192;
constexpr timeval pause_without_descriptors{0, 100'000};

struct ExporterArguments {
    std::string listen = "127.0.0.1:9742";
    std::vector<std::string> pools;
};

template <auto Free>
struct FreedBy {
    template <class T>
    void operator()(T* object) const noexcept
    {
        Free(object);
    }
};
using EventBase = std::unique_ptr<event_base, FreedBy<event_base_free>>;
using Event = std::unique_ptr<event, FreedBy<event_free>>;
using HttpServer = std::unique_ptr<evhttp, FreedBy<evhttp_free>>;

struct Exporter {
    const ExporterArguments* arguments = nullptr;
    evconnlistener* listener = nullptr;
};

void reply(evhttp_request* request, int status, const char* reason, std::string_view type, std::string_view text)
{
    evkeyvalq* const headers = evhttp_request_get_output_headers(request);
    evhttp_add_header(headers, "Content-Type", std::string(type).c_str());
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evbuffer* const body = evhttp_request_get_output_buffer(request);
    // To HEAD belong the headers of the answer, and no body.
    if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
        evhttp_add_header(headers, "Content-Length", std::to_string(text.size()).c_str());
    } else {
        evbuffer_add(body, text.data(), text.size());
    }
    evhttp_send_reply(request, status, reason, nullptr);
}

constexpr std::string_view plain = "text/plain; charset=utf-8";

void on_metrics(evhttp_request* request, void* context)
{
    const auto& exporter = *static_cast<const Exporter*>(context);
    reply(request, HTTP_OK, "OK", exposition_type, exposition_of(look_at_pools(exporter.arguments->pools)));
}

void on_health(evhttp_request* request, void*) { reply(request, HTTP_OK, "OK", plain, "ok\n"); }

void on_other(evhttp_request* request, void*) { reply(request, HTTP_NOTFOUND, "Not Found", plain, "try /metrics or /healthz\n"); }

/// The timer that ends a pause. Here, because the listener's context is the HTTP server's own.
event* end_of_pause = nullptr;

/// The process has no descriptor left: the listener would wake at once, again and again.
void on_accept_failure(evconnlistener* listener, void*)
{
    evconnlistener_disable(listener);
    event_add(end_of_pause, &pause_without_descriptors);
}

void resume_listening(evutil_socket_t, short, void* context) { evconnlistener_enable(static_cast<const Exporter*>(context)->listener); }

void end_loop(evutil_socket_t, short, void* base) { event_base_loopbreak(static_cast<event_base*>(base)); }

int no_memory() { return report_error(exit_codes::system_error, "no memory for the server"); }

int serve(const ExporterArguments& arguments)
{
    const auto address = parse_listen_address(arguments.listen);
    if (!address) {
        return report_error(exit_codes::usage, text_of("--listen {}: {}", arguments.listen, address.error()));
    }
    std::signal(SIGPIPE, SIG_IGN);
    const EventBase base{event_base_new()};
    Exporter exporter{&arguments, nullptr};
    const HttpServer server{base ? evhttp_new(base.get()) : nullptr};
    const Event resume{base ? evtimer_new(base.get(), &resume_listening, &exporter) : nullptr};
    const Event on_term{base ? evsignal_new(base.get(), SIGTERM, &end_loop, base.get()) : nullptr};
    const Event on_interrupt{base ? evsignal_new(base.get(), SIGINT, &end_loop, base.get()) : nullptr};
    if (!server || !resume || !on_term || !on_interrupt) {
        return no_memory();
    }
    end_of_pause = resume.get();
    evhttp_set_timeout(server.get(), client_seconds_max);
    evhttp_set_max_headers_size(server.get(), head_bytes_max);
    evhttp_set_max_body_size(server.get(), head_bytes_max);
    evhttp_set_allowed_methods(server.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_cb(server.get(), "/metrics", &on_metrics, &exporter);
    evhttp_set_cb(server.get(), "/healthz", &on_health, nullptr);
    evhttp_set_gencb(server.get(), &on_other, nullptr);
    evhttp_bound_socket* const bound = evhttp_bind_socket_with_handle(server.get(), address->host.c_str(), address->port);
    if (bound == nullptr) {
        return report_error(exit_codes::unavailable,
                            text_of("{} cannot be listened on: {}; choose another by --listen", arguments.listen, std::strerror(errno)));
    }
    exporter.listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(exporter.listener, &on_accept_failure);
    event_add(on_term.get(), nullptr);
    event_add(on_interrupt.get(), nullptr);
    print("http://{}/metrics\n", address_of_socket(evconnlistener_get_fd(exporter.listener)));
    std::fflush(stdout);
    event_base_dispatch(base.get());
    return exit_codes::ok;
}

}  // namespace

void add_exporter(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "exporter", "Serve live figures of pools to Prometheus, by HTTP.");
    const auto arguments = std::make_shared<ExporterArguments>();
    line.positionals("POOL", arguments->pools, "Paths of pool files, and patterns for them in quotes.");
    line.option(
        "--listen", "ADDRESS:PORT",
        [arguments](const std::string& text) {
            arguments->listen = text;
            const auto parsed = parse_listen_address(text);
            return parsed ? std::string{} : parsed.error();
        },
        "Address and port of the server. Default 127.0.0.1:9742; port 0 takes a free one.");
    line.footer(exporter_examples, exporter_exit_codes);
    line.on_use([arguments] { return serve(*arguments); });
}

}  // namespace stillpoint::tool
