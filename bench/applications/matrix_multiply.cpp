// Matrix multiplication: C = A B, for square matrices of doubles.
//
// Durable: C, four rows an operation (22 KiB of the usual size), and each thread's count of finished rows. The rows are computed in the
// thread's own memory, which stays in the cache, and then put into C.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "inputs.hpp"
#include "kept_array.hpp"

namespace bench {
namespace {

constexpr std::uint64_t rows_each = 4;  // in one operation

class MatrixMultiply final : public EngineJob {
public:
    MatrixMultiply(const Shape& shape, std::uint64_t rows) : EngineJob(shape), rows_(std::max<std::uint64_t>(rows, 1)) {}

    void load() override
    {
        a_ = make_matrix(rows_, 21);
        b_ = make_matrix(rows_, 22);
        compute_expected();
        c_ = kept_array<E, double>("bench.matrix_multiply.result", rows_ * rows_);
        own_ = kept_array<E, Own>("bench.matrix_multiply.threads", shape_.threads);
    }
    void prepare() override
    {
        refill<E>(own_[0].mutex, c_, rows_ * rows_ * sizeof(double));
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            E::Operation<1> operation;
            operation.lock(own_[thread].mutex);
            own_[thread].rows_done = std::uint64_t{0};
        }
    }
    void work(Context& context) override
    {
        Own& own = own_[context.thread];
        std::vector<double> block(rows_each * rows_);
        const Part part = part_of(context.thread, rows_);
        for (std::uint64_t first = part.first; first < part.last; first += rows_each) {
            const std::uint64_t last = std::min(first + rows_each, part.last);
            const std::size_t size_bytes = (last - first) * rows_ * sizeof(double);
            multiply(first, last, block.data());
            E::Operation<1> operation;
            operation.lock(own.mutex);
            E::about_to_write(c_ + first * rows_, size_bytes);
            std::memcpy(c_ + first * rows_, block.data(), size_bytes);
            own.rows_done = own.rows_done + (last - first);
            context.changed_bytes += size_bytes + sizeof(std::uint64_t);
        }
    }
    std::string fault() override
    {
        std::uint64_t done = 0;
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            done += own_[thread].rows_done;
        }
        if (done != rows_) {
            return "the threads have counted " + std::to_string(done) + " rows of " + std::to_string(rows_);
        }
        return std::equal(expected_.begin(), expected_.end(), c_) ? std::string() : "the matrix is not the product";
    }
    [[nodiscard]] std::uint64_t items() const override { return rows_ * rows_; }

private:
    struct alignas(64) Own {
        E::Mutex mutex;
        E::Durable<std::uint64_t> rows_done;
    };

    /// Rows [first, last) of the product. Each row of B that is read serves all of them.
    void multiply(std::uint64_t first, std::uint64_t last, double* __restrict block) const noexcept
    {
        const std::uint64_t n = rows_;
        std::fill_n(block, (last - first) * n, 0.0);
        for (std::uint64_t k = 0; k < n; ++k) {
            const double* const b = b_.data() + k * n;
            for (std::uint64_t row = first; row < last; ++row) {
                const double a = a_[row * n + k];
                double* const c = block + (row - first) * n;
                for (std::uint64_t column = 0; column < n; ++column) {
                    c[column] += a * b[column];
                }
            }
        }
    }

    /// Element by element, as the definition has it. The sums are exact (inputs.hpp), so their order does not matter.
    void compute_expected()
    {
        expected_.resize(rows_ * rows_);
        std::vector<double> column(rows_);
        for (std::uint64_t j = 0; j < rows_; ++j) {
            for (std::uint64_t k = 0; k < rows_; ++k) {
                column[k] = b_[k * rows_ + j];
            }
            for (std::uint64_t i = 0; i < rows_; ++i) {
                double sum = 0;
                for (std::uint64_t k = 0; k < rows_; ++k) {
                    sum += a_[i * rows_ + k] * column[k];
                }
                expected_[i * rows_ + j] = sum;
            }
        }
    }

    const std::uint64_t rows_;
    std::vector<double> a_;
    std::vector<double> b_;
    std::vector<double> expected_;
    double* c_ = nullptr;
    Own* own_ = nullptr;
};

}  // namespace

/// size: rows of each matrix.
Work make_matrix_multiply(const Shape& shape)
{
    return {nullptr, std::make_unique<MatrixMultiply>(shape, shape.size_or(704, 64))};
}

}  // namespace bench
