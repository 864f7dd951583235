#pragma once
// A program on the parts of parts.hpp: how one operation works on them is a derived class's.

#include "transactions/parts.hpp"

namespace stillpoint::explorer {

class PartsProgram : public ObjectWorkload {
public:
    void find_objects() final;
    [[nodiscard]] PartDigests digests() const final;
    [[nodiscard]] std::string look_at_image(const FindObject& find, PartDigests& digests, std::uint64_t& blocks) const final;
    /// One operation, and sometimes a checkpoint.
    void perform(Random& random) final;

protected:
    virtual void find_more() {}
    [[nodiscard]] virtual std::string look_at_more(const FindObject& /*find*/, std::uint64_t& /*blocks*/) const { return ""; }
    virtual void work_on(TransactionParts& parts, Random& random) = 0;

private:
    TransactionParts* parts_ = nullptr;
};

}  // namespace stillpoint::explorer
