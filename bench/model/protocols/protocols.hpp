#pragma once
// The classes of the eight systems. What each does is in the file of its name.

#include "../protocol.hpp"

namespace bench::model {

class Spht : public Protocol {
public:
    using Protocol::Protocol;

protected:
    void begin(Worker& worker) override;
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;
    void end_read_only(Worker& worker, double timestamp) override;
    [[nodiscard]] Task<> update_marker(Worker& worker, bool is_followed);

private:
    double marker_ = -1;  ///< as the caches have it
    SharedLine marker_line_;
    Watermark durable_marker_;
};

class NvHtm : public Protocol {
public:
    using Protocol::Protocol;

protected:
    void begin(Worker& worker) override;
    [[nodiscard]] Task<> make_durable(Worker& worker, const Transaction& transaction, double timestamp) override;
    void end_read_only(Worker& worker, double timestamp) override;
};

}  // namespace bench::model
